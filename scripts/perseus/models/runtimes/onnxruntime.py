"""Set the parameters of ONNX Runtime in config.pbtxt.

The parameters are the same for the Python backend of Perseus and the C++ backend of Triton.
"""

from __future__ import annotations

from perseus.study.tasks.repository import ServedTenant


def parameters(tenant: ServedTenant) -> dict[str, str]:
    """Return the parameters by name. Each operator uses all threads of its model instance."""
    return {"intra_op_thread_count": str(tenant.intra_op_threads), "inter_op_thread_count": "1"}
