"""TensorRT, whose plan has everything in it."""

from __future__ import annotations

from perseus.study.tasks.repository import ServedTenant


def parameters(tenant: ServedTenant) -> dict[str, str]:
    """None."""
    return {}
