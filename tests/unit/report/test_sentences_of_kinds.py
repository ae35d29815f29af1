"""Tests that the conclusions of each kind of experiment follow from its table."""

import numpy as np
import pytest
import synthetic
import synthetic_files
from sentences import (
    sentences_of,
    stands_only_where_true,
    tables_of,
    without_case,
)

from perseus.report.conclusions import conclusions, module_of
from perseus.results.study_results import StudyResults
from perseus.study.experiments import OTHER_KINDS

CELL = {"study": "s", "server": "cpu1", "scenario": "cpu1.s", "cell": "cpu1.s.x.r1", "repeat": 1}
CELL |= {"verdict": "ok", "reason": ""}
AGAIN = {"cell": "cpu1.s.x.r2", "repeat": 2}


def study(kind, *rows, of_cell=CELL, **more):
    return tables_of({kind: [of_cell | row for row in rows], **more})


# Slowdown


def beside(tenant, other, slowdown=1.5, half=0.1, **more):
    found = {"tenant": tenant, "beside": other, "slowdown": slowdown, "over_sla": 0}
    ends = {"slowdown_low": slowdown - half, "slowdown_high": slowdown + half, "comparisons": 3}
    if tenant == other:
        return found | ends | more
    return found | ends | {"beyond_noise": True} | more


def both(a, b, of_a, of_b, **more):
    return beside(a, b, of_a, **more), beside(b, a, of_b, **more)


TWO = (beside("a", "a", 1.0), *both("a", "b", 1.5, 1.7))
THREE = (*TWO, *both("a", "c", 1.1, 1.2), *both("b", "c", 2.0, 1.3))
CLOSE = [row | {"slowdown_low": 1.0} for row in THREE]
WIDE = [*both("a", "b", 1.2, 1.2, slowdown_high=2.3), *both("a", "c", 1.3, 1.3, half=0.05)]
WIDE += both("b", "c", 2.0, 2.0)
LOST = {"slowdown": None, "slowdown_low": None, "slowdown_high": None, "comparisons": 0}
LOST |= {"verdict": "disturbed", "reason": "others ran"}
NOTHING = (beside("a", "b") | LOST, beside("b", "a") | LOST)
TOO_MUCH = {"verdict": "infeasible", "reason": "81 % were answered"}
OVERLOADED = [row | TOO_MUCH for row in NOTHING]
A_ALONE = (beside("a", "a") | LOST | TOO_MUCH, beside("b", "b"))

OF_SLOWDOWNS = {
    "On cpu1, a and b slow each other down by a factor of up to 1.70": (
        study("slowdown", *TWO),
        study("slowdown", *THREE),
    ),
    "On cpu1, a and c slow each other down least, and b and c most": (
        study("slowdown", *THREE),
        study("slowdown", *THREE, *both("a", "d", 1.0, 1.0)),
    ),
    "a and c beside each other: requests of a take 1.10 (1.00 to 1.20) times as long as alone and"
    " requests of c take 1.20 (1.10 to 1.30) times as long as alone.": (
        study("slowdown", *THREE),
        study("slowdown", *TWO),
    ),
    "requests of a take 1.60 (1.50 to 1.70 in 2 repeats) times as long": (
        study("slowdown", *TWO, *(row | AGAIN for row in both("a", "b", 1.7, 1.7))),
        study("slowdown", *TWO),
    ),
    "According to the intervals, 1 of 3 pairs may have the least slowdown: a and c.": (
        study("slowdown", *THREE),
        study("slowdown", *CLOSE),
    ),
    "According to the intervals, 2 of 3 pairs may have the least slowdown: a and c; a and b.": (
        study("slowdown", *both("a", "b", 1.2, 1.3), *both("a", "c", 1.1, 1.2), *THREE[5:]),
        study("slowdown", *THREE),
    ),
    "requests of a take 1.10 times as long as alone and requests of c": (
        study(
            "slowdown", *(row | dict.fromkeys(("slowdown_low", "slowdown_high")) for row in THREE)
        ),
        study("slowdown", *THREE),
    ),
    "requests of a take 1.10 (no bound) times as long as alone and requests of c": (
        study("slowdown", *(row | {"slowdown_low": 0.0, "slowdown_high": np.inf} for row in THREE)),
        study("slowdown", *THREE),
    ),
    "On cpu1, the data do not show which pair is slowed down least: depending on the pair,"
    " requests take 1.20 to 2.00 times as long as alone": (
        study("slowdown", *CLOSE),
        study("slowdown", *THREE),
    ),
    # The pair with the lowest mean has a wide interval, but the difference of two other pairs is
    # significant.
    "On cpu1, a and c slow each other down significantly less than b and c": (
        study("slowdown", *WIDE),
        study("slowdown", *THREE),
    ),
    "According to the intervals, 2 of 3 pairs may have the least slowdown: a and b; a and c.": (
        study("slowdown", *WIDE),
        study("slowdown", *THREE),
    ),
    "On cpu1, the data do not show that a and b slow each other down: requests take up to 0.97"
    " times as long as alone": (
        study("slowdown", *both("a", "b", 0.97, 0.96, beyond_noise=False)),
        study("slowdown", *TWO),
    ),
    "up to 1.20 times as long": (  # within the noise of the host
        study("slowdown", *both("a", "b", 1.2, 1.2, beyond_noise=False)),
        study("slowdown", *both("a", "b", 1.2, 1.2)),
    ),
    "Of 2 slowdowns, 2 exceed the noise of this host.": (
        study("slowdown", *TWO),
        study("slowdown", *TWO[1:2], TWO[2] | {"beyond_noise": False}),
    ),
    "In each valid window, each tenant keeps its SLA beside the other tenant.": (
        study("slowdown", *TWO),
        study("slowdown", TWO[1], TWO[2] | {"over_sla": 1}),
    ),
    "Beside a, b fails its SLA in 1 of 3 windows.": (
        study("slowdown", TWO[1], TWO[2] | {"over_sla": 1}),
        study("slowdown", *TWO),
    ),
    "The slowdown of a beside b is not known: others ran.": (
        study("slowdown", *NOTHING, *both("a", "c", 1.0, 1.1)),
        study("slowdown", *TWO, *(row | AGAIN for row in NOTHING)),  # one repeat has a result
    ),
    "cpu1 does not keep up with a and b together a and c beside each other: requests of a take"
    " 1.10": (
        study("slowdown", *OVERLOADED, *both("a", "c", 1.1, 1.2)),
        study("slowdown", *NOTHING, *both("a", "c", 1.1, 1.2)),
    ),
    "The slowdown of a and b on cpu1 is not known 81 % were answered.": (
        # all rows are infeasible, as if no server ran
        study("slowdown", *OVERLOADED),
        study("slowdown", TWO[0], *OVERLOADED),
    ),
    "cpu1 does not keep up with a and b; b and c together": (
        study("slowdown", TWO[0], *OVERLOADED, *both("b", "c", 1.1, 1.2, verdict="infeasible")),
        study("slowdown", TWO[0], *OVERLOADED),
    ),
    "cpu1 does not keep up with a alone; b and c together": (
        study("slowdown", *A_ALONE, *OVERLOADED, *both("b", "c", 1.1, 1.2, verdict="infeasible")),
        study("slowdown", TWO[0], *OVERLOADED, *both("b", "c", 1.1, 1.2, verdict="infeasible")),
    ),
    "each tenant keeps its SLA beside the other": (
        study("slowdown", *both("a", "c", 1.1, 1.2)),
        study("slowdown", *OVERLOADED, *both("a", "c", 1.1, 1.2)),
    ),
    "On cpu1 (cpu1.s.x), a and b slow": (
        study("slowdown", *TWO, *(row | {"cell": "cpu1.s.y.r1"} for row in TWO)),
        study("slowdown", *TWO, *(row | AGAIN for row in TWO)),
    ),
    "The slowdown of a and b on cpu1 is not known others ran.": (
        study("slowdown", *NOTHING),
        study("slowdown", *TWO),
    ),
}

# Replay

SHARED = {"tenant": "a", "phase": "shared", "process": "mmpp", "duration_s": 120.0}
SHARED |= {"offered_rps": 50.0, "sla_percentile": 95.0, "sla_ms": 60.0, "attained": 0.96}
SHARED |= {"attained_low": 0.95, "attained_high": 0.97, "worst_minute_attained": 0.9}
SHARED |= {"worst_recovery_s": 2.5}
ALONE = SHARED | {"phase": "alone", "attained": 0.99}
OTHER = SHARED | {"tenant": "b"}
MISSED = {"verdict": "sla_missed", "attained": 0.8}
UNPLAYED = dict.fromkeys(SHARED.keys() - {"tenant", "phase", "process", "duration_s"})
UNPLAYED |= {"verdict": "failed", "reason": "the server died"}
UNASKED = UNPLAYED | {"verdict": "ok", "reason": "no request arrived"}
SPOILT = {"attained": 0.6, "verdict": "disturbed", "reason": "others ran"}
KEPT = study("replay", SHARED, OTHER, ALONE)

OF_REPLAYS = {
    "Together on cpu1, a and b keep their SLAs under bursts": (
        KEPT,
        study("replay", SHARED | MISSED, OTHER),
    ),
    "Together on cpu1, a keeps its SLA under bursts": (
        study("replay", SHARED, OTHER | UNASKED),
        KEPT,
    ),
    "No request of b arrived.": (
        study("replay", SHARED, OTHER | UNASKED),
        study("replay", SHARED, OTHER | UNASKED, OTHER | AGAIN),
    ),
    "The data do not show whether the tenants on cpu1 keep their SLAs under bursts No request of"
    " a arrived.": (
        study("replay", SHARED | UNASKED),
        KEPT,
    ),
    "On cpu1, a keeps its SLA under the trace": (
        study("replay", ALONE | {"process": "trace"}),
        KEPT,
    ),
    "keeps its SLA under Poisson arrivals": (
        study("replay", SHARED | {"process": "poisson"}),
        KEPT,
    ),
    "keeps its SLA under gamma arrivals": (study("replay", SHARED | {"process": "gamma"}), KEPT),
    "Together on cpu1, a misses its SLA under bursts": (
        study("replay", SHARED | MISSED, OTHER),
        KEPT,
    ),
    "a and b miss their SLAs under bursts": (
        study("replay", SHARED | MISSED, OTHER | MISSED),
        study("replay", SHARED, ALONE | MISSED),
    ),
    "the tenants on cpu1 keep their SLAs under bursts a, 50.0 requests/s: 96.0 % of the requests"
    " got a response within 60 ms": (  # from the valid repeat
        study("replay", SHARED, SHARED | AGAIN | SPOILT),
        study("replay", SHARED | SPOILT),
    ),
    "the tenants on cpu1 keep their SLAs under bursts a, 50.0 requests/s: 60.0 % of the requests"
    " got a response within 60 ms (95.0 % to 97.0 %), and the SLA requires 95 %; 90.0 % in the"
    " worst minute; longest recovery after a burst: 2.50 s. others ran.": (
        study("replay", SHARED | SPOILT),
        study("replay", SHARED, SHARED | AGAIN | SPOILT),
    ),
    "The data do not show whether the tenants on cpu1 keep their SLAs under bursts the server"
    " died.": (
        study("replay", SHARED | UNPLAYED),
        KEPT,
    ),
    "a, 50.0 requests/s: 96.0 % of the requests got a response within 60 ms (95.0 % to 97.0 %), and"
    " the SLA requires 95 %": (
        KEPT,
        study("replay", SHARED | {"attained": 0.955}),
    ),
    "a misses its SLA under bursts a, 50.0 requests/s: 94.97 % of the requests got a response": (
        study("replay", SHARED | MISSED | {"attained": 0.9497}, OTHER),
        KEPT,
    ),
    "; in the worst of 2 repeats": (study("replay", SHARED, SHARED | AGAIN), KEPT),
    "; 99.0 % alone on the server": (KEPT, study("replay", SHARED, OTHER)),
    "; 90.0 % in the worst minute": (KEPT, study("replay", SHARED | {"duration_s": 30.0})),
    "; longest recovery after a burst: 2.50 s.": (
        KEPT,
        study("replay", SHARED | {"worst_recovery_s": None}),
    ),
    "; no recovery from a burst before the window ended.": (
        study("replay", SHARED | {"worst_recovery_s": float("inf")}),
        KEPT,
    ),
}

# Soak

LATENCY = {"tenant": "a", "quantity": "p95", "unit": "ms", "hours": 3.9, "level": 20.0}
LATENCY |= {
    "windows": 9,
    "per_hour": 0.1,
    "low_per_hour": -0.2,
    "high_per_hour": 0.4,
    "drift": "steady",
}
MEMORY = LATENCY | {"tenant": None, "quantity": "memory", "unit": "MB"}
LEAK = MEMORY | {"drift": "grows", "per_hour": 12.0, "low_per_hour": 10.0, "high_per_hour": 14.0}
UNSEEN = {"windows": 0, "drift": "too short to tell"}
DIED = {"reason": "the server died"}
ANSWERED = LATENCY | {"quantity": "failed requests", "unit": "%", "level": 0.0}
ANSWERED |= {"requests": 42_000, "failed_requests": 0}
FEW = ANSWERED | {"failed_requests": 42, "level": 0.1}
MANY = ANSWERED | {"failed_requests": 4200, "failing_from_hours": 2.6, "drift": "too short to tell"}
INFINITE = LATENCY | {"drift": "infinite at times"}
SMALL = {"per_hour": 0.1, "low_per_hour": 0.05, "high_per_hour": 0.15}
LATE = FEW | {"failed_requests": 210, "failing_from_hours": 3.8}
STEADY = study("soak", LATENCY, ANSWERED, MEMORY)

OF_SOAKS = {
    "No measured value grows on cpu1 during 3.90 h": (STEADY, study("soak", LATENCY, LEAK)),
    "No measured value grows on cpu1 during 0.500 h": (  # memory was observed for 3.9 h
        study("soak", LATENCY | {"hours": 0.5}, MEMORY),
        STEADY,
    ),
    "0.500 h on cpu1 are too short to tell whether the following values grow: p95 of a": (
        study("soak", LATENCY | {"hours": 0.5, "drift": "too short to tell"}, MEMORY),
        study("soak", LATENCY | {"drift": "too short to tell"}, MEMORY),
    ),
    "On cpu1, the following values grow during 3.90 h: memory memory: starts at 20.0 MB and changes"
    " by 12.0 MB per hour (10.0 to 14.0).": (study("soak", LATENCY, LEAK), STEADY),
    "the following values grow during 3.90 h: p95 of a": (
        study("soak", LATENCY | {"drift": "grows"}),
        study("soak", LATENCY, LEAK),
    ),
    "grows on cpu1 during 3.90 h p95 of a: starts at": (
        study("soak", LATENCY | {"drift": "falls"}),
        STEADY,
    ),
    "3.90 h on cpu1 are too short to tell whether the following values grow: p95 of a": (
        study("soak", LATENCY | {"drift": "too short to tell"}),
        study("soak", LATENCY, MEMORY | UNSEEN),
    ),
    "On cpu1, requests of a failed during 3.90 h 10.0 % of a's requests failed (4200 of 42000);"
    " after 2.60 h, over 1 % failed.": (
        study("soak", INFINITE, MANY, MEMORY),
        study("soak", LATENCY, FEW, MEMORY),
    ),
    "On cpu1, requests of a and b failed during 3.90 h": (
        study("soak", MANY, LEAK, MANY | {"tenant": "b"}),
        study("soak", MANY, LEAK, FEW | {"tenant": "b"}),
    ),
    "grows on cpu1 during 3.90 h 0.100 % of a's requests failed (42 of 42000).": (
        study("soak", LATENCY, FEW, MEMORY),
        STEADY,
    ),
    "On cpu1, the following values grow during 3.90 h: failed requests of a failed requests of a:"
    " starts at 0.100 % and changes by 0.100 % per hour (0.0500 to 0.150).": (
        study("soak", LATENCY, FEW | {"drift": "grows", **SMALL}),
        study("soak", LATENCY, FEW),
    ),
    "On cpu1, the data do not show whether the following values grow, because each was infinite in"
    " some windows during 3.90 h: p95 of a 0.100 % of a's requests failed (42 of 42000).": (
        study("soak", INFINITE, FEW, MEMORY),
        study("soak", LATENCY, FEW, MEMORY),
    ),
    "0.500 % of a's requests failed (210 of 42000); after 3.80 h, over 1 % failed.": (
        study("soak", LATENCY, LATE),
        study("soak", LATENCY, FEW),
    ),
    "No measured value grows on cpu1 during 3.90 h 7.30 % of a's requests were late; its SLA allows"
    " 5.00 %.": (
        study("soak", LATENCY | {"exceedance": 0.073, "allowed": 0.05}, MEMORY),
        study("soak", LATENCY | {"exceedance": 0.05, "allowed": 0.05}, MEMORY),
    ),
    "grows on cpu1 during 3.90 h No window measured the following values: memory.": (
        study("soak", LATENCY, MEMORY | UNSEEN),
        STEADY,
    ),
    "grows on cpu1 during 3.90 h the server died.": (
        study("soak", LATENCY, LATENCY | AGAIN | UNSEEN | {"verdict": "failed", **DIED}),
        STEADY,
    ),
    "cpu1 failed under the load it died after 2 h.": (
        study("soak", LATENCY | {"verdict": "infeasible", "reason": "it died after 2 h"}),
        study("soak", LATENCY | {"verdict": "infeasible", "windows": 0}),  # no model to serve
    ),
    "The drift of values on cpu1 is not known others ran.": (
        study("soak", LATENCY | {"verdict": "disturbed", "reason": "others ran"}),
        STEADY,
    ),
}

SOAKED = {
    "no": (study("soak", INFINITE, MANY, MEMORY), study("soak", LATENCY, LATE)),
    "unclear": (study("soak", INFINITE, FEW, MEMORY),),
    "yes": (STEADY, study("soak", LATENCY, FEW, MEMORY)),
}

# Start-up, A/A, closed loops, background load

START = dict(CELL)
START |= {"tenant": "a", "page_cache": "warm", "ready_s": 3.0, "resident_share": 1.0}
START |= {"first_inference_ms": 80.0, "steady_inference_ms": 8.0}


DEAD = {"start": None, "ready_s": None, "page_cache": None, "first_inference_ms": None}
DEAD |= {"verdict": "failed", "reason": "start 2: it died"}
REMOTE = {"resident_share": None}


def starts(*rows):
    return study("startup", *({"start": i + 1} | START | row for i, row in enumerate(rows)))


OF_STARTS = {
    "The remote server cpu1 loads the models of a in 3.10 s (3.00 to 3.20 in 2 loads)": (
        starts(REMOTE, REMOTE | {"ready_s": 3.2}),
        starts({}, {"ready_s": 3.2}),
    ),
    "A fresh cpu1 server of a is ready after 3.10 s with a warm page cache (3.00 to 3.20 in 2"
    " starts)": (starts({}, {"ready_s": 3.2}), starts({})),
    " or 5.00 s with a cold page cache (5.00 to 5.00 in one start)": (
        starts({}, {"page_cache": "cold", "ready_s": 5.0, "resident_share": 0.0}),
        starts({}, {}),
    ),
    "in one start, 80 % of the files still in the cache)": (
        starts({"page_cache": "cold", "resident_share": 0.8}),
        starts({"page_cache": "cold", "resident_share": 0.0}),
    ),
    "Not every server started: start 2: it died.": (
        starts(DEAD | {"ready_s": 3.0}),
        starts({}),
    ),
    "The start time of a fresh cpu1 server of a is not known start 2: it died.": (
        starts(DEAD),
        starts({}, DEAD),
    ),
    "The first request to a takes 80.0 ms, later requests 8.00 ms (medians).": (
        starts({}),
        starts({"first_inference_ms": None}),
    ),
}

NOISE = {"restart": 1, "noise_floor": 0.12, "between_windows": 0.02, "windows_low": 0.01}
NOISE |= {"windows_high": 0.03, "between_restarts": 0.04, "restarts_low": 0.02}
NOISE |= {"restarts_high": 0.09}

OF_NOISE = {
    "On cpu1, differences of throughput below 12 % may be noise of this host The standard deviation"
    " of the throughput is 2.0 % (1.0 % to 3.0 %) between windows of a server, and 4.0 % (2.0 % to"
    " 9.0 %) between restarted servers.": (
        study("aa", NOISE),
        study("aa", NOISE, NOISE | AGAIN | {"noise_floor": 0.2}),
    ),
    "The noise floor of cpu1 is not known others ran.": (
        study("aa", NOISE | {"noise_floor": None, "reason": "others ran"}),
        study("aa", NOISE),
    ),
}

KNEE = {"knee": 2.0, "knee_low": 1.8, "knee_high": 2.2, "saturated_rps": 300.0, "bracketed": True}
KNEE |= {"saturated_low_rps": 290.0, "saturated_high_rps": 310.0, "highest": None}
FALLS = {"kappa": 0.01, "highest": 8.0, "highest_low": 7.0, "highest_high": 9.0}
LOOP = CELL | {"tenant": "a", "concurrency": 32, "valid": True}


def loops(*rows, **more):
    levels = [LOOP | {"cell": (CELL | row)["cell"]} | more for row in rows]
    return study("knees", *rows, concurrency=levels)


OF_LOOPS = {
    "cpu1 reaches its knee with a at 2.00 requests in flight The knee, beyond which throughput"
    " hardly grows, lies at 2.00 (1.80 to 2.20) requests in flight.": (
        loops(KNEE),
        loops(KNEE | {"knee": 2.1}),
    ),
    "With more requests in flight, throughput tends to 300 (290 to 310) requests/s.": (
        loops(KNEE),
        loops(KNEE | FALLS),
    ),
    "is not known it lies above the highest level.": (
        loops(KNEE | {"bracketed": False, "reason": "it lies above the highest level"}),
        loops(KNEE),
    ),
    "is not known it was not loaded.": (
        study("knees", {"reason": "it was not loaded", "bracketed": False}),
        loops(KNEE),
    ),
    "Beyond 8.00 requests in flight, throughput falls.": (
        loops(KNEE | FALLS),
        loops(KNEE | FALLS | {"highest_high": float("inf")}),
    ),
    "in flight, throughput falls.": (
        loops(KNEE | FALLS),
        loops(KNEE | FALLS | {"highest": 40.0}),  # the highest level is 32
    ),
    "Beyond 8.00 requests in flight, throughput": (
        loops(KNEE | FALLS),
        loops(KNEE | FALLS, valid=False),
    ),
    "Beyond 8.00 requests in flight, throughput falls in 1 of 3 repeats.": (
        loops(KNEE | FALLS, KNEE | AGAIN, KNEE | AGAIN | {"cell": "cpu1.s.x.r3"}),
        loops(KNEE | FALLS, KNEE | FALLS | AGAIN),
    ),
    "The knee of cpu1 is not known too few levels.": (
        loops({"reason": "too few levels", "bracketed": False}),
        loops(KNEE),
    ),
}

BACKGROUND = {
    "load_line": "b-50",
    "searched": "a",
    "background_tenants": "b",
    "background_at": "50 % of its peak",
}
BACKGROUND |= {
    "peak_rps": 40.0,
    "share": 0.4,
    "share_low": 0.3,
    "share_high": 0.5,
    "background_share": 0.5,
}
BACKGROUND |= {"sharing_ratio": 0.9, "sharing_ratio_low": 0.8, "sharing_ratio_high": 1.1}
GAIN = {"sharing_ratio": 1.2, "sharing_ratio_low": 1.1, "sharing_ratio_high": 1.3}
LOSS = {"sharing_ratio": 0.7, "sharing_ratio_low": 0.6, "sharing_ratio_high": 0.8}
UNHELD = dict.fromkeys(GAIN) | {"verdict": "failed", "reason": "the server died"}

OF_BACKGROUNDS = {
    "With all tenants but one at fixed rates, the data do not show whether sharing cpu1 saves"
    " money": (
        study("background", BACKGROUND),
        study("background", BACKGROUND | GAIN),
    ),
    "With all tenants but one at fixed rates, sharing cpu1 saves money": (
        study("background", BACKGROUND | GAIN),
        study("background", BACKGROUND | GAIN, BACKGROUND | {"load_line": "b-25"}),
    ),
    "With all tenants but one at fixed rates, sharing cpu1 costs more than dedicated servers": (
        study("background", BACKGROUND | LOSS),
        study("background", BACKGROUND),
    ),
    "With all tenants but one at fixed rates, sharing cpu1 (cpu1.s) saves money": (
        study("background", BACKGROUND | GAIN, BACKGROUND | LOSS | {"scenario": "cpu1.t"}),
        study("background", BACKGROUND | GAIN, BACKGROUND | GAIN | {"load_line": "b-25"}),
    ),
    "Beside b (50 % of its peak), a reaches 40.0 requests/s, 0.40 (0.30 to 0.50) of its dedicated"
    " peak; the sharing ratio is 0.90 (0.80 to 1.10).": (
        study("background", BACKGROUND),
        study("background", BACKGROUND | LOSS),
    ),
    "The table has the peaks beside other loads.": (
        study("background", *(BACKGROUND | {"load_line": f"b-{i}"} for i in range(7))),
        study("background", *(BACKGROUND | {"load_line": f"b-{i}"} for i in range(6))),
    ),
    "saves money (1 of 2 load lines have an estimate)": (
        study("background", BACKGROUND | GAIN, BACKGROUND | UNHELD | {"load_line": "b-25"}),
        study("background", BACKGROUND | GAIN),
    ),
    "There is no estimate of the peak of a beside b (50 % of its peak): the server died.": (
        study("background", BACKGROUND | GAIN, BACKGROUND | UNHELD | {"load_line": "b-25"}),
        study("background", BACKGROUND),
    ),
    "The capacity of cpu1 with all tenants but one at fixed rates is not known the server died.": (
        study("background", BACKGROUND | UNHELD),
        study("background", BACKGROUND),
    ),
}

# Catalogue

COSTS = {"model": "a", "tenant": "a", "runtime": "openvino", "precision": "fp32"}
COSTS |= {"request_batch_size": 1, "sla": "latency", "relative_error": 1e-5}
COSTS |= {"usd_per_million_inferences": 0.2, "on_front": True, "accuracy": 70.0, "front": "fp32"}
DEARER = COSTS | {"model": "b", "usd_per_million_inferences": 0.4, "accuracy": 80.0}
BEATEN = DEARER | {"model": "c", "accuracy": 75.0, "on_front": False}
INT8 = COSTS | {"precision": "int8", "relative_error": 0.5, "front": "int8"}
LABELLED = {"front": "measured"}
LOST_ROW = BEATEN | {"verdict": "uncertified", "reason": "at 3 requests/s: late"}
DIED_CELL = DEARER | {"cell": "cpu1.s.x.r2", "sla": "", "usd_per_million_inferences": None}
DIED_CELL |= {"on_front": None, "verdict": "failed", "reason": "the server died"}
MANY_OF_THEM = [COSTS | {"model": f"m{i}", "usd_per_million_inferences": i} for i in range(1, 18)]
GUESSED = {"study": "s", "model": "a", "family": "a", "runtime": "openvino", "precision": "fp32"}
GUESSED |= {
    "server": "cpu1",
    "setting": "",
    "request_batch_size": 8,
    "networks": 9,
    "measured_ms": 1.0,
    "predicted_ms": 1.2,
}
GUESSED |= {"ratio": 1.2, "without_family_ms": 1.5, "family_ratio": 1.5}
STRANGE = GUESSED | {"without_family_ms": None, "family_ratio": None}

OF_CATALOGUES = {
    "2 of 3 networks are on the Pareto front: 70.0 % accuracy at $0.200 to 80.0 % at $0.400 per"
    " million images (fp32, 1 image per request, SLA of the study)": (
        study("catalogue", COSTS, DEARER, BEATEN),
        study("catalogue", COSTS, DEARER),
    ),
    "SLA: a multiple of the latency without load": (
        study("catalogue", COSTS | {"sla": "times_unloaded"}),
        study("catalogue", COSTS),
    ),
    "a (OpenVINO, fp32) has 70.0 % top-1 accuracy at 0.200 USD per million images and b (OpenVINO,"
    " fp32) has": (
        study("catalogue", DEARER, COSTS),
        study("catalogue", COSTS),
    ),
    "These are evenly spread examples of the 17 networks on the front.": (
        study("catalogue", *MANY_OF_THEM),
        study("catalogue", *MANY_OF_THEM[:8]),
    ),
    "In int8, the median relative error of the output values is 0.500. The published accuracies do"
    " not take this error into account.": (
        study("catalogue", INT8),
        study("catalogue", INT8 | LABELLED),
    ),
    "1 of 1 network is on the Pareto front: 70.0 % accuracy at $0.200 per million images (measured"
    " accuracies, 1 image per request, SLA of the study)": (
        study("catalogue", INT8 | LABELLED),
        study("catalogue", INT8),
    ),
    "a (OpenVINO, int8) has 70.0 % measured top-1 accuracy at 0.200 USD per million images.": (
        study("catalogue", INT8 | LABELLED),
        study("catalogue", INT8),
    ),
    "There is no certified rate for 1 cell, for example cpu1.s.x.r1 (at 3 requests/s: late).": (
        study("catalogue", COSTS, LOST_ROW),
        study("catalogue", COSTS, BEATEN),
    ),
    "There is no certified rate for 1 cell, for example cpu1.s.x.r2 (the server died).": (
        study("catalogue", COSTS, DIED_CELL),
        study("catalogue", COSTS, DIED_CELL | {"request_batch_size": 8}),
    ),
    "The networks on the Pareto front of accuracy and cost are not known": (
        study("catalogue", COSTS | {"on_front": None}),
        study("catalogue", COSTS),
    ),
    "Perseus predicts the time per image of an unmeasured network from its graph: half of the"
    " predictions are within a factor of 1.20 of the measured time": (
        study("catalogue_predictions", GUESSED),
        study("catalogue_predictions", GUESSED | {"ratio": 1.3}),
    ),
    "openvino in fp32 on cpu1, 8 images per request, 1 network: half of the predictions differ from"
    " the measured time by a factor of at most 1.20, and 90 % of the predictions by a factor of at"
    " most 1.20; if the prediction uses only networks of other families, half of the predictions"
    " differ from the measured time by a factor of at most 1.50": (
        study("catalogue_predictions", GUESSED),
        study("catalogue_predictions", STRANGE),
    ),
    "openvino in fp32 on cpu1 (instances-2), 8 images per request, 1 network: half of": (
        study("catalogue_predictions", GUESSED, GUESSED | {"setting": "instances-2"}),
        study("catalogue_predictions", GUESSED),
    ),
}

CASES = {**OF_SLOWDOWNS, **OF_REPLAYS, **OF_SOAKS, **OF_STARTS, **OF_NOISE, **OF_LOOPS}
CASES |= OF_BACKGROUNDS | OF_CATALOGUES


@pytest.mark.parametrize("sentence", CASES)
def test_a_sentence_stands_where_it_is_true_and_only_there(sentence):
    stands_only_where_true(sentence, *CASES[sentence])


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_every_sentence_of_a_kind_has_a_case(kind):
    assert without_case(module_of(kind), CASES) == []


@pytest.mark.parametrize("kind", synthetic_files.OF_KIND)
def test_a_study_of_one_kind_has_a_conclusion_and_leads_to_its_table(kind, tmp_path):
    cells = [synthetic_files.OF_KIND[kind](tmp_path)]
    made = synthetic_files.all_tables(StudyResults.read(synthetic.TASK, cells, []))
    (conclusion,) = conclusions({name: table.to_pandas() for name, table in made.items()})
    assert conclusion.headline and conclusion.behind


def test_a_soak_with_errors_in_its_last_third_is_a_no(tmp_path):
    folder = synthetic_files.write_soak(tmp_path)
    synthetic_files.fail_requests(folder, 0.3, first=40)
    made = synthetic_files.all_tables(StudyResults.read(synthetic.TASK, [folder], []))
    (conclusion,) = conclusions({name: table.to_pandas() for name, table in made.items()})
    assert conclusion.kind == "no" and "failed" in conclusion.headline
    assert "after 0.675 h, over 1 % failed" in " ".join(conclusion.sentences)


@pytest.mark.parametrize("kind", SOAKED)
def test_a_soak_whose_requests_are_not_answered_is_no_yes(kind):
    assert [each.kind for tables in SOAKED[kind] for each in conclusions(tables)] == [kind] * len(
        SOAKED[kind]
    )


def test_what_smoke_measured_answers_nothing():
    smoke = {"preset": "smoke", "kind": "dedicated", "scenario": "cpu1.a", "verdict": "ok"}
    measured = tables_of({"slowdown": [CELL | row for row in TWO], "peaks": [CELL | smoke]})
    assert "slow each other down" not in sentences_of(measured)
