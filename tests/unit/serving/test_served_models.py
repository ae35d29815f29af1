"""Tests of a model that a server already has: inputs of requests, and reasons of refusals."""

import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from perseus.models.tensors import TensorSpec
from perseus.serving import served_models
from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer
from perseus.study.tasks.measure import ServedModel

ENCODER = """
name: "encoder" backend: "onnxruntime" max_batch_size: 8
input { name: "tokens" data_type: TYPE_INT64 dims: -1 }
input { name: "mask" data_type: TYPE_BOOL dims: -1 }
input { name: "scale" data_type: TYPE_FP16 dims: 1 optional: true }
output { name: "vector" data_type: TYPE_FP32 dims: 384 }
output { name: "class" data_type: TYPE_INT32 dims: 1 }
dynamic_batching { max_queue_delay_microseconds: 100 }
parameters { key: "a" value { string_value: "1" } }
parameters { key: "b" value { string_value: "2" } }
"""
SHAPE = {"tokens": (16,), "mask": (16,)}
SERVER = RunningServer("far:8001", "far:8000", "", None)


@pytest.fixture
def ask(monkeypatch):
    """Return a function that asks a server for a model.

    The server has one ready model, and others that are not ready.
    """

    def asking(config=ENCODER, shape=SHAPE, name="encoder", request_batch_size=1, versions=("1",)):
        class Control:
            def __init__(self, server):
                assert server is SERVER

            def __enter__(self):
                return self

            def __exit__(self, *exc):
                """Close nothing."""

            def states(self, name):
                return {"encoder": "READY", "broken": "UNAVAILABLE: no such file"}

            def config(self, name):
                return text_format.Parse(config, pb.ModelConfig())

            def versions(self, name):
                return list(versions)

        monkeypatch.setattr(served_models, "Control", Control)
        wanted = ServedModel(name=name, shape=shape)
        return served_models.read_served_model(SERVER, wanted, request_batch_size)

    return asking


def test_it_is_asked_with_the_inputs_that_it_needs(ask):
    found = ask(request_batch_size=8)
    assert found.inputs == (
        TensorSpec("tokens", "INT64", (16,)),
        TensorSpec("mask", "BOOL", (16,)),
    )
    assert [each.name for each in found.outputs] == ["vector", "class"]
    assert (found.max_batch_size, found.dynamic_batching) == (8, True)
    assert (found.name, found.backend) == ("encoder", "onnxruntime")
    with_scale = ask(shape=SHAPE | {"scale": (1,)})
    assert with_scale.inputs[-1] == TensorSpec("scale", "FP16", (1,))


def test_a_fixed_shape_needs_no_word_and_none_is_no_batch(ask):
    fixed = ENCODER.replace("dims: -1", "dims: [2, 3]").replace("max_batch_size: 8", "")
    found = ask(fixed, shape={})
    assert found.inputs[0].dims == (2, 3) and found.max_batch_size == 0
    assert ask(fixed, shape={"tokens": (2, 3)}) == found


def test_the_version_that_answers_is_the_highest(ask):
    assert ask(versions=("9", "10", "2")).version == "10"
    assert ask(versions=()).version == ""


def test_another_configuration_is_another_model_however_it_is_written(ask):
    lines = ENCODER.strip().splitlines()
    assert ask("\n".join([*lines[:-2], *lines[:-3:-1]])) == ask()
    other = ask(ENCODER.replace("microseconds: 100", "microseconds: 101"))
    assert other.config_sha256 != ask().config_sha256 and len(other.config_sha256) == 64


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"name": "encodr"},
            r"at far:8001 has no model 'encodr' \(did you mean 'encoder'\?\)\."
            r" Its models: broken, encoder$",
        ),
        ({"name": "broken"}, r"'broken', but the model is not ready \(UNAVAILABLE: no such file\)"),
        ({"shape": {}}, r"'tokens' has the shape \[-1\], in which -1 is a variable size: to set"
                        r" this size, write shape: \{tokens: \["),
        ({"shape": SHAPE | {"mask": (4, 4)}}, r"shape: 'mask' is \[4, 4\], but .* is \[-1\]"),
        ({"shape": SHAPE | {"scale": (2,)}}, r"shape: 'scale' is \[2\], but the .* is \[1\]"),
        ({"shape": SHAPE | {"token": (4,)}}, r"'token' is not an input of the model \(did you m"),
        ({"shape": SHAPE | {"xyz": (4,)}}, r"of the model \(the inputs are tokens, mask, scale\)"),
        ({"request_batch_size": 9}, r"accepts batches of at most 8, but request_batch_size is 9"),
        (
            {"request_batch_size": 2, "config": ENCODER.replace("max_batch_size: 8", "")},
            r"the model accepts no batches",
        ),
        (
            {"config": ENCODER.replace("TYPE_BOOL", "TYPE_STRING")},
            r"its input 'mask' has the type BYTES, but Perseus supports only numbers",
        ),
        (
            {"config": ENCODER.replace("TYPE_INT32", "TYPE_BF16")},
            r"its output 'class' has the type BF16, but Perseus supports only numbers",
        ),
        (
            {"config": ENCODER + "model_transaction_policy { decoupled: true }"},
            r"the model is decoupled: a request may have any number of responses",
        ),
        (
            {"config": ENCODER.replace("dynamic_batching {", "sequence_batching {").replace(
                "max_queue_delay_microseconds: 100", "")},
            r"the model keeps a state from one request to the next",
        ),
        (
            {"config": ENCODER + "response_cache { enable: true }"},
            r"'encoder' has a response_cache, which answers instead of the model: set"
            r" response_cache \{ enable: false \} in the config\.pbtxt of the model, and load the"
            r" model again$",
        ),
        ({"config": 'name: "encoder"', "shape": {}}, r"names no inputs; .* names no outputs$"),
    ],
)  # fmt: skip
def test_a_model_that_cannot_be_measured_is_refused_with_the_reason(ask, change, expected):
    with pytest.raises(ServerError, match=expected):
        ask(**change)


def test_all_reasons_are_told_at_once(ask):
    config = ENCODER.replace("TYPE_INT64", "TYPE_STRING").replace("TYPE_FP32", "TYPE_STRING")
    with pytest.raises(ServerError) as refused:
        ask(config, shape={"tokens": (4,)}, request_batch_size=9)
    expected = ("'tokens' has the type BYTES", "'vector' has", "'mask' has the shape", "at most 8")
    for words in expected:
        assert words in str(refused.value)


def test_a_server_with_many_models_names_some_of_them():
    names = [f"model{n:02}" for n in range(25)]
    text = served_models._unknown(SERVER, "other", names)
    assert text.endswith("model18, model19 and 5 more") and "did you mean" not in text
