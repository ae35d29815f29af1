"""Set the parameters of OpenVINO, for the Python backend of Perseus and the C++ backend of Triton.

With the same repository, the Python backend and the C++ backend behave differently. The C++ backend
has a parameter for bf16 (`HINT_BF16: YES`) but none for fp32. Therefore "fp32" in the C++ backend
means the default of OpenVINO: bf16 on a CPU with instructions for bf16. The C++ backend also
accepts only batches of max_batch_size, unless `ENABLE_BATCH_PADDING` allows the backend to pad
smaller batches. The inference of a padded batch takes as long as the inference of a full batch.
"""

from __future__ import annotations

from perseus.study.tasks.repository import ServedTenant


def parameters(tenant: ServedTenant) -> dict[str, str]:
    """Return the number of streams (one per instance) and the number of threads of all instances
    together.

    The C++ backend compiles a model once for all instances and divides the threads among the
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
