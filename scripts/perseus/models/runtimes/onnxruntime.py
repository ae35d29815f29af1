"""ONNX Runtime, with our backend or Triton's own."""

from __future__ import annotations

from perseus.study.tasks.repository import ServedTenant


def parameters(tenant: ServedTenant) -> dict[str, str]:
    """Threads of each instance: one operator at a time has them all."""
    return {"intra_op_thread_count": str(tenant.intra_op_threads), "inter_op_thread_count": "1"}
