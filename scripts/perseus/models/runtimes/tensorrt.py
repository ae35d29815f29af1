"""Define that TensorRT has no parameters in config.pbtxt: a TensorRT plan contains all settings."""

from __future__ import annotations

from perseus.study.tasks.repository import ServedTenant


def parameters(tenant: ServedTenant) -> dict[str, str]:
    """Return an empty mapping, since TensorRT needs no parameters."""
    return {}
