"""Names of the Triton models of a tenant, and of its files in a repository.

A tenant has one model with its own name, the network. If the server preprocesses, this name is an
ensemble, and there are two models for its steps. Names of tenants have no dot, so a step never has
the name of another tenant.
"""

from __future__ import annotations

from itertools import chain
from typing import Final, Literal

PreprocessedBy = Literal["client", "server"]
"""Where images are converted into tensors."""

CONFIG: Final = "config.pbtxt"
ENSEMBLE_FILE, PREPROCESS_FILE = ".keep", "model.py"
"""Files in the version folder of an ensemble, which has no model file but needs the folder, and
in that of a preprocessing model."""


def steps(tenant: str, preprocessing: PreprocessedBy | None) -> tuple[str, ...]:
    """Return Triton models that a request passes one after another; empty if there is only one."""
    return (f"{tenant}.preprocess", f"{tenant}.network") if preprocessing == "server" else ()


def tenant_of(model: str) -> str:
    """Return the tenant whose Triton model has that name."""
    return model.partition(".")[0]


def files_of(tenant: str, preprocessing: PreprocessedBy | None, model_file: str) -> list[str]:
    """Return all files of the tenant, relative to the repository; its network loads
    `model_file`."""
    names = steps(tenant, preprocessing)
    before = {tenant: ENSEMBLE_FILE, names[0]: PREPROCESS_FILE} if names else {}
    loaded = {**before, names[-1] if names else tenant: model_file}
    of_models = [[f"{model}/{CONFIG}", f"{model}/1/{file}"] for model, file in loaded.items()]
    return [*chain.from_iterable(of_models), answers_file(tenant)]


def answers_file(tenant: str) -> str:
    """Return the file of the reference responses. It is in the root of the repository, where Triton
    reads folders only."""
    return f"{tenant}.reference.npz"
