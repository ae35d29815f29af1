"""How the client's ceiling is found; on a real server it is in the end-to-end tests."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from perseus.measurement.ceiling import ATTEMPTS, SHARES, describe, highest_valid
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


def ceiling_rps(tried) -> float:
    assert [each.rate_rps for each in tried] == sorted((t.rate_rps for t in tried), reverse=True)
    return next(each.rate_rps for each in tried if each.valid)


@pytest.mark.parametrize("steps", range(len(SHARES)))
def test_the_ceiling_is_the_highest_valid_rate_of_the_ladder(steps):
    rate_rps = 2000 * SHARES[steps]
    tried = highest_valid(2000, client_up_to(1.001 * rate_rps))
    assert ceiling_rps(tried) == pytest.approx(rate_rps)
    assert f"ceiling {rate_rps:.0f} requests/s" in describe(tried)
    above = {each.rate_rps for each in tried if not each.valid}
    assert not above or min(above) == pytest.approx(rate_rps / 0.85)
    assert len(tried) <= min(2 + 2 * steps, 15), "one share after another takes 1 + 2 * steps"


def test_a_client_that_is_faster_than_the_path_has_the_first_rate_as_its_ceiling():
    (only,) = highest_valid(2000, client_up_to(1e6))
    assert only.valid and only.rate_rps == pytest.approx(0.9 * 2000)


@pytest.mark.parametrize("hiccup", range(9))
def test_one_hiccup_does_not_lower_the_ceiling(hiccup):
    steady = highest_valid(2000, client_up_to(1000))
    assert len(steady) == 9
    shaken = highest_valid(2000, client_up_to(1000, spoilt=frozenset({hiccup})))
    assert ceiling_rps(shaken) == ceiling_rps(steady)
    assert len(shaken) <= len(steady) + 1


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
    assert tried[-1].rate_rps == 2000 * SHARES[-1]
    assert len(tried) % ATTEMPTS == 0 and len(tried) <= 12
    assert describe(tried).startswith("no open-loop rate is valid")
