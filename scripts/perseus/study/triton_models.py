"""Define the names of a tenant's Triton models, and of a tenant's files in a model repository.

Usually, a tenant has one Triton model: the network, with the name of the tenant. If the server
preprocesses images, a tenant has three Triton models: the preprocessing, the network, and an
ensemble, which runs the preprocessing and then the network. The ensemble has the name of the
tenant. The names of the other two models contain a dot, which the name of a tenant cannot contain.
"""

from __future__ import annotations

from itertools import chain
from typing import Final, Literal

PreprocessedBy = Literal["client", "server"]
"""Who converts image files into tensors."""

CONFIG: Final = "config.pbtxt"
ENSEMBLE_FILE, PREPROCESS_FILE = ".keep", "model.py"
"""Names of the file in the version folder of an ensemble and of a preprocessing model. An ensemble
needs no file, but Triton needs the version folder, so this file is empty."""


def steps(tenant: str, preprocessing: PreprocessedBy | None) -> tuple[str, ...]:
    """Return the names of the two Triton models of a tenant whose images the server preprocesses:
    first the preprocessing, then the network. For other tenants, return an empty tuple."""
    return (f"{tenant}.preprocess", f"{tenant}.network") if preprocessing == "server" else ()


def tenant_of(model: str) -> str:
    """Return the name of the tenant to which the Triton model called `model` belongs."""
    return model.partition(".")[0]


def files_of(tenant: str, preprocessing: PreprocessedBy | None, model_file: str) -> list[str]:
    """Return the paths of all files of a tenant, relative to the model repository. `model_file` is
    the name of the file with the network."""
    names = steps(tenant, preprocessing)
    before = {tenant: ENSEMBLE_FILE, names[0]: PREPROCESS_FILE} if names else {}
    loaded = {**before, names[-1] if names else tenant: model_file}
    of_models = [[f"{model}/{CONFIG}", f"{model}/1/{file}"] for model, file in loaded.items()]
    return [*chain.from_iterable(of_models), answers_file(tenant)]


def answers_file(tenant: str) -> str:
    """Return the name of the file with the reference responses of a tenant.

    The file is in the top folder of the model repository, where Triton ignores files.
    """
    return f"{tenant}.reference.npz"
