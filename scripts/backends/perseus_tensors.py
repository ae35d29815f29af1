"""Tensors of Triton's from arrays of NumPy's, for backends that run in its Python stub.

The stub finds this module beside `triton_python_backend_utils`. It was built against NumPy 1: with
NumPy 2, its `Tensor(name, array)` and `as_numpy()` lose the values. DLPack keeps them. Backends
read their inputs by `numpy.from_dlpack(tensor)`, and answer with `tensor(name, array)`.
"""

import ctypes
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils


def tensor(name: str, array: np.ndarray) -> Any:
    """A tensor of Triton's with the values of an array, whose memory it shares if it can.

    Raises RuntimeError or BufferError for types that DLPack does not know: strings, bfloat16.
    """
    array = np.require(array, requirements=("C", "W"))
    # Those of a contiguous array; NumPy has others for dimensions of 0 or 1, and the stub no use.
    strides = np.cumprod([array.itemsize, *array.shape[:0:-1]])[: array.ndim][::-1]
    capsule = np.ndarray(array.shape, array.dtype, array, strides=strides).__dlpack__()
    # From here on the tensor owns what the capsule holds. The stub marks that in a way of its own,
    # which NumPy, about to destroy the capsule, takes for an error.
    ctypes.pythonapi.PyCapsule_SetDestructor(ctypes.py_object(capsule), None)
    return pb_utils.Tensor.from_dlpack(name, capsule)
