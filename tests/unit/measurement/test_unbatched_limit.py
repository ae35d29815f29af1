"""Tests of the warning about responses that are faster than a model's instances can compute."""

import pytest

from perseus.measurement.unbatched_limit import warnings

SLEEPER = {
    "unbatched_limit_rps": {"sleeper": 48.0},
    "unseen_p50_ms": {"sleeper": 21.0},
    "unloaded_p50_ms": {"sleeper": 20.0},
}
SAID = (
    "sleeper answered 551 requests/s, but according to the latency of single requests, its model"
    " instances can answer only 48 requests/s: check whether a cache answers instead of the model"
)


def window(rate_rps: float, *, phase="near_limit", tenant="sleeper", completed=1.0, counted_s=10.0):
    return {
        "phase": phase,
        "tenant": tenant,
        "requests": round(rate_rps * counted_s),
        "completed_ratio": completed,
        "elapsed_s": counted_s + 2.0,
        "settle_s": 2.0,
    }


def test_a_window_that_is_faster_than_single_requests_allow_is_a_warning():
    windows = [
        window(40.0, phase="bracket"),
        *(window(rate, phase="probe") for rate in (550.0, 551.0, 900.0)),
        window(900.0, tenant="other"),
    ]
    assert list(warnings(SLEEPER, windows)) == [SAID]


@pytest.mark.parametrize(
    "windows",
    [
        [],
        [window(57.0)],
        [window(551.0, completed=0.1)],
        [window(100.0, counted_s=0.19)],
        [window(551.0, tenant="other")],
        [window(50.0), window(48.0), window(95.0), window(100.0, phase="probe", counted_s=0.19)],
    ],
    ids=[
        "none",
        "a busy server",
        "most without an answer",
        "a short window",
        "another tenant",
        "a host that is faster for a moment",
    ],
)
def test_windows_that_a_model_can_have_answered_are_no_warning(windows):
    assert list(warnings(SLEEPER, windows)) == []


def test_a_model_that_forms_batches_has_no_such_limit():
    unknown = SLEEPER | {"unbatched_limit_rps": {"sleeper": None}}
    assert list(warnings(unknown, [window(551.0)])) == []


@pytest.mark.parametrize(
    ("repeated_ms", "rate_rps", "doubt"),
    [
        (20.0, 70.0, "the host probably became faster after the single requests"),
        (10.0, 70.0, "check whether a cache answers instead of the model"),
        (20.0, 90.0, "check whether a cache answers instead of the model"),
    ],
    ids=["a faster host", "repeated requests are faster", "more than hosts gain"],
)
def test_a_cache_is_told_from_a_host_that_became_faster(repeated_ms, rate_rps, doubt):
    found = SLEEPER | {"unloaded_p50_ms": {"sleeper": repeated_ms}}
    (warning,) = warnings(found, [window(rate_rps)])
    assert warning.endswith(f" requests/s: {doubt}")


def test_a_record_without_a_server_has_no_warning():
    assert list(warnings({"unbatched_limit_rps": {}}, [])) == []
