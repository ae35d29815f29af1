"""Set the parameters of PyTorch in config.pbtxt, for the Python backend of Perseus."""

from __future__ import annotations

from collections.abc import Sequence

from perseus.study.tasks.repository import ServedTenant


def parameters(tenant: ServedTenant) -> dict[str, str]:
    """Return the parameters by name.

    The parameters are the number of threads of each model instance, the precision if it is fp16,
    and, on a GPU, the batch sizes for which the backend captures a CUDA graph.
    """
    found = {"intra_op_thread_count": str(tenant.intra_op_threads)}
    if tenant.precision == "fp16":
        found["precision"] = "fp16"
    if tenant.gpus:
        sizes = captured_sizes(tenant.max_batch_size, tenant.preferred_batch_sizes)
        found["captured_batch_sizes"] = ",".join(map(str, sizes))
    return found


def captured_sizes(largest: int, preferred: Sequence[int] = ()) -> list[int]:
    """Return the batch sizes for which the backend captures a CUDA graph.

    The sizes are the powers of two up to `largest`, the sizes in `preferred`, and `largest`. The
    backend pads a batch of another size to the next larger captured size. Because of the powers of
    two, a padded batch has less than twice as many images as the original batch.
    """
    powers = {2**i for i in range(largest.bit_length()) if 2**i <= largest}
    return sorted({*powers, *preferred, largest})
