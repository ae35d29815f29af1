"""Tests that a conclusion contains each sentence if, and only if, its tables imply the sentence."""

import numpy as np
import pytest
from sentences import (
    sentences_of,
    stands_only_where_true,
    tables_of,
    without_case,
)

from perseus.report.conclusions import QUESTIONS, conclusions, module_of, sharing
from perseus.results.fleets.plans import DEDICATED, ONE_TYPE, SHARING
from perseus.results.tables import TABLES
from perseus.study.experiments import OTHER_KINDS

MIX = "a 1 : 1 b"
COMMON = {"study": "s", "server": "cpu1", "preset": "standard", "weights": "", "reason": ""}
REPEATED = {"verdict": "ok", "repeats": 3, "repeats_used": 3}
ALONE = {"kind": "dedicated", "load_line": "peak"}
SHARED = {"scenario": "cpu1.shared", "load_line": "mix-1-1", "kind": "mix", "models": "a + b"}
SHARED |= {"mix": MIX}
OF_LINES = [
    {"scenario": "cpu1.a", "models": "a", "mix": "a", **ALONE},
    {"scenario": "cpu1.b", "models": "b", "mix": "b", **ALONE},
    SHARED,
]
PEAK = {"certified_rps": 90.0, "estimate_rps": 100.0, "ci_low_rps": 95.0, "ci_high_rps": 105.0}
PEAK |= {"other_load": "", "measured_s": 100.0}
SAVED = {
    **{"saving": 0.2, "ci_low": 0.15, "ci_high": 0.25, "probability_of_saving": 0.98},
    **{"ci_simultaneous_low": 0.14, "ci_simultaneous_high": 0.26, "lines_compared": 1},
    "sharing_ratio": 1.25,
}
LOST = {"saving": -0.2, "ci_low": -0.3, "ci_high": -0.1, "sharing_ratio": 0.83}
LOST |= {"ci_simultaneous_low": -0.31, "ci_simultaneous_high": -0.09}
UNCLEAR = {"saving": 0.01, "ci_low": -0.1, "ci_high": 0.1, "probability_of_saving": 0.55}
UNCLEAR |= {"ci_simultaneous_low": -0.11, "ci_simultaneous_high": 0.11}
WIDE = {"saving": 0.01, "ci_low": -0.3, "ci_high": 0.25}
WIDE |= {"ci_simultaneous_low": -0.32, "ci_simultaneous_high": 0.27}
OPEN = {"ci_low": -np.inf, "ci_high": 1.0}
OPEN |= {"ci_simultaneous_low": -np.inf, "ci_simultaneous_high": 1.0}
SURE_TOO = SHARED | {"scenario": "cpu1.sure"}
UNKNOWN = dict.fromkeys([*LOST, "probability_of_saving"])
COST = {
    **{"instance": "n1-standard-4", "accelerator": "", "share": 1.0, "region": "us-central1"},
    **{"pricing": "on_demand", "usd_per_hour": 0.1, "usd_per_million_inferences": 0.3},
    **{"ci_low_usd": 0.25, "ci_high_usd": 0.35, "dedicated_usd_per_million": 0.4},
}
OF_TENANTS = [
    line | {"tenant": name, "sla_percentile": 95.0, "sla_ms": 50.0}
    for line, names in zip(OF_LINES, ("a", "b", "ab"), strict=True)
    for name in names
]
ROWS = {
    "tenants": [COMMON | REPEATED | tenant for tenant in OF_TENANTS],
    "peaks": [COMMON | REPEATED | PEAK | line for line in OF_LINES],
    "savings": [COMMON | REPEATED | SAVED | SHARED],
    "costs": [COMMON | REPEATED | COST | line for line in OF_LINES],
}
"""Rows of a study of two models, alone and together. Sharing certainly saves money."""

Edits = dict[str, object]


def study(*edits, **more):
    """Return the tables of ROWS with edits and additional rows.

    An edit is the name of a table, the mix of the edited rows (None for all rows) and new values.
    `more` maps the name of a table to additional rows.
    """
    rows = {
        name: [dict(row) for row in [*ROWS.get(name, []), *more.get(name, [])]] for name in TABLES
    }
    for name, mix, values in edits:
        for row in rows[name]:
            if mix in (None, row.get("mix")):
                row |= values
    return tables_of(rows)


def without(table):
    return {**study(), table: study()[table].iloc[:0]}


def peaks(values, mix=None):
    return ("peaks", mix, values)


def savings(values, mix=None):
    return ("savings", mix, values)


SURE = study()
CLOSE = study(savings(UNCLEAR))
UNSURE_AT_ALL = study(savings(WIDE))
DEAR = study(savings(LOST))
ONCE = {"repeats": 1, "repeats_used": 1}
SMOKE = [(name, None, {"preset": "smoke"}) for name in ("peaks", "savings", "costs")]
OTHER = COMMON | REPEATED | SHARED | {"load_line": "mix-3-1", "mix": "a 3 : 1 b"}
WORSE = {"saving": 0.17, "sharing_ratio": 1.2, "lines_compared": 2}
FAR_WORSE = {"ci_low": 0.01, "ci_high": 0.05}
FAILED = OTHER | UNKNOWN | {"verdict": "failed", "reason": "the server died"}
ON_GPU = {"server": "gpu1", "scenario": "gpu1.shared"}
GPU_COST = COMMON | REPEATED | COST | OF_LINES[0] | {"server": "gpu1", "scenario": "gpu1.a"}
GPU_COST |= {"usd_per_million_inferences": 0.2, "ci_low_usd": 0.1, "ci_high_usd": 0.25}
ON_TWO_SERVERS = [
    COMMON
    | REPEATED
    | COST
    | ALONE
    | {"mix": f"m{n}", "server": server, "scenario": f"{server}.m{n}"}
    for n in range(13)
    for server in ("cpu1", "gpu1")
]
INFEASIBLE = UNKNOWN | {"verdict": "infeasible", "reason": "the SLA fails at every rate tested"}
NOTHING_SAVED = [savings(UNKNOWN | {"reason": "no dedicated peak of b"})]
NOT_LIMITED = {"estimate_rps": None, "ci_low_rps": None, "ci_high_rps": None}
NOTHING_FOUND = NOT_LIMITED | {"certified_rps": None, "repeats_used": 0}
DIED = NOTHING_FOUND | {"verdict": "failed"}


def all_end(verdict):
    """Return edits that give the mix the verdict `verdict` and remove the results of the mix."""
    ended = {"verdict": verdict, "reason": "it ended so"}
    return savings(UNKNOWN | ended, MIX), peaks(NOTHING_FOUND | ended, MIX)


def of_three(*weights, rates=(80.0, 100.0)):
    """Return mixes of three tenants that carry these rates and have no saving."""
    lines = [
        COMMON | REPEATED | SHARED | {"models": "a + b + c", "weights": each, "mix": each}
        | {"load_line": f"mix-{i}"} for i, each in enumerate(weights)
    ]  # fmt: skip
    found = [line | PEAK | {"estimate_rps": rps} for line, rps in zip(lines, rates, strict=True)]
    return tables_of({"savings": [line | UNKNOWN for line in lines], "peaks": found})


# For each sentence: tables that make it true, and tables that make it false.
OF_SHARING = {
    "No result: the preset smoke only shows that Perseus works": (study(*SMOKE), SURE),
    "For a result, use the preset quick or standard.": (study(*SMOKE), SURE),
    "No result for cpu1.shared: the preset smoke only": (
        study(*((name, MIX, values) for name, _, values in SMOKE)),
        SURE,
    ),
    "On full servers, a and b should share: sharing saves about 20 %": (SURE, DEAR),
    "On full servers, a and b should share: sharing saves about 20 % (14 % to 26 %)": (
        SURE,
        study(savings({"ci_simultaneous_high": 0.24})),
    ),
    "costs more than dedicated servers; the best mix costs 20 % more (9.0 % to 31 %)": (
        DEAR,
        study(savings(LOST | {"ci_simultaneous_low": -0.29})),
    ),
    "On full cpu1 servers, a and b should share": (
        study(savings=[COMMON | REPEATED | SHARED | LOST | ON_GPU]),
        SURE,
    ),
    "On full gpu1 servers, a and b should not share": (
        study(savings=[COMMON | REPEATED | SHARED | LOST | ON_GPU]),
        SURE,
    ),
    "On full servers (as in cpu1.other), a and b should share": (
        study(savings=[COMMON | REPEATED | SHARED | SAVED | {"scenario": "cpu1.other"}]),
        SURE,
    ),
    "a and b would probably gain from sharing": (
        study(savings({"ci_low": 0.01, "ci_simultaneous_low": -0.01})),
        SURE,
    ),
    "a and b should not share: every measured mix costs more than dedicated servers": (DEAR, SURE),
    "should not share: only 1 of 2 mixes has an estimate, and this mix costs more than dedicated"
    " servers": (
        study(savings(LOST, MIX), savings=[FAILED]),
        DEAR,
    ),
    "only 2 of 3 mixes have an estimate, and these mixes cost more than dedicated servers": (
        study(savings(LOST, MIX), savings=[OTHER | LOST, FAILED | {"mix": "a 1 : 3 b"}]),
        DEAR,
    ),
    "On full servers, sharing a and b saves at most 11 % and, in the best mix, costs at most"
    " 11 %": (
        CLOSE,
        study(savings(UNCLEAR | {"ci_simultaneous_high": 0.1})),
    ),
    # One end of the interval excludes a relevant difference, the other end does not.
    "sharing a and b saves at most 5.0 % and, in the best mix, costs at most 32 % more": (
        study(savings(WIDE | {"ci_simultaneous_high": 0.05})),
        UNSURE_AT_ALL,
    ),
    "sharing a and b saves at most 5.0 % and, in the best mix, may cost more": (
        study(savings(OPEN | {"ci_simultaneous_high": 0.05})),
        study(savings(OPEN)),
    ),
    "sharing a and b may save and, in the best mix, costs at most 5.0 % more": (
        study(savings(OPEN | {"ci_simultaneous_low": -0.05})),
        study(savings(OPEN)),
    ),
    "The data do not show whether a and b should share on full servers: the saving is": (
        UNSURE_AT_ALL,
        CLOSE,
    ),
    # The interval of the best mix does not contain 0, but the interval of another mix does.
    "The data do not show whether a and b should share on full servers One shared": (
        study(savings(LOST, MIX), savings=[OTHER | WIDE | {"saving": -0.4}]),
        UNSURE_AT_ALL,
    ),
    "should share on full servers One shared cpu1 server (a 1 : 1 b) carries 1.25 times the load"
    " that dedicated servers carry for the same money: sharing saves 20 % (95 % interval no"
    " bound": (
        study(savings(OPEN)),
        SURE,
    ),
    "(95 % interval 14 % to 26 %, corrected for the choice among 2 mixes; probability": (
        study(savings({"lines_compared": 2})),
        SURE,
    ),
    "should share on full servers: the saving is at least \N{MINUS SIGN}20 %": (
        study(savings(OPEN | {"ci_simultaneous_low": -0.2})),
        study(savings(OPEN)),
    ),
    "sharing costs 20 % more (95 % interval at most 31 %": (
        study(savings(LOST | {"ci_high": 1.0, "ci_simultaneous_high": 1.0})),
        DEAR,
    ),
    "(no estimate for a 3 : 1 b)": (study(savings=[FAILED]), SURE),
    "There is no estimate for a 3 : 1 b (the server died).": (study(savings=[FAILED]), SURE),
    "(one run each)": (study(peaks(ONCE)), study(peaks(ONCE, "a"))),
    "(one run of a)": (study(peaks(ONCE, "a")), study(peaks(ONCE))),
    "One cpu1 server carries about 100 requests/s of a and b together; this study does not"
    " show the saving of sharing a 1 : 1 b: no dedicated peak of b": (study(*NOTHING_SAVED), SURE),
    "One cpu1 server (as in cpu1.shared) carries about 100 requests/s of a and b together": (
        study(*NOTHING_SAVED, savings=[COMMON | REPEATED | SAVED | SURE_TOO]),
        study(*NOTHING_SAVED),
    ),
    "One cpu1 server carries at least 90.0 requests/s of a and b together": (
        study(*NOTHING_SAVED, peaks(NOT_LIMITED, MIX)),
        study(*NOTHING_SAVED),
    ),
    # The highest rate of all tenants, or of the tenants in the mix.
    "One cpu1 server carries about 80.0 requests/s of a, b and c together": (
        of_three("1 : 1 : 1", "1 : 1 : 0"),
        of_three("0 : 1 : 1", "1 : 1 : 0"),
    ),
    "One cpu1 server carries about 100 requests/s of b and c together": (
        of_three("0 : 1 : 1", "1 : 0 : 1", rates=(100.0, 90.0)),
        of_three("1 : 1 : 1", "0 : 1 : 1"),
    ),
    "For a and b together on one cpu1 server, no rate was certified: a 1 : 1 b (client limited);"
    " to measure a 1 : 1 b again, run `make again`": (
        study(*all_end("client_limited")),
        study(*all_end("client_limited"), peaks({"certified_rps": 90.0}, MIX)),
    ),
    "a 1 : 1 b (disturbed), a 3 : 1 b (failed); to measure a 1 : 1 b and a 3 : 1 b again, run": (
        study(*all_end("disturbed"), savings=[FAILED], peaks=[OTHER | DIED]),
        study(*all_end("disturbed")),
    ),
    "a 1 : 1 b (infeasible), a 3 : 1 b (failed); to measure a 3 : 1 b again, run `make again`": (
        study(*all_end("infeasible"), savings=[FAILED], peaks=[OTHER | DIED]),
        study(*all_end("infeasible")),
    ),
    "on one cpu1 server, no rate was certified: a 1 : 1 b (blocked); to measure b again, run": (
        study(*all_end("blocked"), peaks(NOTHING_FOUND | {"verdict": "unsteady"}, "b")),
        study(*all_end("blocked"), peaks(NOTHING_FOUND | {"verdict": "infeasible"}, "b")),
    ),
    # No verdict is temporary, so the reason of the mix follows the headline without advice.
    "on one cpu1 server, no rate was certified: a 1 : 1 b (blocked) a 1 : 1 b: it ended so": (
        study(*all_end("blocked"), peaks(NOTHING_FOUND | {"verdict": "infeasible"}, "b")),
        study(*all_end("blocked"), peaks(NOTHING_FOUND | {"verdict": "unsteady"}, "b")),
    ),
    "a and b should not share a cpu1 server: no measured mix can be served within every SLA": (
        study(
            savings(INFEASIBLE),
            peaks({**NOT_LIMITED, "certified_rps": None}, MIX),
            ("tenants", MIX, INFEASIBLE),
        ),
        # One of the two mixes failed, so it has no result.
        study(savings(INFEASIBLE, MIX), ("tenants", MIX, INFEASIBLE), savings=[FAILED]),
    ),
    "on one cpu1 server, no rate was certified: a 1 : 1 b (infeasible)": (  # not in all repeats
        study(
            *all_end("infeasible"),
            ("tenants", MIX, INFEASIBLE),
            tenants=[COMMON | SHARED | {"tenant": "a", "mix": "again", "verdict": "uncertified"}],
        ),
        study(*all_end("infeasible"), ("tenants", MIX, INFEASIBLE)),
    ),
    "One shared cpu1 server (a 1 : 1 b) carries 1.25 times the load that dedicated servers carry"
    " for the same money: sharing saves 20 % (95 % interval 14 % to 26 %; probability of a saving"
    " 0.980).": (
        SURE,
        DEAR,
    ),
    "; probability of a saving": (SURE, study(savings({"probability_of_saving": None}))),
    "carries 0.83 times the load that dedicated servers carry for the same money: sharing costs"
    " 20 % more (95 % interval 9.0 % to 31 %": (DEAR, SURE),
    "Sharing ratios of the other mixes: 1.20 (a 3 : 1 b).": (
        study(savings({"lines_compared": 2}), savings=[OTHER | SAVED | WORSE]),
        SURE,
    ),
    "The intervals of all of these mixes overlap with the interval of the best mix: the data do"
    " not show which mix is best.": (
        study(savings({"lines_compared": 2}), savings=[OTHER | SAVED | WORSE]),
        study(savings({"lines_compared": 2}), savings=[OTHER | SAVED | WORSE | FAR_WORSE]),
    ),
    "1.20 (a 3 : 1 b), 1.20 (a 3 : 1 b), and 1 more with a lower ratio.": (
        study(
            savings({"lines_compared": 6}),
            savings=[OTHER | SAVED | WORSE | {"load_line": f"mix-{n}-1"} for n in range(3, 8)],
        ),
        study(savings({"lines_compared": 2}), savings=[OTHER | SAVED | WORSE]),
    ),
    "On this host, two runs of the same cell on restarted servers may differ by 25 % (noise"
    " floor), so the effect of sharing may be noise.": (
        study(savings({"noise_floor": 0.25})),
        SURE,
    ),
    "On this host, two runs of the same cell on restarted servers may differ by 5.0 % (noise"
    " floor).": (
        study(savings({"noise_floor": 0.05})),
        study(savings({"noise_floor": 0.25})),
    ),
    "The interval of the saving contains 0, so neither a saving nor additional cost is certain. A"
    " million": (
        CLOSE,
        DEAR,
    ),
    "The interval of the saving contains 0, but a saving is unlikely.": (
        study(savings(UNCLEAR | {"probability_of_saving": 0.05})),
        CLOSE,
    ),
    "The interval of the saving contains 0, but a saving is likely.": (
        study(savings(UNCLEAR | {"probability_of_saving": 0.95})),
        CLOSE,
    ),
    "The interval of the saving of a 3 : 1 b contains 0, so neither a saving nor additional cost"
    " is certain.": (
        study(savings(LOST, MIX), savings=[OTHER | UNCLEAR | {"saving": -0.4}]),
        CLOSE,
    ),
    "A million inferences in the proportion of this mix cost 0.300 USD on shared servers (0.250 to"
    " 0.350) and 0.400 USD on dedicated servers (n1-standard-4 in us-central1, on-demand).": (
        SURE,
        without("costs"),
    ),
    "USD on dedicated servers (0.25 of n1-standard-4 with T4:1 in": (
        study(("costs", None, {"share": 0.25, "accelerator": "T4:1"})),
        SURE,
    ),
    "Only 2 of 3 repeats of a found a limit (repeat 2: it was lost). The estimate is the mean over"
    " the repeats that found a limit. The other repeats could have changed the estimate, so at"
    " least one end of its interval is open.": (
        study(peaks({"repeats_used": 2, "reason": "repeat 2: it was lost"}, "a")),
        SURE,
    ),
    "The estimate of a may be too low: in a valid window, others used 30%.": (
        study(peaks({"other_load": "others used 30%"}, "a")),
        SURE,
    ),
    "The speed of the server changed while a was measured (it slowed down).": (
        study(peaks({"verdict": "unsteady", "reason": "it slowed down"}, "a")),
        SURE,
    ),
    "Predicted, not measured: a 1 : 1 b.": (
        study(peaks({"verdict": "predicted", "certified_rps": None}, MIX)),
        SURE,
    ),
    "No tested rate of b was certified in every repeat, but the estimates are valid.": (
        study(peaks({"verdict": "uncertified", "certified_rps": None}, "b")),
        SURE,
    ),
    "No tested rate of a was certified": (
        study(peaks({"verdict": "failed", "repeats_used": 2, "certified_rps": None}, "a")),
        study(peaks({"verdict": "failed", "repeats_used": 2}, "a")),
    ),
    "was certified, but the estimates are valid.": (
        study(peaks(ONCE | {"verdict": "uncertified", "certified_rps": None}, "b")),
        study(peaks({"verdict": "uncertified", "certified_rps": None}, "b")),
    ),
    "Each estimate comes from one run: its interval includes the variation within the run, but not"
    " the variation between starts of the server.": (study(peaks(ONCE)), SURE),
    "Each estimate of a and b comes from one run": (
        study(peaks(ONCE, "a"), peaks(ONCE, "b")),
        study(peaks(ONCE)),
    ),
    sharing.QUICK: (study(peaks({"preset": "quick"}), savings({"preset": "quick"})), SURE),
    "The cheapest dedicated server of each model a is cheapest on gpu1: 0.200 USD per million"
    " inferences (0.100 to 0.250), according to the estimates for 2 servers (on-demand price).": (
        study(costs=[GPU_COST]),
        SURE,
    ),
    "The table lists all 13 models.": (
        study(costs=ON_TWO_SERVERS),
        study(costs=ON_TWO_SERVERS[2:]),
    ),
    "according to the estimates for 2 servers (on-demand price); uncertified: no rate passed.": (
        study(costs=[GPU_COST | {"verdict": "uncertified", "reason": "no rate passed"}]),
        study(costs=[GPU_COST]),
    ),
}


FLEET = {
    **{"study": "s", "level": "demand", "demand": "a 10, b 20", "reason": "", "servers": 3},
    **{"fleet": "3 x (a 1 : 1 b)", "usd_per_hour": 0.3, "usd_per_month": 219.0, "gap": 0.0},
    **{"saving": 0.25, "probability_enough": 0.97, "on_spot": 0.0, "lost_to_revocations": 0.0},
    **{"status": "optimal", "usd_per_month_expected": 219.0, "of_servers": "cpu1"},
}
APART = FLEET | {"strategy": DEDICATED, "servers": 4, "usd_per_hour": 0.4, "usd_per_month": 292.0}
APART |= {"saving": 0.0, "fleet": "2 x (a) + 2 x (b)"}
TOGETHER = FLEET | {"strategy": SHARING}
NO_FLEET = {"servers": None, "usd_per_hour": None, "usd_per_month": None, "fleet": ""}
NO_FLEET |= {"reason": "b has no known capacity", "saving": None}
NO_RATE = ("tenants", "b", {"verdict": "infeasible", "unloaded_p50_ms": 90.0})
MODEL = {"study": "s", "level": "demand", "strategy": SHARING, "model": "a", "demand_rps": 10.0}
MODEL |= {"servers_on_demand": 1}
MODEL |= {"capacity_rps": 30.0, "servers": 3, "sla_share": 0.95, "sla_ms": 40.0, "attained": 0.99}
MODELS = [MODEL, MODEL | {"model": "b", "attained": 0.96}]
POINT = {"study": "s", "scenario": "cpu1.shared", "load_line": "mix-1-1", "mix": MIX, "model": "a"}
CHANGE = {"study": "s", "level": "demand", "strategy": SHARING, "change": "demand x 1.25"}
CHANGE |= {"factor": 1.25, "reason": "", "servers": 4, "fleet": "", "usd_per_month": 292.0}
CHANGE |= {"cost_ratio": 4 / 3, "keeps_servers": False}


def fleet(*edits, together=(), apart=(), rows=(), models=MODELS, changes=(CHANGE,), images=1):
    """Return the study with a demand, for which three shared servers are bought."""
    servers = [TOGETHER | {"server": "cpu1"}, TOGETHER | {"server": "cpu2", "strategy": ONE_TYPE}]
    of = {
        "fleets": [*rows, APART | dict(apart), TOGETHER | dict(together)],
        "fleet_models": models,
        "fleet_changes": list(changes),
        "fleet_servers": servers,
        "operating_points": [POINT | {"request_batch_size": images}],
    }
    return study(*edits, **of)


ASKED = fleet()
AS_DEAR = fleet(together={"usd_per_hour": 0.4, "usd_per_month": 292.0, "saving": 0.0})
TYPED = TOGETHER | {"strategy": ONE_TYPE, "usd_per_month": 365.0, "usd_per_hour": 0.5}
LOW = {"level": "low", "servers": 1, "usd_per_month": 73.0, "demand": "a 1, b 2"}
AT_NIGHT = [APART | LOW, TOGETHER | LOW]
OPEN_ABOVE = {"ci_high_rps": np.inf}
MAY_SAVE_LESS = fleet(peaks(OPEN_ABOVE, "a"))
MAY_SAVE_MORE = fleet(peaks(OPEN_ABOVE, MIX))
OFTEN = {"on_spot": 0.4}
KNOWN = {"saving_if_known_low": 0.1, "saving_if_known_high": 0.3, "probability_of_saving": 0.99}

OF_FLEETS = {
    "The servers that the demand needs are not known: b has no known capacity": (
        fleet(together=NO_FLEET),
        fleet(NO_RATE, together=NO_FLEET),
    ),
    "No fleet carries the demand: no measured server keeps the SLA of b": (
        fleet(NO_RATE, together=NO_FLEET),
        fleet(NO_RATE, together=NO_FLEET | {"demand": "a 10, b 0"}),
    ),
    "The demand is zero: no server is needed": (
        fleet(together={"servers": 0, "usd_per_month": 0.0}, models=[]),
        ASKED,
    ),
    "Buy 3 servers for 219 USD per month: 3 x (a 1 : 1 b)": (ASKED, fleet(together=NO_FLEET)),
    "Buy 1 server for": (fleet(together={"servers": 1}), ASKED),
    "These servers carry a 10, b 20 requests/s within every SLA. The plan uses lower limits of"
    " the measured capacities. The servers are enough with a probability of 0.970.": (
        ASKED,
        SURE,
    ),
    "The servers are enough with a probability > 0.999.": (
        fleet(together={"probability_enough": 1.0}),
        ASKED,
    ),
    "Each capacity exceeds its lower limit with a probability of 95 %. The probability that all"
    " capacities exceed their lower limits at once is lower. To increase this probability, set a"
    " headroom (key demand.headroom).": (
        fleet(together={"probability_enough": 0.94}),
        fleet(together={"probability_enough": 0.95}),
    ),
    "The solver ran out of time: another fleet may cost up to 3.0 % less.": (
        fleet(together={"status": "time limit", "gap": 0.03}),
        ASKED,
    ),
    "Some capacities were measured with the preset smoke. Such measurements are too short to decide"
    " on a purchase.": (
        fleet(peaks({"preset": "smoke"}, "a")),
        ASKED,
    ),
    "In a simulated queue with Poisson arrivals, the fleet also keeps every SLA. The margin is"
    " smallest for b: 96 % of its requests take at most 40 ms.": (
        ASKED,
        fleet(models=[MODEL, MODEL | {"model": "b", "attained": 0.5}]),
    ),
    "smallest for a: 99.6 % of its requests take at most 40 ms.": (  # not rounded up to 100 %
        fleet(models=[MODEL | {"sla_share": 0.99, "attained": 0.996}]),
        ASKED,
    ),
    "But in a simulated queue with Poisson arrivals, only 50 % of the requests of b take at most"
    " 40 ms; the SLA requires 95 %. Before you buy, measure a server of this fleet at its planned"
    " load.": (
        # For model a, the share of requests within the SLA is unknown.
        fleet(models=[MODEL | {"attained": None}, MODEL | {"model": "b", "attained": 0.5}]),
        ASKED,
    ),
    "only 94.7 % of the requests of b take at most 40 ms; the SLA requires 95 %.": (
        fleet(models=[MODEL, MODEL | {"model": "b", "attained": 0.9468}]),
        fleet(models=[MODEL, MODEL | {"model": "b", "attained": 0.95}]),
    ),
    "only 99.89 % of the requests of b take at most 40 ms; the SLA requires 99.9 %.": (
        fleet(models=[MODEL, MODEL | {"model": "b", "attained": 0.9989, "sla_share": 1 - 0.001}]),
        ASKED,
    ),
    "In the simulated queue, 2 more models miss their SLA: see fleet_models.csv.": (
        fleet(models=[MODEL | {"model": name, "attained": 0.5} for name in "abcde"]),
        fleet(models=[MODEL | {"model": name, "attained": 0.5} for name in "abc"]),
    ),
    " + 1 x (m11) and 1 more load lines (see fleet_servers.csv)": (
        fleet(together={"fleet": " + ".join(f"1 x (m{i})" for i in range(13))}),
        fleet(together={"fleet": " + ".join(f"1 x (m{i})" for i in range(12))}),
    ),
    "m11 5 and 2 more models requests/s within every SLA": (
        fleet(together={"demand": ", ".join(f"m{i} 5" for i in range(14))}),
        fleet(together={"demand": ", ".join(f"m{i} 5" for i in range(12))}),
    ),
    " simulated queue with Poisson arrivals": (
        ASKED,
        fleet(models=[MODEL, MODEL | {"model": "b", "attained": None}]),
    ),
    "The cost of a fleet of dedicated servers is not known: b has no known capacity.": (
        fleet(apart=NO_FLEET),
        ASKED,
    ),
    "Dedicated servers cost more: 4 servers for 292 USD per month. Sharing saves 25 %.": (
        ASKED,
        AS_DEAR,
    ),
    "Sharing saves 25 %. The saving may be smaller, because the measurements give no upper limit"
    " for the capacity of a dedicated server.": (MAY_SAVE_LESS, MAY_SAVE_MORE),
    " (95 % interval 10 % to 30 %; probability of a saving 0.990).": (
        fleet(together=KNOWN),
        ASKED,
    ),
    "Sharing saves nothing at this demand: a fleet of dedicated servers costs as much as this"
    " fleet.": (
        AS_DEAR,
        ASKED,
    ),
    "The saving of sharing is not known: the measurements give no lower limit for the capacity of a"
    " server that these models share.": (
        fleet(peaks({"ci_low_rps": 0.0}, MIX), together={"usd_per_hour": 0.4, "saving": 0.0}),
        AS_DEAR,
    ),
    # The fleet has servers of type cpu2, and sharing was measured on cpu1.
    "The saving of sharing is not known: the measurements give no lower limit": (
        fleet(together={"usd_per_hour": 0.4, "saving": 0.0, "of_servers": "cpu2"}),
        AS_DEAR,
    ),
    "With servers of type cpu2 only, the fleet would cost 365 USD per month: 3 x (a 1 : 1 b).": (
        fleet(rows=[TYPED]),
        fleet(rows=[TYPED | {"usd_per_hour": 0.3}]),
    ),
    "At the low demand (a 1, b 2 requests/s), 1 server would be enough, for 73.0 USD per month.": (
        fleet(rows=AT_NIGHT),
        fleet(rows=[row | {"servers": 0} for row in AT_NIGHT]),
    ),
    "No server is planned for b at the low demand: the demand is 0.": (
        fleet(rows=[row | {"demand": "a 1, b 0"} for row in AT_NIGHT]),
        fleet(rows=[row | {"demand": "a 1, b 10"} for row in AT_NIGHT]),
    ),
    "No server is planned for c, d: the demand is 0.": (
        fleet(together={"demand": "a 1, c 0, d 0"}),
        fleet(together={"demand": "a 1, c 0.1, d 20"}),
    ),
    "For 25 % more demand, you need 4 servers for 292 USD per month.": (
        ASKED,
        fleet(changes=[CHANGE | {"usd_per_month": None, "servers": None, "reason": "none"}]),
    ),
    "40 % of the demand is on servers at the spot price; on average over time, the fleet loses"
    " 0.2 % of the whole demand, because a replacement for a revoked server must first start. This"
    " loss does not include the time in which a new machine boots. You also pay for replacement"
    " servers while they start, so expect a cost of 220 USD per month.": (
        fleet(together=OFTEN | {"lost_to_revocations": 0.002, "usd_per_month_expected": 220.0}),
        ASKED,
    ),
    "the fleet loses less than 0.1 % of the whole demand": (
        fleet(together=OFTEN | {"lost_to_revocations": 1e-5}),
        fleet(together=OFTEN | {"lost_to_revocations": 0.002}),
    ),
    "If all spot servers were revoked at once, the model with the fewest remaining servers would"
    " have 1 server.": (
        fleet(together=OFTEN, models=[MODEL | {"servers_on_demand": 2}, MODEL]),
        ASKED,
    ),
    "the loss through revocations is not known, because no experiment of the kind startup measured"
    " the start time of a server.": (
        fleet(together=OFTEN | {"lost_to_revocations": None}),
        fleet(together=OFTEN | {"lost_to_revocations": 0.002}),
    ),
    "Predicted, not measured: a 1 : 1 b.": (
        fleet(peaks({"verdict": "predicted", "certified_rps": None}, MIX)),
        ASKED,
    ),
    "No tested rate of a 1 : 1 b was certified in every repeat, but the estimates are valid.": (
        fleet(peaks({"verdict": "uncertified", "certified_rps": None}, MIX)),
        ASKED,
    ),
    "The capacities of a 1 : 1 b were measured with requests of several images each. With requests"
    " of single images, servers may carry fewer images.": (fleet(images=8), ASKED),
    "The capacities come from a single run: their intervals do not include the variation between"
    " starts of a server.": (
        fleet(peaks(ONCE)),
        fleet(peaks(ONCE, "a")),
    ),
    "Some capacities come from a single run: their intervals do not include the variation between"
    " starts of a server.": (
        fleet(peaks(ONCE, "a")),
        # A load line without a limit gives no capacity.
        fleet(peaks(NOT_LIMITED | {"repeats_used": 0}, MIX)),
    ),
}


STRETCH = {"study": "s", "models": "a + b", "proportion": "a 50%, b 50%", "server": "cpu1"}
STRETCH |= {"cheapest": "", "from_rps": 1.0, "to_rps": 100.0, "shared": True, "reliable": True}
STRETCH |= {"least_saving": 0.1, "most_saving": 0.5, "from_servers": 1, "to_servers": 2}
STRETCH |= {"probability_of_saving": None}  # unknown for too many possible fleets
STRETCH |= {"from_usd_per_month": 34.5, "to_usd_per_month": 69.0}
LATER = {"from_rps": 101.0, "to_rps": 1000.0}
AGAIN = {"shared": False, "least_saving": 0.0, "most_saving": 0.0}
DOUBTFUL = {"reliable": False}
AT_100 = {"from_rps": 100.0, "to_rps": 100.0}
A_ON_GPU = COMMON | REPEATED | PEAK | OF_LINES[0] | {"server": "gpu1", "scenario": "gpu1.a"}
OF_ONE = STRETCH | {"models": "a", "proportion": "a 100%", **AGAIN}


def over_demand(*demand_ranges, edits=()):
    return study(*edits, crossings=list(demand_ranges))


ALWAYS = over_demand(STRETCH)
FIRST = over_demand(STRETCH, STRETCH | LATER | AGAIN)
SECOND = over_demand(STRETCH | AGAIN, STRETCH | LATER)
NEVER = over_demand(STRETCH | AGAIN)
OPEN_ALONE = over_demand(STRETCH | DOUBTFUL, edits=[peaks(OPEN_ABOVE, "a")])
UNSURE = over_demand(
    STRETCH | {"probability_of_saving": 0.96},
    STRETCH | LATER | {"probability_of_saving": 0.6},
    STRETCH | AGAIN | {"from_rps": 1001.0, "to_rps": 1100.0},
)

MIXES = {
    "peaks": [OTHER | PEAK | {"weights": "3 : 1"}],
    "operating_points": [
        COMMON | line | {"model": model, "lower_rps": rps, "estimate_rps": rps}
        for line, rates in ((SHARED, (40.0, 45.0)), (OTHER, (60.0, 30.0)))
        for model, rps in zip("ab", rates, strict=True)
    ]
    + [
        COMMON | line | {"model": model, "lower_rps": 50.0, "estimate_rps": 60.0}
        for line, model in zip(OF_LINES, "ab", strict=False)
    ],
}

ONE_TO_ONE = peaks({"weights": "1 : 1"}, MIX)

OF_DEMANDS = {
    "a and b should share at every demand: sharing saves 10 % to 50 % (examined up to 100"
    " requests/s in total, 50 % : 50 %)": (ALWAYS, SECOND),
    "Up to 100 requests/s in total (50 % : 50 %), a and b should share servers: sharing saves 10 %"
    " to 50 %": (
        FIRST,
        ALWAYS,
    ),
    "These results are valid if the models get 50 % : 50 % of the requests, in the order of the"
    " headline. For other proportions, use the section Your demand of the report, or the key demand"
    " of the configuration.": (
        FIRST,
        over_demand(STRETCH | {"proportion": "a 60%, b 40%"}),
    ),
    "Up to 100 requests/s in total (99.7 % : 0.3 %), a and b should share servers: sharing saves": (
        over_demand(
            *(STRETCH | {"proportion": "a 99.7%, b 0.3%"} | of for of in ({}, LATER | AGAIN))
        ),
        FIRST,
    ),
    "a and b should share at some demands: sharing saves up to 50 %": (SECOND, FIRST),
    "sharing saves up to 70 %": (
        over_demand(
            STRETCH | AGAIN,
            STRETCH | LATER,
            STRETCH | AGAIN | {"from_rps": 1001.0, "to_rps": 1100.0},
            STRETCH | {"from_rps": 1101.0, "to_rps": 1200.0, "most_saving": 0.7},
        ),
        SECOND,
    ),
    "a and b should share at every demand: sharing saves 10 % to 50 % (96 % sure) (examined"
    " up to 100 requests/s": (
        over_demand(STRETCH | {"probability_of_saving": 0.96}),
        ALWAYS,
    ),
    "Up to 1000 requests/s in total (50 % : 50 %), a and b should share servers: sharing saves 10 %"
    " to 50 % (60 % sure)": (UNSURE, ALWAYS),
    "a and b should share at some demands: sharing saves up to 50 % (over 99 % sure)": (
        over_demand(STRETCH | AGAIN, STRETCH | LATER | {"probability_of_saving": 1.0}),
        SECOND,
    ),
    "requests/s in total: 1 shared cpu1 server for $34.5 to $69.0 a month": (
        over_demand(STRETCH | {"to_servers": 1}),
        ALWAYS,
    ),
    "101 to 1000 requests/s in total: 1 to 2 cpu1 servers": (UNSURE, ALWAYS),
    "101 requests/s in total: 1 to 2 cpu1 servers": (
        over_demand(STRETCH, STRETCH | {"from_rps": 101.0, "to_rps": 101.0}),
        UNSURE,
    ),
    "10 % to 50 % less than dedicated servers (96 % sure).": (UNSURE, ALWAYS),
    "In this proportion of the models, one shared server carries the most with the mix 1 : 1: 80.0"
    " requests/s in total. The server carries 60.0 requests/s with the mix 3 : 1.": (
        study(ONE_TO_ONE, crossings=[STRETCH], **MIXES),
        study(ONE_TO_ONE, crossings=[STRETCH], **MIXES | {"peaks": []}),
    ),
    "a and b should use dedicated servers: sharing is not reliably cheaper at any demand from 1.00"
    " to 100 requests/s (a load for 11 servers)": (
        over_demand(STRETCH | AGAIN | {"to_servers": 11}),
        SECOND,
    ),
    "The saving of sharing a and b is not known: not every model has a measured dedicated server": (
        over_demand(STRETCH | {"least_saving": None, "most_saving": None}),
        ALWAYS,
    ),
    "The saving of sharing a and b is not known: the measurements give no upper limit for a"
    " capacity": (
        OPEN_ALONE,
        over_demand(STRETCH | DOUBTFUL),
    ),
    "Up to 100 requests/s in total: 1 to 2 cpu1 servers for $34.5 to $69.0 a month, some of them"
    " shared, 10 % to 50 % less than dedicated servers.": (ALWAYS, NEVER),
    "Up to 100 requests/s in total: 1 to 2 cpu1 servers for $34.5 to $69.0 a month, some of them"
    " shared; it is uncertain whether sharing saves money.": (
        over_demand(STRETCH | DOUBTFUL),
        ALWAYS,
    ),
    "100 requests/s in total: 1 to 2 cpu1 servers for $34.5 to $69.0 a month, some of them shared;"
    " at this load, the probability that sharing saves money is only 1.0 %.": (
        over_demand(STRETCH | AT_100 | DOUBTFUL | {"probability_of_saving": 0.01}),
        over_demand(STRETCH | DOUBTFUL | {"probability_of_saving": 0.01}),
    ),
    "some of them shared; at some of these loads, the probability that sharing saves money is only"
    " 1.0 %.": (
        over_demand(STRETCH | DOUBTFUL | {"probability_of_saving": 0.01}),
        over_demand(STRETCH | DOUBTFUL | {"probability_of_saving": 0.5}),
    ),
    "Up to 100 requests/s in total (50 % : 50 %), a and b should share servers: sharing saves": (
        over_demand(STRETCH, STRETCH | LATER | DOUBTFUL),
        over_demand(STRETCH | DOUBTFUL),
    ),
    "Up to 100 requests/s in total: 2 dedicated cpu1 servers for $69.0 a month; sharing is no"
    " cheaper.": (
        over_demand(STRETCH | AGAIN | {"from_servers": 2, "from_usd_per_month": 69.0}),
        ALWAYS,
    ),
    "The table of the cheapest servers by demand lists all 5 ranges of demand up to 100"
    " requests/s.": (
        over_demand(*(STRETCH | {"from_rps": float(i)} for i in range(1, 6))),
        ALWAYS,
    ),
    "The cheapest server for a is cpu1 at every demand up to 100 requests/s": (
        study(crossings=[OF_ONE], peaks=[A_ON_GPU]),
        over_demand(OF_ONE),  # there is no other server
    ),
    "The cheapest server for a depends on the demand": (
        study(crossings=[OF_ONE, OF_ONE | LATER | {"server": "gpu1"}], peaks=[A_ON_GPU]),
        study(crossings=[OF_ONE], peaks=[A_ON_GPU]),
    ),
    "Up to 100 requests/s in total: 1 to 2 cpu1 servers for $34.5 to $69.0 a month, some of": (
        over_demand(OF_ONE | {"shared": True, "least_saving": 0.1, "most_saving": 0.5}),
        over_demand(OF_ONE),
    ),
}


TAKEN = {"study": "s", "grid": "g", "mix": "a", "load_line": "peak", "preset": "standard"}
TAKEN |= {"setting": "runtime openvino", "server": "cpu1", "scenario": "cpu1.a", "settings": 3}
TAKEN |= {"excluded": 0, "verdict": "clear", "recommendation": "The words of the table."}


def taken(**values):
    return study(recommendations=[TAKEN | values])


OF_GRIDS = {
    "a: runtime openvino The words of the table.": (taken(), taken(preset="smoke")),
    "a: runtime openvino, but another setting may be better": (
        taken(verdict="too close to tell"),
        taken(),
    ),
    "a: no setting can be recommended": (taken(verdict="none", setting=None), taken()),
}

RAN = {"study": "s", "question": "a", "model": "a", "preset": "standard", "mix": "a"}
RAN |= {"device": "cpu", "cores": 1, "asked_precision": "fp32", "precision": "fp32"}
RAN |= {"runtime": "onnxruntime", "scenario": "cpu1.a", "load_line": "peak", "verdict": "ok"}
RAN |= {"estimate_rps": 100.0, "rank": 1, "rate_ratio": 1.0, "ratio_low": 1.0, "ratio_high": 1.0}
RAN |= {"probability_fastest": 0.99, "relative_error": 1e-6}
SLOWER = RAN | {"runtime": "openvino", "scenario": "ov.a", "estimate_rps": 80.0, "rank": 2}
SLOWER |= {"rate_ratio": 0.8, "ratio_low": 0.7, "ratio_high": 0.9, "probability_fastest": 0.01}
IN_BF16 = SLOWER | {"asked_precision": "bf16", "precision": "bf16", "rank": 1, "rate_ratio": 1.0}
IN_BF16 |= {"fp32_ratio": 1.8, "fp32_ratio_low": 1.6, "fp32_ratio_high": 2.0}
IN_BF16 |= {"relative_error": 0.12}
NEARLY_AS_FAST = RAN | {"probability_fastest": 0.6}
NOT_IN_BF16 = SLOWER | {"asked_precision": "bf16"}

OF_RUNTIMES = {
    "a: in fp32 ONNX Runtime is the fastest": (
        study(runtimes=[RAN, SLOWER]),
        study(runtimes=[RAN, IN_BF16]),
    ),
    "ONNX Runtime is the fastest, but another runtime may be faster": (
        study(runtimes=[NEARLY_AS_FAST, SLOWER]),
        study(runtimes=[RAN, SLOWER]),
    ),
    "In fp32 ONNX Runtime carries 100 requests/s, OpenVINO 0.800 times as many (0.700 to 0.900).": (
        study(runtimes=[SLOWER, RAN]),
        study(runtimes=[RAN, IN_BF16]),
    ),
    "a: no two runtimes have an estimate at equal precision": (
        study(runtimes=[RAN, IN_BF16]),
        study(runtimes=[RAN, SLOWER, IN_BF16]),
    ),
    "OpenVINO in bf16 carries 1.80 times as many requests/s as the fastest runtime in fp32 (1.60 to"
    " 2.00), with a relative error of 0.120. The precision causes this difference, not the"
    " runtime.": (
        study(runtimes=[RAN, IN_BF16]),
        study(runtimes=[RAN, SLOWER]),
    ),
    "OpenVINO was configured for bf16 but computed in fp32, so the report lists its results under"
    " fp32.": (
        study(runtimes=[RAN, NOT_IN_BF16]),
        study(runtimes=[RAN, IN_BF16]),
    ),
}

IN_TWO = [COMMON | REPEATED | COST | line | {"precision": "fp32"} for line in OF_LINES[:1]]
IN_TWO += [IN_TWO[0] | {"server": "cpu2", "precision": "bf16", "usd_per_million_inferences": 0.2}]

OF_PRECISIONS = {
    "a is cheapest on cpu2 (in bf16): 0.200 USD per million inferences": (
        study(costs=IN_TWO),
        study(costs=[each | {"precision": "fp32"} for each in IN_TWO]),
    ),
}

TWICE = SHARED | {"models": "a + a", "mix": "a 1 : 1 a_b", "scenario": "cpu1.a_twice"}
COPIES = COMMON | REPEATED | SAVED | WIDE | TWICE
OF_B = COMMON | REPEATED | SAVED | {"scenario": "cpu1.b", "models": "b + b", "mix": "b 1 : 1 b_b"}
MORE = SHARED | {"models": "a + b + a", "mix": "a 1 : 1 : 1", "scenario": "cpu1.three"}

OF_COPIES = {
    "The data do not show whether 2 copies of a should share on full servers: the saving is": (
        study(savings=[COPIES]),
        study(savings=[COPIES | {"models": "a + c"}]),
    ),
    "Of 2 scenarios of copies of one model on full servers: 1 too close to tell, 1 without": (
        study(savings=[COPIES, OF_B | UNKNOWN]),
        study(savings=[COPIES, OF_B]),
    ),
    "On full servers, b and 2 copies of a should share: sharing saves about 20 %": (
        study(savings=[COMMON | REPEATED | SAVED | MORE]),
        study(savings=[COMMON | REPEATED | SAVED | MORE | {"models": "a + b + c"}]),
    ),
}


def test_a_tenant_without_load_in_a_mix_has_no_part_in_what_is_said_of_it():
    unsure = {"scenario": "cpu1.c", "models": "c", "mix": "c", **ALONE, "certified_rps": None}
    idle = SHARED | {"models": "a + b + c", "weights": "1 : 1 : 0", "scenario": "cpu1.three"}
    saved = COMMON | REPEATED | SAVED | idle
    tenants = [COMMON | unsure | {"tenant": "c"}, *(idle | {"tenant": name} for name in "abc")]
    peaks = [COMMON | REPEATED | PEAK | unsure]
    told = conclusions(study(savings=[saved], peaks=peaks, tenants=tenants))
    (mine,) = (conclusion for conclusion in told if "a, b and c" in conclusion.headline)
    assert "c" not in " ".join(mine.sentences).split()
    assert not any("tested rate of c was" in sentence for sentence in mine.sentences)


def test_another_tenant_of_the_same_model_has_no_part_in_what_is_said_of_a_saving():
    other = {"scenario": "cpu1.batched", "models": "a", "mix": "batched", **ALONE}
    lost = COMMON | REPEATED | PEAK | other | {"repeats_used": 2, "certified_rps": None}
    tenants = [COMMON | other | {"tenant": "batched"}]
    assert "batched" not in sentences_of(study(peaks=[lost], tenants=tenants))
    mine = lost | {"scenario": "cpu1.a", "mix": "a (standard)"}
    assert "Only 2 of 3 repeats of a (standard)" in sentences_of(study(peaks=[mine]))


def test_what_copies_gain_is_told_after_all_of_different_models():
    told = [
        conclusion.headline
        for conclusion in conclusions(study(savings=[COPIES], predictions=[PREDICTED]))
    ]
    assert ["2 copies of a" in headline for headline in told] == [False, False, True]
    assert "a and b should share" in told[0] and "needs no measurement" in told[1]


def test_copies_of_several_models_have_one_conclusion():
    first, told = conclusions(study(savings=[COPIES, OF_B]))
    assert "a and b" in first.headline
    assert told.headline == (
        "Of 2 scenarios of copies of one model on full servers: 1 should share, 1 too close to tell"
    )
    assert told.kind == "unclear" and len(told.sentences) == 2
    assert (
        told.sentences[0]
        == "On full servers, 2 copies of b should share: sharing saves about 20 % (14 % to 26 %)."
    )
    assert "2 copies of a should share on full servers: the saving is" in told.sentences[1]


PREDICTED = {"study": "s", "server": "cpu1", "mix": "a 1 : 1 c", "measured_ratio": None}
PREDICTED |= {"predicted_ratio": 0.7, "within": 0.2, "step": "B4", "mixes_known": 6}
PREDICTED |= {"preset": "standard", "as_measured": True}
BETTER = PREDICTED | {"mix": "b 1 : 1 c", "predicted_ratio": 1.1}
FORETOLD = study(predictions=[PREDICTED, BETTER])
TOO_FAR_OFF = study(predictions=[each | {"as_measured": False} for each in (PREDICTED, BETTER)])
KNOWN_BY_NOW = study(predictions=[each | {"measured_ratio": 0.9} for each in (PREDICTED, BETTER)])


def test_a_prediction_of_which_nothing_is_sure_is_no_reason_not_to_measure():
    told = conclusions(study(predictions=[PREDICTED | {"within": np.inf}]))
    assert not any("measure" in conclusion.headline for conclusion in told)


OF_PREDICTIONS = {
    "On cpu1, 2 pairs need no measurement if you accept an error of 20 % (90 % of the predicted"
    " sharing ratios have at most this error)": (
        FORETOLD,
        KNOWN_BY_NOW,
    ),
    "On cpu1, one pair needs no measurement": (study(predictions=[PREDICTED]), FORETOLD),
    "Each predicted value is as exact as a second measurement of the same pair.": (
        FORETOLD,
        TOO_FAR_OFF,
    ),
    "On cpu1, 2 pairs are predicted with an error of up to 20 % (90 % of the predicted"
    " sharing ratios have at most this error): measure the pairs that matter to you": (
        TOO_FAR_OFF,
        FORETOLD,
    ),
    "On cpu1, one pair is predicted with an error of up to 20 %": (
        study(predictions=[PREDICTED | {"as_measured": False}]),
        TOO_FAR_OFF,
    ),
    "On cpu1 with the preset standard, one pair needs no measurement": (
        study(predictions=[PREDICTED, PREDICTED | {"preset": "publication"}]),
        FORETOLD,
    ),
    "a was measured in one run, so the stated error": (
        study(peaks({"repeats_used": 1}, "a"), predictions=[PREDICTED]),
        FORETOLD,
    ),
    "Each mix was measured in one run, so the stated error may not include all of the variation"
    " between starts of a server.": (
        study(peaks({"repeats_used": 1}), predictions=[PREDICTED]),
        FORETOLD,
    ),
    "Perseus predicts this pair from 6 measured mixes, with the prediction model B4.": (
        study(predictions=[PREDICTED]),
        FORETOLD,
    ),
    "The sharing ratio of a 1 : 1 c is 0.70.": (study(predictions=[PREDICTED]), FORETOLD),
    "Perseus predicts these pairs from 6 measured mixes, with the prediction model B4.": (
        FORETOLD,
        study(predictions=[PREDICTED | {"predicted_ratio": None}]),
    ),
    "The highest sharing ratio is 1.10 (b 1 : 1 c), the lowest 0.70 (a 1 : 1 c).": (
        FORETOLD,
        study(predictions=[PREDICTED, BETTER | {"measured_ratio": 1.0}]),
    ),
}

CASES = {**OF_SHARING, **OF_FLEETS, **OF_DEMANDS, **OF_GRIDS, **OF_PREDICTIONS, **OF_COPIES}
CASES |= {**OF_RUNTIMES, **OF_PRECISIONS}


@pytest.mark.parametrize("sentence", CASES)
def test_a_sentence_stands_where_it_is_true_and_only_there(sentence):
    stands_only_where_true(sentence, *CASES[sentence])


@pytest.mark.parametrize("module", [q for q in QUESTIONS if q not in (*OTHER_KINDS, "copies")])
def test_every_sentence_of_the_code_has_a_case(module):
    assert without_case(module_of(module), CASES) == []
