"""TensorRT, whose plan contains all settings."""

from __future__ import annotations

from perseus.study.tasks.repository import ServedTenant


def parameters(tenant: ServedTenant) -> dict[str, str]:
    """Return no parameters."""
    return {}
