"""Replace the detection operators of torchvision if its shared library does not load.

The builds of torchvision on PyPI are for CUDA. With a CPU build of torch, the shared library of
such a build does not load. Without this module, the import of torchvision would then fail, because
the detection operators are missing.
"""

from __future__ import annotations

import functools
import importlib
from types import ModuleType
from typing import Any, Final

import numpy as np

SCHEMAS: Final = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height,"
    " SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
)


def declare(torch: ModuleType) -> Any:
    """Declare the missing operators to torch, so that the import of torchvision succeeds.

    The caller must keep the returned object: the operators disappear when Python deletes it.
    """
    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in SCHEMAS:
        library.define(schema)
    return library


def implement(library: Any, torch: ModuleType, torchvision: ModuleType) -> None:
    """Implement the operators that `declare` has declared, for a CPU."""
    library.impl("nms", functools.partial(_nms, torch), "CPU")
    module = importlib.import_module("torchvision.ops.roi_align")
    # Use torchvision's implementation in plain torch, without the wrapper that compiles it.
    in_torch = module._roi_align.__wrapped__
    library.impl("roi_align", lambda *given: in_torch(*given), "CPU")
    torchvision.extension._has_ops = module._has_ops = _are_there  # type: ignore[attr-defined]


def _are_there() -> bool:
    """Return True. This function replaces torchvision's `_has_ops`, which torch cannot compile."""
    return True


def _nms(torch: ModuleType, boxes: Any, scores: Any, iou_threshold: float) -> Any:
    """Return the indices of the boxes that non-maximum suppression keeps, by descending score."""
    if not len(boxes):
        return torch.empty(0, dtype=torch.int64)
    given = {
        "boxes": boxes.float().numpy()[np.newaxis],
        "scores": scores.float().numpy()[np.newaxis, np.newaxis],
        "most": np.array([len(boxes)]),
        "overlap": np.array([iou_threshold], np.float32),
    }
    (kept,) = _suppression().run(None, given)
    return torch.from_numpy(kept[:, 2].copy())


@functools.cache
def _suppression() -> Any:
    import onnxruntime
    from onnx import TensorProto, helper

    tensor = helper.make_tensor_value_info
    given = [
        tensor("boxes", TensorProto.FLOAT, [1, None, 4]),
        tensor("scores", TensorProto.FLOAT, [1, 1, None]),
        tensor("most", TensorProto.INT64, [1]),
        tensor("overlap", TensorProto.FLOAT, [1]),
    ]
    node = helper.make_node("NonMaxSuppression", [each.name for each in given], ["kept"])
    kept = tensor("kept", TensorProto.INT64, [None, 3])
    graph = helper.make_graph([node], "suppression", given, [kept])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
