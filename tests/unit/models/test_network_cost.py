"""Operations and bytes of a network, counted by hand and from its ONNX graph."""

from dataclasses import asdict

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from perseus.models.network_cost import network_cost


def small(path, batch="batch"):
    """3 x 8 x 8 -> convolution of 4 channels, 3 x 3, stride 2 -> mean of each -> 10 classes."""
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
    cost = network_cost(small(tmp_path / "model.onnx", batch), (3, 8, 8))
    maps = 4 * 4 * 4
    # Convolution, ReLU, mean (one for each channel), flatten, product.
    assert cost.flops == 2 * maps * 27 + maps + 4 + 4 + 2 * 10 * 4
    assert cost.weight_bytes == 4 * (4 * 27 + 40)
    read_and_written = (192 + maps) + 2 * maps + (maps + 4) + (4 + 4) + (4 + 10)
    assert cost.traffic_bytes == 4 * (read_and_written + 4 * 27 + 40)
    assert cost.working_set_bytes == 4 * (4 * 27 + 40) + 4 * (192 + maps)


def test_a_torchvision_network_has_the_parameters_and_operations_of_its_paper(exported):
    """MobileNetV3-Small (Howard et al., ICCV 2019): 2.5 million parameters, and 56 million
    multiplications at 224 pixels, of which 1.6 million lie behind the mean over all pixels."""
    folder, _ = exported
    cost = network_cost(folder / "model.onnx", (3, 64, 64))
    at_64_px = (56e6 - 1.6e6) * (64 / 224) ** 2 + 1.6e6
    assert cost.weight_bytes == pytest.approx(4 * 2.5e6, rel=0.03)
    assert cost.flops == pytest.approx(2 * at_64_px, rel=0.15)
    assert cost.weight_bytes < cost.working_set_bytes < cost.traffic_bytes


def test_the_record_of_an_export_has_it(exported):
    folder, check = exported
    assert check["cost"] == asdict(network_cost(folder / "model.onnx", (3, 64, 64)))
