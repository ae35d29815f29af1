"""How the client's ceiling is found; on a real server it is in the end-to-end tests."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from perseus.measurement.ceiling import ATTEMPTS, describe, highest_valid
from perseus.peak.verdict import Verdict


def client_up_to(
    limit_rps: float,
    spoilt: frozenset[int] = frozenset(),
    completed: float = 1.0,
    beyond: Verdict = Verdict.INVALID,
):
    """Windows of a client that keeps up to a rate; those of these numbers are spoilt besides."""
    asked: list[float] = []

    def window(rate_rps: float) -> SimpleNamespace:
        asked.append(rate_rps)
        good = rate_rps <= limit_rps and len(asked) - 1 not in spoilt
        return SimpleNamespace(
            verdict=Verdict.PASS if good else beyond,
            punctual=good,
            completed_ratio=completed,
            send_lag_p99_ms=0.5 if good else 3.0,
            client_cpu=0.5,
            reason="" if good else "send lag p99 3.0 ms > 1.0 ms",
        )

    return window


def test_the_ceiling_is_the_first_valid_rate_from_above():
    tried = highest_valid(2000, client_up_to(1000))
    assert [each.valid for each in tried].count(True) == 1 and tried[-1].valid
    assert 850 <= tried[-1].rate_rps <= 1000
    assert min(each.rate_rps for each in tried[:-1]) > 1000
    assert "ceiling" in describe(tried)


def test_a_client_that_is_faster_than_the_path_has_the_first_rate_as_its_ceiling():
    (only,) = highest_valid(2000, client_up_to(1e6))
    assert only.valid and only.rate_rps == pytest.approx(0.9 * 2000)


def test_one_hiccup_does_not_lower_the_ceiling():
    steady = highest_valid(2000, client_up_to(1000))
    first_valid = len(steady) - 1
    shaken = highest_valid(2000, client_up_to(1000, spoilt=frozenset({first_valid})))
    assert shaken[-1].rate_rps == steady[-1].rate_rps
    assert len(shaken) == len(steady) + 1


@pytest.mark.parametrize(
    "client",
    [
        client_up_to(0),
        client_up_to(9000, completed=0.5),
        client_up_to(0, beyond=Verdict.FAIL),  # the path is overloaded, and the client late
    ],
)
def test_a_client_that_cannot_send_or_a_server_that_does_not_answer_has_no_ceiling(client):
    tried = highest_valid(2000, client)
    assert not any(each.valid for each in tried)
    assert len(tried) % ATTEMPTS == 0 and len(tried) < 50
    assert describe(tried).startswith("no open-loop rate is valid")
