"""Set the parameters of ONNX Runtime, for the backend of Perseus and the backend of Triton."""

from __future__ import annotations

from perseus.study.tasks.repository import ServedTenant


def parameters(tenant: ServedTenant) -> dict[str, str]:
    """Return the number of threads of each instance; each operator uses all threads."""
    return {"intra_op_thread_count": str(tenant.intra_op_threads), "inter_op_thread_count": "1"}
