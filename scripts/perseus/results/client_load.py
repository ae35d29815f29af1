"""Compute how much of its ceiling the client uses, and find ceilings that were measured too low.

A client ceiling is the highest rate at which the client can send requests on schedule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np

from perseus.peak.stats import Floats
from perseus.results.client_ceiling import Ceiling, RequestShape
from perseus.results.repeats import RepeatedPeak
from perseus.study.setting import of_ceiling

Requests = tuple[str, str, int]
"""Key of a request shape: the name of the server in the file of client ceilings, the model, and the
number of images per request."""


def ceiling_problems(
    ceilings: Sequence[Ceiling], peaks: Sequence[RepeatedPeak]
) -> dict[Requests, str]:
    """Return why client ceilings are too low, by request shape (server, model, images per request).
    A request shape with a reliable ceiling has no entry.

    There are two reasons. First, other processes used the host while Perseus measured the ceiling.
    Second, the client sent more than the ceilings on a load line: the sum of (certified rate /
    ceiling) over the tenants exceeds 1. All ceilings in this sum are then too low. Only certified
    rates prove that ceilings are too low, because the client sent these rates in valid windows. The
    client may never have sent the estimated rates.
    """
    every, exceeded = _ceilings_rps(ceilings), dict[Requests, str]()
    for peak in peaks:
        for record in peak.records:
            rates_rps = record.rates_rps(record.certified_scale)
            load = _load(peak, rates_rps, every)
            if load > 1:
                took = (
                    f"the client sent more in valid windows of {peak.mix} (rate / client ceiling,"
                    f" summed over the tenants, is {load:.0%}), so this ceiling is too low"
                )
                loaded = compress(_keys(peak), rates_rps)
                exceeded |= dict.fromkeys(loaded, took)
    found = dict[Requests, str]()
    for ceiling, shape in _shapes(ceilings):
        keys = _models(ceiling, shape)
        problem = shape.disturbed or next((exceeded[key] for key in keys if key in exceeded), "")
        found |= dict.fromkeys(keys if problem else (), problem)
    return found


def client_load(
    peak: RepeatedPeak, ceilings: Sequence[Ceiling], problems: Mapping[Requests, str]
) -> float:
    """Return the load of the client at a peak: the sum of (rate / client ceiling) over the tenants
    with load.

    The result is NaN if a ceiling is unknown or unreliable.
    """
    trusted = {key: rate for key, rate in _ceilings_rps(ceilings).items() if key not in problems}
    return _load(peak, peak.rates_rps, trusted)


def problem_of(ceiling: Ceiling, shape: RequestShape, problems: Mapping[Requests, str]) -> str:
    """Return the reason why the ceiling of this request shape is too low, or an empty text if the
    ceiling is reliable."""
    return next((problems[key] for key in _models(ceiling, shape) if key in problems), "")


def _load(peak: RepeatedPeak, rates_rps: Floats, ceilings_rps: Mapping[Requests, float]) -> float:
    of_tenants = np.array([ceilings_rps.get(key, np.nan) for key in _keys(peak)])
    loaded = rates_rps != 0
    return float((rates_rps[loaded] / of_tenants[loaded]).sum())


def _keys(peak: RepeatedPeak) -> list[Requests]:
    """Return the key of each tenant's request shape.

    If the server converts the images of a tenant, no client ceiling is valid for its requests. The
    key of this tenant then has an empty text instead of the model, and matches no client ceiling.
    """
    ceiling, no_model = of_ceiling(peak.task.server.name), ""
    return [
        (
            ceiling,
            no_model if tenant.preprocessing == "server" else tenant.model,
            tenant.request_batch_size,
        )
        for tenant in peak.task.tenants
    ]


def _ceilings_rps(ceilings: Sequence[Ceiling]) -> dict[Requests, float]:
    return {
        key: shape.highest_valid.rate_rps
        for ceiling, shape in _shapes(ceilings)
        if shape.highest_valid
        for key in _models(ceiling, shape)
    }


def _shapes(ceilings: Sequence[Ceiling]) -> list[tuple[Ceiling, RequestShape]]:
    return [(ceiling, shape) for ceiling in ceilings for shape in ceiling.shapes]


def _models(ceiling: Ceiling, shape: RequestShape) -> list[Requests]:
    return [(ceiling.server, model, shape.request_batch_size) for model in shape.models]
