"""Check that a server answers as torch did when the model was exported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc as triton
from numpy.typing import NDArray
from tritonclient.utils import InferenceServerException

from perseus.answers import TOLERANCES, relative_error, signal
from perseus.server import RunningServer
from perseus.transport_grpc import CHANNEL_OPTIONS


class VerificationError(RuntimeError):
    """A server answers otherwise than torch."""


def verify(
    server: RunningServer, tenants: Sequence[Mapping[str, Any]], references: Mapping[str, Path]
) -> dict[str, float]:
    """The relative error of each tenant's answers, one image alone and then all as one batch.

    Raises VerificationError when one is above the tolerance, or when a model does not answer.
    """
    errors: dict[str, float] = {}
    with triton.InferenceServerClient(server.grpc_address, channel_args=CHANNEL_OPTIONS) as client:
        for tenant in tenants:
            name = tenant["name"]
            with np.load(references[name]) as arrays:
                images, expected = arrays["input"], arrays["output"]
            batches = [images[:1], images[: tenant["max_batch_size"]]]
            errors[name] = max(
                relative_error(
                    _infer(client, name, batch), expected[: len(batch)], signal(expected)
                )
                for batch in batches
            )
            limit = TOLERANCES[tenant["precision"]]
            if not errors[name] <= limit:
                raise VerificationError(
                    f"the server's answers of {name} differ from torch's by a relative error of"
                    f" {errors[name]:.2g} (allowed: {limit:g}); nothing was measured. See"
                    " server.log"
                )
    return errors


def _infer(client: triton.InferenceServerClient, name: str, images: NDArray) -> NDArray:
    tensor = triton.InferInput("input", list(images.shape), "FP32")
    tensor.set_data_from_numpy(images)
    try:
        answer = client.infer(name, [tensor], client_timeout=120).as_numpy("output")
    except InferenceServerException as error:
        raise VerificationError(f"{name} does not answer: {error}") from error
    assert answer is not None
    return answer
