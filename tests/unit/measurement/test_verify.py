"""Tests that Perseus compares every response with the response of torch before it measures."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from measure_tasks import measure_task, tenant
from references import write_reference

from perseus.measurement import verify
from perseus.measurement.tenant_under_test import TenantUnderTest, tenants_on
from perseus.models.reference import Reference
from perseus.serving.running_server import RunningServer
from perseus.study.tasks.measure import ServedModel


@pytest.mark.parametrize("wrong_image", [0, 1, 2, 3])
@pytest.mark.parametrize("batch_size", [1, 2, 4])
def test_a_wrong_answer_to_any_image_of_the_load_is_noticed(
    tmp_path, monkeypatch, wrong_image, batch_size
):
    images = np.arange(4, dtype=np.float32).reshape(4, 1, 1, 1)
    write_reference(tmp_path / "reference.npz", images, images.reshape(4, 1))
    task = measure_task(tenant("a", max_batch_size=batch_size, request_batch_size=batch_size))
    nobody = RunningServer("", "", "", None)
    tenants = tenants_on(nobody, task, {"a": tmp_path / "reference.npz"})

    def answers(wrong):
        def answer(tenant, parts):
            flat = [each["input"].reshape(len(each["input"]), 1) for each in tenant.batches(parts)]
            return [{"output": np.where(rows == wrong, rows + 1, rows)} for rows in flat]

        return answer

    monkeypatch.setattr(verify, "_answers", answers(None))
    assert verify.verify(tenants) == {"a": 0}
    monkeypatch.setattr(verify, "_answers", answers(wrong_image))
    with pytest.raises(verify.VerificationError, match="differ from the responses of the original"):
        verify.verify(tenants)


# A model that the server already has: Perseus compares two responses to the same request


def served(outputs=("scores", "class"), max_batch_size=2):
    return TenantUnderTest(
        tenant("a", served_model=ServedModel(name="mine", shape={})),
        "mine",
        {"x": np.arange(4.0), "y": np.arange(8).reshape(4, 2)},
        None,
        max(1, max_batch_size),
        False,
        None,
        outputs,
        has_batches=max_batch_size > 0,
    )


def scores(batch):
    """Return scores and classes that depend on both inputs, of a batch or of one example."""
    x, y = np.asarray(batch["x"]), np.asarray(batch["y"])
    return {"scores": x[..., None] + y, "class": (x > 1).astype(np.int64)}


def asked_twice(monkeypatch, tenant, second):
    """Verify a server that responds first with `scores` and then with `second`."""
    calls = iter([scores, second])

    def answers(tenant, parts):
        answer = next(calls)
        return [answer(batch) for batch in tenant.batches(parts)]

    monkeypatch.setattr(verify, "_answers", answers)
    return verify.verify([tenant])


@pytest.mark.parametrize("max_batch_size", [0, 1, 2, 8])
def test_a_served_model_is_compared_with_itself(monkeypatch, max_batch_size):
    of = served(max_batch_size=max_batch_size)
    assert asked_twice(monkeypatch, of, scores) == {"a": 0}

    def rounded(batch):
        return {**scores(batch), "scores": scores(batch)["scores"] * (1 + 1e-6)}

    assert 0 < asked_twice(monkeypatch, of, rounded)["a"] < 1e-5


@pytest.mark.parametrize(
    ("output", "change", "expected"),
    [
        ("scores", lambda value: value[::-1], "'scores' of .* for a differs by a relative error"),
        ("class", lambda value: 1 - value, "'class' of the server's responses for a differs"),
        ("scores", lambda value: value * np.nan, "'scores' .* has values that are not finite"),
    ],
)
def test_a_served_model_that_answers_otherwise_the_second_time_is_refused(
    monkeypatch, output, change, expected
):
    def other(batch):
        return {**scores(batch), output: change(scores(batch)[output])}

    with pytest.raises(verify.VerificationError, match=expected):
        asked_twice(monkeypatch, served(max_batch_size=8), other)


def test_what_all_examples_have_in_common_hides_no_difference(monkeypatch):
    """A constant value of 1000 in all responses hides no difference between the other values."""

    def beside_a_constant(values):
        return {"scores": np.stack([np.full(len(values), 1000.0), values], axis=1)}

    answers = iter([lambda batch: batch["x"], lambda batch: batch["x"] + 1])

    def call(tenant, parts):
        answer = next(answers)
        return [beside_a_constant(answer(batch)) for batch in tenant.batches(parts)]

    monkeypatch.setattr(verify, "_answers", call)
    with pytest.raises(verify.VerificationError, match="differs by a relative error"):
        verify.verify([served(("scores",), max_batch_size=8)])


def test_empty_answers_as_of_a_detector_that_finds_nothing_are_right(monkeypatch):
    def empty(tenant, parts):
        return [{"scores": np.zeros((len(part), 0))} for part in parts]

    monkeypatch.setattr(verify, "_answers", empty)
    assert verify.verify([served(("scores",))]) == {"a": 0}


def test_answers_that_change_from_call_to_call_are_taken_if_the_study_says_so(monkeypatch):
    def other(batch):
        return {**scores(batch), "scores": -scores(batch)["scores"]}

    random = served(max_batch_size=8)
    model = random.settings.served_model.model_copy(update={"deterministic": False})
    settings = random.settings.model_copy(update={"served_model": model})
    errors = asked_twice(monkeypatch, replace(random, settings=settings), other)
    assert errors == {"a": None}
    (message,) = verify.unchecked({**errors, "b": 0.0})
    assert message.startswith(
        "a gives different responses to the same request (deterministic: false)"
    )


def test_an_own_model_of_several_tensors_is_compared_with_all_of_them(monkeypatch, tmp_path):
    """The model supports no batches, and each example has an output of another shape."""
    answers = [{"boxes": np.ones((i, 4), np.float32), "n": np.array(i)} for i in range(4)]
    inputs = {"image:0": np.arange(8, dtype=np.float32).reshape(4, 1, 2), "limit": np.ones(4)}
    Reference(inputs, answers, has_batches=False).write(tmp_path / "reference.npz")
    task = measure_task(tenant("a", max_batch_size=8, request_batch_size=1))
    nobody = RunningServer("", "", "", None)
    (deployed,) = tenants_on(nobody, task, {"a": tmp_path / "reference.npz"})
    assert deployed.max_batch_size == 1 and deployed.outputs == ("boxes", "n")
    (sent,) = deployed.batches([[2]])
    # Triton supports no tensor without dimensions, neither in requests nor in responses.
    assert {name: each.shape for name, each in sent.items()} == {"image:0": (1, 2), "limit": (1,)}

    def answer(wrong):
        def of_parts(tenant, parts):
            told = [answers[part[0]] for part in parts]
            return [
                {"boxes": each["boxes"], "n": each["n"].reshape(1) + (i in wrong)}
                for i, each in enumerate(told)
            ]

        return of_parts

    monkeypatch.setattr(verify, "_answers", answer(()))
    assert verify.verify([deployed]) == {"a": 0}
    monkeypatch.setattr(verify, "_answers", answer((3,)))
    with pytest.raises(verify.VerificationError, match="differ from the responses of the original"):
        verify.verify([deployed])


def test_an_output_that_is_not_answered_is_named(monkeypatch):
    class Transport:
        def infer(self, number, timeout_s):
            return {"scores": np.zeros((1, 2))}

    transport = lambda tenant, parts: nullcontext(Transport())  # noqa: E731
    monkeypatch.setattr(TenantUnderTest, "transport", transport)
    with pytest.raises(verify.VerificationError, match="responses for a lack the outputs class"):
        verify.verify([served()])
