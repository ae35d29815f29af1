"""OpenVINO, with Perseus's backend or Triton's own.

The two differ with the same repository. OpenVINO computes in bf16 by default if the CPU has
instructions for it. The C++ backend has a parameter for bf16 (`HINT_BF16: YES`) and none for fp32:
with it, "fp32" means OpenVINO's own default. The C++ backend fixes the batch axis at
max_batch_size. Smaller batches are an error unless it may pad them (`ENABLE_BATCH_PADDING`), and
then cost as much as full ones.
"""

from __future__ import annotations

from perseus.study.tasks.repository import ServedTenant


def parameters(tenant: ServedTenant) -> dict[str, str]:
    """Return one stream per instance, and the threads of all instances together.

    The C++ backend compiles a model once for all instances and divides its threads among the
    streams.
    """
    found = {
        "NUM_STREAMS": str(tenant.instances),
        "INFERENCE_NUM_THREADS": str(tenant.instances * tenant.intra_op_threads),
    }
    if tenant.precision == "bf16":
        found["HINT_BF16"] = "YES"  # the only value that the backend accepts
    if tenant.max_batch_size > 1:
        found["ENABLE_BATCH_PADDING"] = "YES"
    return found
