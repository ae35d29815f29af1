"""Tests that a record contains the precision in which the server computes a network."""

from types import SimpleNamespace

import pytest
from measure_tasks import tenant

from perseus.measurement import computed_precision
from perseus.measurement.computed_precision import computed_precisions, warnings
from perseus.measurement.triton_metrics import told_precisions

TOLD = """\
# HELP perseus_computed_precision The numeric precision of a model's network
# TYPE perseus_computed_precision gauge
perseus_computed_precision{model="a",precision="f32"} 1
perseus_computed_precision{model="b.network",precision="bf16"} 1
perseus_computed_precision{model="q",precision="f32"} 1
# TYPE nv_inference_count counter
nv_inference_count{model="a",version="1"} 7
"""


@pytest.fixture
def server(monkeypatch):
    """Return a function that returns a server with the given metrics, one text per reading. A
    reading of None fails, and so does each further reading."""

    def serving(*texts):
        turn = iter(texts)
        answer = lambda _self, parse: (text := next(turn, None)) and parse(text)  # noqa: E731
        monkeypatch.setattr(computed_precision.Scraper, "read", answer)
        return SimpleNamespace(metrics_url="http://127.0.0.1:9/metrics", access=None)

    monkeypatch.setattr(computed_precision.Scraper, "__init__", lambda *_: None)
    monkeypatch.setattr(computed_precision.Scraper, "close", lambda _: None)
    return serving


def under_test(*settings):
    return [SimpleNamespace(settings=each, model=each.name, name=each.name) for each in settings]


def test_models_are_told_in_the_words_of_the_configuration():
    assert told_precisions(TOLD) == {"a": "fp32", "b.network": "bf16", "q": "fp32"}


def test_what_the_runtime_says_goes_before_the_configuration(server):
    tenants = under_test(
        tenant("a", precision="bf16"),
        tenant("b", precision="bf16", preprocessing="server"),
        tenant("q", precision="int8"),
        tenant("of_server", precision=None),
    )
    assert computed_precisions(server(TOLD), "openvino", tenants) == {
        "a": "fp32",
        "b": "bf16",
        "q": "int8",
        "of_server": None,
    }


@pytest.mark.parametrize("metrics", [None, "nv_inference_count 7\n"])
@pytest.mark.parametrize(
    ("runtime", "precision", "expected"),
    [("onnxruntime", "fp32", "fp32"), ("openvino", "fp32", None), ("openvino", "int8", "int8")],
)
def test_what_no_runtime_says_is_as_configured_or_unknown(
    server, monkeypatch, metrics, runtime, precision, expected
):
    monkeypatch.setattr(computed_precision, "RETRY_S", 0.0)
    tenants = under_test(tenant("a", precision=precision))
    assert computed_precisions(server(metrics), runtime, tenants) == {"a": expected}


def test_metrics_that_come_late_are_read_again(server):
    tenants = under_test(tenant("a", precision="bf16"))
    assert computed_precisions(server(None, None, TOLD), "openvino", tenants) == {"a": "fp32"}


def test_another_precision_than_was_asked_for_is_a_doubt():
    tenants = [tenant("a", precision="bf16"), tenant("b"), tenant("c", precision=None)]
    (doubt,) = warnings(tenants, {"a": "fp32", "b": "fp32", "c": None})
    assert doubt.startswith("a is configured for bf16, but the runtime computes in fp32")
