"""Convert requests into NumPy arrays, and NumPy arrays into responses, in Triton's Python backends.

A Python backend runs in a process of Triton, the Python stub. The stub finds this module in the
folder of `triton_python_backend_utils`. The stub was compiled for NumPy 1. With NumPy 2, the
functions `Tensor(name, array)` and `as_numpy()` of the stub lose the values of a tensor. Therefore
this module exchanges tensors with the stub by DLPack.
"""

import ctypes
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

# With declared types of the arguments, a call is several times faster.
_set_destructor = ctypes.pythonapi.PyCapsule_SetDestructor
_set_destructor.argtypes = [ctypes.py_object, ctypes.c_void_p]


def tensor(name: str, array: np.ndarray) -> Any:
    """Return a Triton tensor with the values of an array.

    If possible, the tensor and the array share memory. Raises RuntimeError or BufferError for types
    that DLPack does not support: strings and bfloat16.
    """
    if not (array.flags.c_contiguous and array.flags.writeable):
        array = np.array(array, order="C")
    # For dimensions of size 0 or 1, NumPy may have other strides, which the stub cannot use.
    sizes = accumulate(array.shape[:0:-1], mul, initial=array.itemsize)
    strides = tuple(sizes)[: array.ndim][::-1]
    capsule = np.ndarray(array.shape, array.dtype, array, strides=strides).__dlpack__()
    # The tensor becomes the owner of the memory. The stub marks the change of owner in a way that
    # NumPy does not recognise, so the destructor of NumPy's capsule would report an error.
    _set_destructor(capsule, None)
    return pb_utils.Tensor.from_dlpack(name, capsule)


def inputs_of(request: Any, names: list[str]) -> dict[str, np.ndarray]:
    """Return the inputs of a request by name, without copying them from shared memory."""
    return {
        name: np.from_dlpack(pb_utils.get_input_tensor_by_name(request, name)) for name in names
    }


def joined(given: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the inputs of all requests as one batch, by the name of the input.

    For a single request, the function returns its inputs without a copy.
    """
    if len(given) == 1:
        return given[0]
    return {name: np.concatenate([each[name] for each in given]) for name in given[0]}


def responses(given: list[dict[str, np.ndarray]], answers: dict[str, np.ndarray]) -> list[Any]:
    """Split the outputs of a batch into one response for each request."""
    if len(given) == 1:
        return [_response(answers)]
    made, start = [], 0
    for each in given:
        end = start + len(next(iter(each.values())))
        made.append(_response({name: rows[start:end] for name, rows in answers.items()}))
        start = end
    return made


def _response(answers: dict[str, np.ndarray]) -> Any:
    return pb_utils.InferenceResponse([tensor(*answer) for answer in answers.items()])
