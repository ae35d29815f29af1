"""The Triton models that a tenant is served as, and the files of each in a repository.

One of the tenant's own name, which is its network; or, where the server preprocesses, an ensemble
of that name and its two steps. Tenants' names have no dot, so that a step is never another tenant.
"""

from __future__ import annotations

from typing import Final, Literal

PreprocessedBy = Literal["client", "server"]
"""Where pictures become tensors."""

CONFIG: Final = "config.pbtxt"
ENSEMBLE_FILE, PREPROCESS_FILE = ".keep", "model.py"
"""What lies in the version folder of an ensemble, which has no file of its own but needs a folder,
and in that of a model that preprocesses."""


def steps(tenant: str, preprocessing: PreprocessedBy | None) -> tuple[str, ...]:
    """The Triton models that its requests pass one after the other; none where it is only one."""
    return (f"{tenant}.preprocess", f"{tenant}.network") if preprocessing == "server" else ()


def tenant_of(model: str) -> str:
    """The tenant whose Triton model has that name."""
    return model.partition(".")[0]


def files_of(model: str, file: str) -> list[str]:
    """The files of a Triton model, from the repository on; `file` is the one that it loads."""
    return [f"{model}/{CONFIG}", f"{model}/1/{file}"]
