"""Names of the Triton models of a tenant, and of its files in a repository.

One of the tenant's own name, which is its network; or, where the server preprocesses, an ensemble
of that name and its two steps. Tenants' names have no dot, so that a step is never another tenant.
"""

from __future__ import annotations

from itertools import chain
from typing import Final, Literal

PreprocessedBy = Literal["client", "server"]
"""Where pictures become tensors."""

CONFIG: Final = "config.pbtxt"
ENSEMBLE_FILE, PREPROCESS_FILE = ".keep", "model.py"
"""What lies in the version folder of an ensemble, which has no file of its own but needs a folder,
and in that of a model that preprocesses."""


def steps(tenant: str, preprocessing: PreprocessedBy | None) -> tuple[str, ...]:
    """Triton models that a request passes one after another; empty if there is only one."""
    return (f"{tenant}.preprocess", f"{tenant}.network") if preprocessing == "server" else ()


def tenant_of(model: str) -> str:
    """The tenant whose Triton model has that name."""
    return model.partition(".")[0]


def files_of(tenant: str, preprocessing: PreprocessedBy | None, model_file: str) -> list[str]:
    """All files of the tenant, relative to the repository; its network loads `model_file`."""
    names = steps(tenant, preprocessing)
    before = {tenant: ENSEMBLE_FILE, names[0]: PREPROCESS_FILE} if names else {}
    loaded = {**before, names[-1] if names else tenant: model_file}
    of_models = [[f"{model}/{CONFIG}", f"{model}/1/{file}"] for model, file in loaded.items()]
    return [*chain.from_iterable(of_models), answers_file(tenant)]


def answers_file(tenant: str) -> str:
    """File of the reference responses. It is in the root of the repository, where Triton reads
    folders only."""
    return f"{tenant}.reference.npz"
