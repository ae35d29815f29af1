"""Tests of the operations and bytes of a network, counted by hand and from its ONNX graph."""

from dataclasses import asdict

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from perseus.host.orphans import temporary_folder
from perseus.models.network_cost import network_cost
from perseus.models.tensors import ModelTensors


def of_images(pixels):
    return ModelTensors.of_classifier((3, pixels, pixels), 10)


def small(path, batch="batch"):
    """Write a small network with a 3 x 8 x 8 input and 10 classes.

    The network has a convolution (4 channels, 3 x 3, stride 2), ReLU, the mean per channel, and a
    product with a matrix.
    """
    weights = {
        "filters": np.ones((4, 3, 3, 3), np.float32),
        "matrix": np.ones((4, 10), np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["input", "filters"], ["maps"], strides=[2, 2], pads=[1] * 4),
        helper.make_node("Relu", ["maps"], ["positive"]),
        helper.make_node("GlobalAveragePool", ["positive"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("MatMul", ["flat", "matrix"], ["output"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, [batch, 3, 8, 8])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, [batch, 10])],
        [numpy_helper.from_array(values, name) for name, values in weights.items()],
    )
    onnx.save(helper.make_model(graph), path)
    return path


@pytest.mark.parametrize("batch", ["batch", 2])
def test_a_small_network_costs_what_is_counted_by_hand(tmp_path, batch):
    cost = network_cost(small(tmp_path / "model.onnx", batch), of_images(8))
    maps = 4 * 4 * 4
    # Convolution, ReLU, mean (one for each channel), flatten, product.
    assert cost.flops == 2 * maps * 27 + maps + 4 + 4 + 2 * 10 * 4
    assert cost.weight_bytes == 4 * (4 * 27 + 40)
    read_and_written = (192 + maps) + 2 * maps + (maps + 4) + (4 + 4) + (4 + 10)
    assert cost.traffic_bytes == 4 * (read_and_written + 4 * 27 + 40)
    assert cost.working_set_bytes == 4 * (4 * 27 + 40) + 4 * (192 + maps)


def counted(nodes, weights, classes=10, functions=()):
    """Return the cost of a network with an input of 3 x 16 x 16.

    `weights` are arrays by name, or nodes that compute them.
    """
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["batch", 3, 16, 16])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", classes])],
        [numpy_helper.from_array(values, name) for name, values in weights.items()],
    )
    domains = [helper.make_opsetid(name, version) for name, version in OPSETS.items()]
    model = helper.make_model(graph, opset_imports=domains, functions=functions)
    with temporary_folder() as folder:
        onnx.save(model, folder / "model.onnx")
        return network_cost(folder / "model.onnx", of_images(16))


OPSETS = {"": 17, "com.microsoft": 1, "own": 1}
FLAT = helper.make_node("Flatten", ["input"], ["flat"])
MATRIX = np.ones((768, 10), np.float32)
PRODUCT = 2 * 768 * 10


def branch(name, matrix, **weights):
    """Return a graph that multiplies `flat`, a tensor of the outer graph, by a matrix.

    `weights` are the arrays inside the graph, by name: the matrix, or nothing.
    """
    product = helper.make_node("MatMul", ["flat", matrix], [name])
    made = helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 10])
    inside = [numpy_helper.from_array(values, key) for key, values in weights.items()]
    return helper.make_graph([product], name, [], [made], inside)


@pytest.mark.parametrize(
    "nodes",
    [
        [helper.make_node("Gelu", ["flat"], ["x"], domain="com.microsoft"),
         helper.make_node("MatMul", ["x", "matrix"], ["output"])],
        [helper.make_node("Gelu", ["flat"], ["x"], domain="com.microsoft"),
         helper.make_node("Gemm", ["x", "matrix"], ["output"])],
        [helper.make_node("Gelu", ["filters"], ["x"], domain="com.microsoft"),
         helper.make_node("Conv", ["input", "x"], ["output"])],
    ],
)  # fmt: skip
def test_what_comes_after_an_unknown_operator_has_no_operations(nodes):
    weights = {"matrix": MATRIX, "filters": np.ones((10, 3, 16, 16), np.float32)}
    cost = counted([FLAT, *nodes], weights)
    assert cost.flops == 768  # only Flatten has operations
    assert cost.weight_bytes == 4 * (7680 + 7680) < cost.working_set_bytes


def test_a_loop_whose_answer_has_no_shape_has_no_operations_either():
    declare = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["go_on"]),
            helper.make_node("Add", ["x", "x"], ["twice"]),
        ],
        "body",
        [
            declare("turn", TensorProto.INT64, []),
            declare("go", TensorProto.BOOL, []),
            declare("x", TensorProto.FLOAT, None),
        ],
        [declare("go_on", TensorProto.BOOL, []), declare("twice", TensorProto.FLOAT, None)],
    )
    loop = helper.make_node("Loop", ["turns", "", "flat"], ["looped"], body=body)
    product = helper.make_node("MatMul", ["looped", "matrix"], ["output"])
    cost = counted([FLAT, loop, product], {"matrix": MATRIX, "turns": np.array(2)})
    assert cost.flops == 768 + 1  # Flatten, and the condition of the loop
    assert cost.weight_bytes == 4 * 7680 + 8


@pytest.mark.parametrize(
    ("nodes", "weights", "flops"),
    [
        ([helper.make_node("ConvTranspose", ["input", "filters"], ["maps"], strides=[2, 2]),
          helper.make_node("GlobalMaxPool", ["maps"], ["pooled"]),
          helper.make_node("Flatten", ["pooled"], ["output"])],
         {"filters": np.ones((3, 10, 2, 2), np.float32)}, 2 * 768 * 10 * 4 + 10 + 10),
        ([FLAT, helper.make_node("Transpose", ["flat"], ["turned"]),
          helper.make_node("Gemm", ["turned", "matrix"], ["output"], transA=1)],
         {"matrix": MATRIX}, 2 * 768 + PRODUCT),
        ([FLAT, helper.make_node("Einsum", ["flat", "matrix"], ["output"], equation="bi, ij->bj")],
         {"matrix": MATRIX}, 768 + PRODUCT),
        ([FLAT, helper.make_node("Einsum", ["flat", "matrix"], ["output"], equation="...i,ij")],
         {"matrix": MATRIX}, 768 + PRODUCT),
        ([FLAT, helper.make_node("Head", ["flat", "matrix"], ["output"], domain="own")],
         {"matrix": MATRIX}, 768 + PRODUCT),
        ([FLAT, helper.make_node("If", ["which"], ["output"], then_branch=branch("a", "matrix"),
                                 else_branch=branch("b", "inner", inner=MATRIX))],
         {"matrix": MATRIX, "which": np.array(True)}, 768 + 2 * PRODUCT + 10),
    ],
)  # fmt: skip
def test_products_are_counted_whatever_they_are_called(nodes, weights, flops):
    product = helper.make_node("MatMul", ["a", "b"], ["product"])
    head = helper.make_function(
        "own", "Head", ["a", "b"], ["product"], [product], [helper.make_opsetid("", 17)]
    )
    assert counted(nodes, weights, functions=[head]).flops == flops


def test_weights_are_as_large_as_the_file_has_them():
    product = helper.make_node("MatMul", ["flat", "matrix"], ["output"])
    plain = counted([FLAT, product], {"matrix": MATRIX})
    assert plain.weight_bytes == 4 * 7680
    made = helper.make_node("Constant", [], ["matrix"], value=numpy_helper.from_array(MATRIX))
    assert counted([made, FLAT, product], {}) == plain
    cast = helper.make_node("Cast", ["stored"], ["matrix"], to=TensorProto.FLOAT)
    for kind, each_bytes in ((np.float16, 2), (np.int8, 1)):
        small = counted([FLAT, cast, product], {"stored": MATRIX.astype(kind)})
        assert small.weight_bytes == each_bytes * 7680
        assert small.working_set_bytes == each_bytes * 7680 + 4 * (768 + 7680 + 10)


def test_sparse_weights_count_as_dense_ones(tmp_path):
    model = onnx.load(small(tmp_path / "model.onnx"))
    (matrix,) = (each for each in model.graph.initializer if each.name == "matrix")
    dense = network_cost(tmp_path / "model.onnx", of_images(8))
    values = numpy_helper.from_array(np.ones(40, np.float32), "matrix")
    places = numpy_helper.from_array(np.arange(40), "places")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, matrix.dims))
    model.graph.initializer.remove(matrix)
    onnx.save(model, tmp_path / "sparse.onnx")
    assert network_cost(tmp_path / "sparse.onnx", of_images(8)) == dense


def test_a_torchvision_network_has_the_parameters_and_operations_of_its_paper(exported):
    """MobileNetV3-Small has 2.5 million parameters and 56 million multiplications at 224 pixels.

    The numbers are from Howard et al., ICCV 2019. 1.6 million of the multiplications come after the
    mean over all pixels, so they do not depend on the size of the image.
    """
    folder, _ = exported
    cost = network_cost(folder / "model.onnx", of_images(64))
    at_64_px = (56e6 - 1.6e6) * (64 / 224) ** 2 + 1.6e6
    assert cost.weight_bytes == pytest.approx(4 * 2.5e6, rel=0.03)
    assert cost.flops == pytest.approx(2 * at_64_px, rel=0.15)
    assert cost.weight_bytes < cost.working_set_bytes < cost.traffic_bytes


def test_the_record_of_an_export_has_it(exported):
    folder, check = exported
    assert check["cost"] == asdict(network_cost(folder / "model.onnx", of_images(64)))
