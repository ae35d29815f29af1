"""Define the parameters that config.pbtxt passes to a runtime, such as the number of threads.

Each module of this package has the name of a runtime, and a function `parameters`. The other
properties of a runtime are in `study.runtimes.RUNTIMES`.
"""

from __future__ import annotations

from importlib import import_module

from perseus.study.tasks.repository import ServedTenant


def parameters_of(tenant: ServedTenant) -> dict[str, str]:
    """Return the parameters in config.pbtxt for the runtime of a tenant, by name."""
    return import_module(f"{__name__}.{tenant.runtime}").parameters(tenant)
