"""Check two conditions without which a search cannot certify a rate.

First, the median latency of single requests on the idle server must be within the SLA. Second, a
certification window must contain enough requests for a verdict. The preset limits the length of a
window, so a slow model may need another preset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perseus.peak.durations import CERTIFY_AT, lowest_rps
from perseus.study.presets import PRESETS
from perseus.study.sla import Sla


def infeasible(
    slas: Sequence[Sla],
    names: Sequence[str],
    rates_rps: Sequence[float],
    unloaded_p50_ms: Mapping[str, float],
) -> str:
    """Return the reason why the server cannot keep the SLAs at any load; empty if no such reason is
    known. The function ignores the SLA of a tenant without load (rate 0)."""
    for name, sla, rate_rps in zip(names, slas, rates_rps, strict=True):
        # Use the median, since a high percentile of few requests depends on single late requests.
        if rate_rps > 0 and unloaded_p50_ms[name] > sla.latency_ms:
            return (
                f"the median latency of {name} without load is {unloaded_p50_ms[name]:.1f} ms,"
                f" longer than its SLA of {sla.latency_ms:g} ms"
            )
    return ""


def too_slow(
    preset: str, slas: Sequence[Sla], limits_rps: Sequence[float], names: Sequence[str]
) -> str:
    """Return a text that names the tenants whose limits are too low for the preset to certify.

    For each of these tenants, the text also names a preset that can certify its rate, if such a
    preset exists. The text is empty if the preset suffices for all tenants with load.
    """
    return "; ".join(
        f"for {name}, certification windows send at most {rate:.3g} requests/s:"
        f" {_certifies(preset, sla)}, and {_which_can(sla, rate)}"
        for name, sla, limit in zip(names, slas, limits_rps, strict=True)
        for rate in [CERTIFY_AT[0] * limit]
        if 0 < rate < lowest_rps(PRESETS[preset].settings, sla)
    )


def begins_too_slow(
    preset: str,
    slas: Sequence[Sla],
    start_rps: Sequence[float],
    names: Sequence[str],
    unloaded_p50_ms: Mapping[str, float],
) -> str:
    """Return a warning that names the tenants whose start rates are too low for the preset.

    The preset could not certify these rates, but the search may find a limit above a start rate. If
    a start rate is above an upper bound of the limit, the function checks this upper bound instead
    of the start rate. For each tenant, the warning also names a preset that can certify the rate,
    if such a preset exists.
    """
    found = []
    for name, sla, start in zip(names, slas, start_rps, strict=True):
        most = _one_after_the_other_rps(sla, unloaded_p50_ms[name])
        rate, what = start, f"the rate of {name} starts at {start:.3g} requests/s"
        if most < start:
            rate = most
            what = (
                f"a server that handles the requests of {name} one after the other keeps the"
                f" p{sla.percentile:g} within {sla.latency_ms:g} ms only up to about {most:.3g}"
                " requests/s"
            )
        if 0 < rate < lowest_rps(PRESETS[preset].settings, sla):
            found.append(f"{what}: {_certifies(preset, sla)}, and {_which_can(sla, rate)}")
    return "; ".join(found)


def _one_after_the_other_rps(sla: Sla, work_ms: float) -> float:
    """Return an upper bound of the limit in requests/s, for a server that serves one request at a
    time. The service time of each request is `work_ms`.

    A request that arrives during the service of another request waits for the rest of this service
    time. The rest is uniformly distributed. If the rest plus the service time of the new request
    exceeds the latency limit, the new request is late. Therefore, only a limited share of the
    requests may find the server busy, and this share equals the utilisation.
    """
    # Share of late requests among the requests that find the server busy.
    late = 1 - (sla.latency_ms - work_ms) / work_ms
    busy = min(1.0, sla.allowed / late) if late > 0 else 1.0
    return 1000 * busy / work_ms


def _which_can(sla: Sla, rate_rps: float) -> str:
    can = (each for each in PRESETS if lowest_rps(PRESETS[each].settings, sla) <= rate_rps)
    found = next(can, None)
    return "no preset certifies a rate as low as this" if found is None else _certifies(found, sla)


def _certifies(preset: str, sla: Sla) -> str:
    lowest = lowest_rps(PRESETS[preset].settings, sla)
    rates = "at no rate" if lowest == float("inf") else f"at {lowest:.3g} requests/s or more"
    return f"the preset {preset} certifies an SLA on the p{sla.percentile:g} {rates}"
