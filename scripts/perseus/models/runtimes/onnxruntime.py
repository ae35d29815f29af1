"""ONNX Runtime, with Perseus's backend or Triton's own."""

from __future__ import annotations

from perseus.study.tasks.repository import ServedTenant


def parameters(tenant: ServedTenant) -> dict[str, str]:
    """Return the threads of each instance: one operator at a time uses all of them."""
    return {"intra_op_thread_count": str(tenant.intra_op_threads), "inter_op_thread_count": "1"}
