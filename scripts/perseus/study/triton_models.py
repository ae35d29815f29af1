"""Define the names of the Triton models of a tenant, and of its files in a repository.

A tenant has one Triton model with the name of the tenant: the network. If the server preprocesses
images, the Triton model with this name is an ensemble, and two more Triton models are its steps.
The name of a tenant has no dot, so a step never has the name of another tenant.
"""

from __future__ import annotations

from itertools import chain
from typing import Final, Literal

PreprocessedBy = Literal["client", "server"]
"""Where images are converted into tensors."""

CONFIG: Final = "config.pbtxt"
ENSEMBLE_FILE, PREPROCESS_FILE = ".keep", "model.py"
"""Files in the version folders of an ensemble and of a preprocessing model. An ensemble has no
model file, but Triton needs its version folder."""


def steps(tenant: str, preprocessing: PreprocessedBy | None) -> tuple[str, ...]:
    """Return the names of the Triton models that a request passes one after another; empty if there
    is only one."""
    return (f"{tenant}.preprocess", f"{tenant}.network") if preprocessing == "server" else ()


def tenant_of(model: str) -> str:
    """Return the tenant whose Triton model has this name."""
    return model.partition(".")[0]


def files_of(tenant: str, preprocessing: PreprocessedBy | None, model_file: str) -> list[str]:
    """Return all files of a tenant, relative to the repository. `model_file` is the name of the
    file of the network."""
    names = steps(tenant, preprocessing)
    before = {tenant: ENSEMBLE_FILE, names[0]: PREPROCESS_FILE} if names else {}
    loaded = {**before, names[-1] if names else tenant: model_file}
    of_models = [[f"{model}/{CONFIG}", f"{model}/1/{file}"] for model, file in loaded.items()]
    return [*chain.from_iterable(of_models), answers_file(tenant)]


def answers_file(tenant: str) -> str:
    """Return the file of the reference responses of a tenant.

    The file is in the root of the repository, where Triton reads folders only.
    """
    return f"{tenant}.reference.npz"
