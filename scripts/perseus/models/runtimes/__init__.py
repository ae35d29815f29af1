"""Find the parameters of a runtime in config.pbtxt. Each runtime has a module of its name with a
function `parameters`.

`study.runtimes.RUNTIMES` has all other facts about a runtime.
"""

from __future__ import annotations

from importlib import import_module

from perseus.study.tasks.repository import ServedTenant


def parameters_of(tenant: ServedTenant) -> dict[str, str]:
    """Return the parameters of a tenant, with the names that the backends of its runtime read."""
    return import_module(f"{__name__}.{tenant.runtime}").parameters(tenant)
