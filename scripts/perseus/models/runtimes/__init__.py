"""Return the parameters of a runtime in config.pbtxt. For each runtime, the module with its name
has a function `parameters`.

`study.runtimes.RUNTIMES` has the properties of each runtime.
"""

from __future__ import annotations

from importlib import import_module

from perseus.study.tasks.repository import ServedTenant


def parameters_of(tenant: ServedTenant) -> dict[str, str]:
    """Return the parameters in config.pbtxt for the runtime of a tenant."""
    return import_module(f"{__name__}.{tenant.runtime}").parameters(tenant)
