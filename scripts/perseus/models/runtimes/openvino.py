"""Set the parameters of OpenVINO, for the Python backend of Perseus and the C++ backend of Triton.

With the same parameters in config.pbtxt, the two backends behave differently in two respects:

- Precision: the C++ backend has a parameter for bf16 (`HINT_BF16: YES`) but none for fp32. In the
  C++ backend, the precision "fp32" means the default of OpenVINO, which is bf16 on a CPU with
  instructions for bf16.
- Batches: without the parameter `ENABLE_BATCH_PADDING`, the C++ backend rejects batches smaller
  than max_batch_size. With this parameter, the C++ backend pads smaller batches to max_batch_size,
  so each batch takes as long as a full batch.
"""

from __future__ import annotations

from perseus.study.tasks.repository import ServedTenant


def parameters(tenant: ServedTenant) -> dict[str, str]:
    """Return the parameters by name.

    The number of streams is the number of model instances. The number of threads is the sum over
    all instances. The C++ backend compiles a model only once, and divides these threads among the
    streams.
    """
    found = {
        "NUM_STREAMS": str(tenant.instances),
        "INFERENCE_NUM_THREADS": str(tenant.instances * tenant.intra_op_threads),
    }
    if tenant.precision == "bf16":
        found["HINT_BF16"] = "YES"  # the C++ backend accepts no other value
    if tenant.max_batch_size > 1:
        found["ENABLE_BATCH_PADDING"] = "YES"
    return found
