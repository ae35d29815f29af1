"""Find the parameters that config.pbtxt has for a runtime. The module with the name of the runtime
has a function `parameters`.

`study.runtimes.RUNTIMES` has all other properties of a runtime.
"""

from __future__ import annotations

from importlib import import_module

from perseus.study.tasks.repository import ServedTenant


def parameters_of(tenant: ServedTenant) -> dict[str, str]:
    """Return the parameters in config.pbtxt for the runtime of a tenant."""
    return import_module(f"{__name__}.{tenant.runtime}").parameters(tenant)
