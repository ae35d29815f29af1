"""Define the names of a tenant's Triton models, and of a tenant's files in a model repository.

Usually, a tenant has one Triton model: the network, with the name of the tenant. If the server
preprocesses images, the Triton model with the name of the tenant is an ensemble of two more Triton
models: the preprocessing and the network. The Triton models inside an ensemble have a dot in their
names. The name of a tenant has no dot.
"""

from __future__ import annotations

from itertools import chain
from typing import Final, Literal

PreprocessedBy = Literal["client", "server"]
"""Who converts image files into tensors."""

CONFIG: Final = "config.pbtxt"
ENSEMBLE_FILE, PREPROCESS_FILE = ".keep", "model.py"
"""Files in the version folders of an ensemble and of a preprocessing model. Triton needs the
version folder of an ensemble, although an ensemble has no model file."""


def steps(tenant: str, preprocessing: PreprocessedBy | None) -> tuple[str, ...]:
    """Return the names of the Triton models through which a request passes, in order; empty if a
    request passes through one Triton model only."""
    return (f"{tenant}.preprocess", f"{tenant}.network") if preprocessing == "server" else ()


def tenant_of(model: str) -> str:
    """Return the name of the tenant to which the Triton model with this name belongs."""
    return model.partition(".")[0]


def files_of(tenant: str, preprocessing: PreprocessedBy | None, model_file: str) -> list[str]:
    """Return the paths of all files of a tenant, relative to the model repository. `model_file` is
    the name of the network's file."""
    names = steps(tenant, preprocessing)
    before = {tenant: ENSEMBLE_FILE, names[0]: PREPROCESS_FILE} if names else {}
    loaded = {**before, names[-1] if names else tenant: model_file}
    of_models = [[f"{model}/{CONFIG}", f"{model}/1/{file}"] for model, file in loaded.items()]
    return [*chain.from_iterable(of_models), answers_file(tenant)]


def answers_file(tenant: str) -> str:
    """Return the file of the reference responses of a tenant.

    The file is in the top folder of the model repository, where Triton reads only folders and
    ignores files.
    """
    return f"{tenant}.reference.npz"
