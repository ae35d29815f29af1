"""Tests of the first screen of the page: one short true sentence, key figures and one picture."""

import html
import re
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import synthetic
import synthetic_files
from sentences import without_case
from test_sentences import (
    AGAIN,
    ALWAYS,
    ASKED,
    CLOSE,
    DEAR,
    FIRST,
    GPU_COST,
    KNOWN,
    LATER,
    LOST,
    MAY_SAVE_LESS,
    MAY_SAVE_MORE,
    MIX,
    MIXES,
    MODEL,
    NEVER,
    NO_FLEET,
    NO_RATE,
    OF_COPIES,
    ONCE,
    ONE_TO_ONE,
    OPEN,
    OPEN_ALONE,
    SECOND,
    SMOKE,
    STRETCH,
    SURE,
    TAKEN,
    UNCLEAR,
    UNSURE_AT_ALL,
    fleet,
    over_demand,
    peaks,
    savings,
    study,
    taken,
    without,
)
from test_sentences_of_kinds import BEATEN, COSTS, DEARER, LATENCY, LEAK, SHARED
from test_sentences_of_kinds import study as study_of

from perseus.report import certainty
from perseus.report import headline as headlines
from perseus.report import page as report_page
from perseus.report.certainty import Surer, bridge, caveats, coverage, surer
from perseus.report.conclusions.sharing import QUICK as QUICK_ANSWER
from perseus.report.headline import MAX_WORDS, headline, word_count
from perseus.report.key_figures import MAX_CARDS, Card, cards

EACH = "per million images"
LATE = fleet(models=[MODEL, MODEL | {"model": "b", "attained": 0.5}])

THREE = [STRETCH | {"models": f"a + {other}"} for other in "bcd"]
THREE[2] |= AGAIN
NOTHING = {"estimate_rps": None, "ci_low_rps": None, "ci_high_rps": None, "certified_rps": None}

# No server that both models share has a known capacity.
NOT_SHARED = fleet(peaks({"ci_low_rps": 0.0}, MIX), together={"saving": 0.0})

CERTAIN = KNOWN | {"probability_enough": 1.0, "probability_of_saving": 1.0}

CHEAPEST = {"probability_cheapest": 0.96, "usd_per_million_inferences": 0.3}
CHEAPEST |= {"ci_low_usd": 0.25, "ci_high_usd": 0.35}
LOW_COST = {"usd_per_million_inferences": 0.08, "ci_low_usd": 0.07, "ci_high_usd": 0.09}
ON_TWO = [
    GPU_COST | {"mix": mix, "server": server} | (LOW_COST if server == lowest else {})
    for mix, lowest in (("x", "gpu1"), ("y", "gpu1"), ("z", "gpu2"))
    for server in ("gpu1", "gpu2")
]
ON_TWO[3] |= {"ci_low_usd": 0.085}
"""Costs of three models on two servers. The intervals of the model y overlap."""

# For each headline: tables that make it true, and tables that make it false.
HEADLINES = {
    "The preset smoke only shows that Perseus works; it is too short for a result.": (
        study(*SMOKE),
        SURE,
    ),
    "No combination of the measured servers carries the demand.": (
        fleet(NO_RATE, together=NO_FLEET),
        fleet(together=NO_FLEET),
    ),
    "The servers that the demand needs are not known.": (
        fleet(together=NO_FLEET),
        fleet(NO_RATE, together=NO_FLEET),
    ),
    "The demand is zero: no server is needed.": (
        fleet(together={"servers": 0, "usd_per_month": 0.0}, models=[]),
        ASKED,
    ),
    "Buy 3 servers for $219 a month, 25 % less than dedicated servers (97 % sure to suffice).": (
        ASKED,
        fleet(together={"saving": 0.0}),
    ),
    "Buy 3 servers for $219 a month, 25 % less than dedicated servers (97 % sure to suffice, 80 %"
    " to save).": (fleet(together=KNOWN | {"probability_of_saving": 0.8}), ASKED),
    "Buy 3 servers for $219 a month, 25 % less than dedicated servers (over 99 % sure to suffice"
    " and to save).": (
        fleet(together=CERTAIN),
        fleet(together=CERTAIN | {"probability_of_saving": 0.98}),
    ),
    "Buy 3 servers for $219 a month, 25 % less than dedicated servers (over 99 % sure to suffice,"
    " 98 % to save).": (
        fleet(together=CERTAIN | {"probability_of_saving": 0.98}),
        fleet(together=CERTAIN),
    ),
    "Buy 3 servers for $219 a month (over 99 % sure to suffice); sharing is no cheaper than"
    " dedicated servers.": (
        fleet(together={"saving": 0.0, "probability_enough": 1.0}),
        fleet(together={"probability_enough": 1.0}),
    ),
    "Buy 3 servers for $219 a month (97 % sure to suffice); the saving of sharing is not known.": (
        NOT_SHARED,
        fleet(together={"saving": 0.0}),
    ),
    "Buy 3 servers for $219 a month (97 % sure to suffice); the saving of 25 % may be smaller.": (
        MAY_SAVE_LESS,
        MAY_SAVE_MORE,
    ),
    "Buy 3 servers for $219 a month (97 % sure to suffice); the cost of dedicated servers is not"
    " known.": (fleet(apart=NO_FLEET, together={"saving": None}), ASKED),
    "Up to 100 requests/s (50 % a), shared servers cost 10 % to 50 % less than dedicated ones"
    " (each capacity 95 % sure).": (
        FIRST,
        NEVER,
    ),
    "Up to 100 requests/s in total, shared servers cost 10 % to 50 % less than dedicated ones"
    " (each capacity 95 % sure).": (
        over_demand(STRETCH | {"models": "a + b + c", "proportion": "a 50%, b 25%, c 25%"}),
        FIRST,
    ),
    "Up to 100 requests/s (50 % a), shared servers cost 20 % less than dedicated ones"
    " (96 % sure).": (
        over_demand(
            STRETCH | {"least_saving": 0.2, "most_saving": 0.2, "probability_of_saving": 0.96}
        ),
        ALWAYS,
    ),
    "At some demands, shared servers cost 10 % to 50 % less than dedicated ones"
    " (each capacity 95 % sure).": (SECOND, FIRST),
    "Use dedicated servers: sharing is not reliably cheaper at any demand up to 100 requests/s"
    " (each capacity 95 % sure).": (
        NEVER,
        SECOND,
    ),
    "2 of 3 groups of models cost less on shared servers at some demand (each capacity 95 %"
    " sure).": (
        over_demand(*THREE),
        over_demand(*THREE[:2]),
    ),
    "1 of 2 groups of models costs less on shared servers at some demand (each capacity 95 %"
    " sure).": (
        over_demand(*THREE[1:]),
        over_demand(*THREE[:2]),
    ),
    "2 of 2 groups of models cost less on shared servers at some demand (80 % sure).": (
        over_demand(*(each | {"probability_of_saving": 0.8} for each in THREE[:2])),
        over_demand(*THREE),
    ),
    "On full servers, sharing saves 20 % (14 % to 26 %).": (SURE, CLOSE),
    "On full servers, sharing costs 20 % more than dedicated servers (9.0 % to 31 %).": (
        DEAR,
        SURE,
    ),
    "On full servers, sharing costs 20 % more than dedicated servers (no upper bound).": (
        study(savings(LOST | {"ci_simultaneous_low": float("-inf")})),
        DEAR,
    ),
    "On full servers, sharing saves at most 11 % and, in the best mix, costs at most 11 % more.": (
        CLOSE,
        SURE,
    ),
    "The data do not show whether sharing saves money on full servers (saving: \N{MINUS SIGN}32"
    " % to 27 %).": (UNSURE_AT_ALL, CLOSE),
    "The data do not show whether sharing saves money on full servers (saving: no bound).": (
        study(savings(OPEN)),
        CLOSE,
    ),
    "One cpu1 server carries 100 requests/s within the SLA (95 % interval: 95.0 to 105).": (
        study(savings({"saving": None}), peaks(NOTHING, "b"), peaks(NOTHING, MIX)),
        without("savings"),
    ),
    "3 searches found limits of 100 to 100 requests/s per server (95 % intervals: at most"
    " \N{PLUS-MINUS SIGN}5.0 %).": (
        without("savings"),
        SURE,
    ),
    "3 searches found limits of 100 to 100 requests/s per server (some intervals have no bound).": (
        study(peaks({"ci_high_rps": np.inf}, "a"), savings({"saving": None})),
        without("savings"),
    ),
    "a: use runtime openvino, $0.300 per million inferences (96 % sure to be cheapest).": (
        taken(**CHEAPEST),
        SURE,
    ),
    "a: use runtime openvino, $0.300 per million inferences (95 % interval: $0.250 to $0.350).": (
        taken(**CHEAPEST | {"probability_cheapest": None, "verdict": "only one"}),
        taken(**CHEAPEST),
    ),
    "Use the best of 3 settings, $0.300 per million inferences (96 % sure to be cheapest).": (
        taken(**CHEAPEST | {"setting": " ".join(["many"] * MAX_WORDS)}),
        taken(**CHEAPEST),
    ),
    "a: none of 3 settings can be recommended.": (
        taken(verdict="none", setting=None),
        taken(**CHEAPEST),
    ),
    "1 of 2 models and mixes have a clear best setting (at least 95 % sure to be cheapest).": (
        study(recommendations=[TAKEN, TAKEN | {"mix": "b", "verdict": "too close to tell"}]),
        taken(**CHEAPEST),
    ),
    "a is cheapest on gpu1: $0.200 per million inferences (95 % interval: $0.100 to $0.250).": (
        study(savings({"saving": None}), costs=[GPU_COST]),
        without("savings"),
    ),
    "gpu1 is the cheapest server of 2 of 3 models, 1 with separate 95 % intervals.": (
        study(savings({"saving": None}), costs=ON_TWO),
        study(savings({"saving": None}), costs=ON_TWO[:2]),
    ),
    "No search found the largest load of a server: see Failed measurements.": (
        {**without("savings"), "peaks": SURE["peaks"].iloc[:0]},
        SURE,
    ),
}


@pytest.mark.parametrize("text", HEADLINES)
def test_the_conclusion_is_one_sentence_of_twenty_words_that_is_true(text):
    true, false = HEADLINES[text]
    assert headline(true).text == text and word_count(text) <= MAX_WORDS
    assert headline(false).text != text


def test_an_unknown_saving_over_the_demand_is_no_reason_for_dedicated_servers():
    assert headline(OPEN_ALONE) == headline(SURE)


def test_every_headline_of_the_code_has_a_case():
    assert without_case(headlines, HEADLINES) == []


def test_what_copies_of_one_model_save_is_no_conclusion_on_sharing():
    (true, _) = OF_COPIES[
        "On full servers, b and 2 copies of a should share: sharing saves about 20 %"
    ]
    assert "sharing saves 20 %" in headline(true).text
    only_copies = study(savings({"models": "a + a"}))
    assert "sharing" not in headline(only_copies).text


def test_key_figures_are_peaks_alone_and_together_and_what_sharing_saves_and_costs():
    shared = STRETCH | {"probability_of_saving": 0.97}
    tables = over_demand(shared, STRETCH | LATER | AGAIN)
    saving, cost, sure = cards(tables, 9)[2:]
    of_full = "up to 100 requests/s; 20 % on full servers"
    assert saving == Card("Saving of sharing", "10 % to 50 %", note=of_full)
    assert cards({**tables, "savings": tables["savings"].iloc[:0]}, 9) == [
        Card("a and b alone", "100 and 100", "requests/s", "95.0 to 105 and 95.0 to 105 (95 %)"),
        Card("Together, a 1 : 1 b", "100", "requests/s", "95.0 to 105 (95 %)"),
        Card("Saving of sharing", "10 % to 50 %", note="up to 100 requests/s"),
        cost,
        sure,
    ]
    chance = "probability that sharing saves money"
    assert sure == Card("How sure", "97 %", note=f"{chance}; 9 runs, preset standard")
    once = {**tables, "peaks": tables["peaks"].assign(repeats=1)}
    assert cards(once, 3)[-1].note == f"{chance}; each search ran once, preset standard"
    (*_, by_capacities) = cards(FIRST, 9)
    assert (by_capacities.label, by_capacities.value) == ("How sure", "95 %")
    dear = over_demand(shared, STRETCH | LATER | AGAIN, edits=[savings(LOST)])
    full = "on full servers, sharing costs 20 % more"
    assert cards(dear, 9)[2].note == f"up to 100 requests/s; {full}"
    assert cost == Card(
        "USD a month", "$34.5 to $69.0", note="1 to 2 servers, up to 100 requests/s"
    )
    of_one = {"to_servers": 1, "to_usd_per_month": 34.5}
    (*_, cost, _) = cards(over_demand(shared | of_one, STRETCH | LATER | AGAIN), 9)
    assert cost == Card("USD a month", "$34.5", note="1 server, up to 100 requests/s")
    on_two_servers = over_demand(shared | of_one, shared | LATER | {"most_saving": 0.6})
    (_, _, saving, cost, _) = cards(on_two_servers, 9)
    assert (
        saving.value == "10 % to 60 %" and "Up to 1000 requests/s" in headline(on_two_servers).text
    )
    assert cost == Card(
        "USD a month", "$34.5 to $69.0", note="1 to 2 servers, up to 1000 requests/s"
    )


def test_the_mix_of_the_key_figures_carries_most_in_the_proportion_of_the_headline():
    best = MIXES["peaks"][0] | {"sharing_ratio": 9.9}
    tables = study(ONE_TO_ONE, crossings=[STRETCH], **MIXES | {"peaks": [best]})
    assert cards(tables, 9)[1].label == "Together, a 1 : 1 b"
    assert (
        cards({**tables, "crossings": tables["crossings"][:0]}, 9)[1].label != "Together, a 1 : 1 b"
    )


def test_key_figures_of_a_demand_are_those_of_its_fleet():
    known = {"probability_of_saving": 0.99}
    assert cards(fleet(together=known), 9)[2:] == [
        Card("Saving of sharing", "25 %", note="99 % sure"),
        Card("USD a month", "$219", note="3 servers, 97 % sure to suffice"),
        Card(
            "How sure",
            "97 %",
            note="probability that the servers suffice; 99 % that sharing saves money; 9 runs,"
            " preset standard",
        ),
    ]
    may_save_less = Card("Saving of sharing", "25 %", note="the saving may be smaller")
    assert may_save_less in cards(MAY_SAVE_LESS, 9)
    assert "Saving of sharing" not in [card.label for card in cards(NOT_SHARED, 9)]
    assert [card.label for card in cards(fleet(together=NO_FLEET), 9)[2:]] == [
        "Certified rates",
        "USD a month",
        "How sure",
    ]


def test_without_a_demand_the_key_figures_are_what_full_servers_save_and_what_one_costs():
    assert cards(SURE, 1)[2:] == [
        Card("Saving on full servers", "20 %", note="14 % to 26 % (95 %)"),
        Card("USD a month", "$73.0", note="one cpu1 server, $0.300 per million inferences"),
        Card(
            "How sure",
            "98 %",
            note="probability that sharing saves money on full servers; 1 run, preset standard",
        ),
    ]
    dear = cards(study(savings(LOST | {"probability_of_saving": 0.02})), 1)[-1]
    assert dear.value == "98 %" and dear.note.startswith("probability that sharing costs more on")
    extra = Card("Extra cost of sharing on full servers", "20 %", note="9.0 % to 31 % (95 %)")
    assert cards(study(savings(LOST)), 1)[2] == extra
    assert "USD a month" not in [card.label for card in cards(without("costs"), 1)]
    more = [dict(row) for row in SURE["peaks"].iloc[:1].to_dict("records")]
    many = study(peaks=[more[0] | {"models": "c", "mix": "c", "estimate_rps": 7.0}])
    assert cards(many, 9)[0] == Card(
        "Models alone", "7.00 to 100", "requests/s", "3 peaks of 3 models on 1 server"
    )
    assert len(cards(many, 9)) <= MAX_CARDS


def test_the_first_screen_has_the_conclusion_the_key_figures_and_one_picture():
    made = synthetic.records(mixes=[(1, 1)], holds=())
    frames = {name: table.to_pandas() for name, table in synthetic_files.tables_of(made).items()}
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"></svg>'
    page = report_page.render(
        frames, dict.fromkeys(("costs", "frontier", "peaks"), svg), synthetic.loaded(made)
    )
    first, rest = page.split("</header>")
    assert re.findall(r'<figure id="([\w-]+)"', first) == ["figure-frontier"]
    assert re.findall(r'<figure id="([\w-]+)"', rest) == ["figure-peaks", "figure-costs"]
    assert first.count("<h1>") == 1 and 3 <= first.count("<dt>") <= MAX_CARDS
    shown = first.split("<details>")[0]
    assert re.findall("<p.*", shown) == ['<p class="soft">Study synthetic</p>']
    assert first.count("<details>") == 1 and "<table" not in first.split("<body>")[1]
    for other in ("peaks", "catalogue"):
        without_frontier = report_page.render(frames, {other: svg}, synthetic.loaded(made))
        assert f'id="figure-{other}"' in without_frontier.split("</header>")[0]


def test_a_catalogue_has_cards_with_networks_on_its_pareto_front():
    """No card shows the network that is as accurate as another network, but costs more."""
    light = COSTS | {"accuracy": 68.0}
    heavy = COSTS | {"model": "d", "accuracy": 84.0, "usd_per_million_inferences": 5.0}
    middle = DEARER | {"accuracy": 76.0}
    assert cards(study_of("catalogue", BEATEN, heavy, middle, light), 4)[:-2] == [
        Card("Cheapest on the Pareto front", "$0.200", EACH, "a, OpenVINO, fp32, 68.0 % accuracy"),
        Card(
            "Cheapest with at least 75 % accuracy",
            "$0.400",
            EACH,
            "b, OpenVINO, fp32, 76.0 % accuracy",
        ),
        Card(
            "Most accurate on the Pareto front", "$5.00", EACH, "d, OpenVINO, fp32, 84.0 % accuracy"
        ),
    ]


FRONTS = {
    "one network": ([("a", 70, 0.2)], ["Cheapest on"]),
    "one network in two precisions": (
        [("a", 68, 0.1), ("b", 79, 0.2), ("b", 80.2, 0.5)],
        ["Cheapest on", "Cheapest with at least 75 %", "Most accurate"],
    ),
    "the same network at both levels of accuracy": (
        [("a", 60, 0.1), ("b", 82, 0.2), ("c", 84.5, 0.5)],
        ["Cheapest on", "Cheapest with at least 80 %", "Most accurate"],
    ),
}


@pytest.mark.parametrize("front", FRONTS)
def test_each_card_of_a_catalogue_shows_another_network_on_the_front(front):
    networks, labels = FRONTS[front]
    rows = [
        COSTS | {"model": name, "accuracy": accuracy, "usd_per_million_inferences": cost}
        for name, accuracy, cost in networks
    ]
    shown = cards(study_of("catalogue", *rows), 4)[:-2]
    assert len(shown) == len(labels)
    assert all(card.label.startswith(label) for card, label in zip(shown, labels, strict=True))


QUICK = peaks({"preset": "quick"})

# For each sentence that connects two savings: tables that make it true, and tables that make it
# false.
BRIDGES = {
    "At small demands, shared servers replace dedicated servers that are partly idle. If all"
    " servers are full, the best mix (a 1 : 1 b) saves 20 % (95 % interval: 14 % to 26 %).": (
        FIRST,
        SECOND,
    ),
    "At small demands, shared servers replace dedicated servers that are partly idle. If all"
    " servers are full, the least costly mix (1 : 1) costs 20 % more than dedicated"
    " servers (95 % interval: 9.0 % to 31 %).": (
        over_demand(STRETCH, edits=[savings(LOST | {"weights": "1 : 1"})]),
        over_demand(STRETCH, edits=[savings({"weights": "1 : 1"})]),
    ),
    "At small demands, shared servers replace dedicated servers that are partly idle. If all"
    " servers are full, the least costly mix (a 1 : 1 b) costs 20 % more than dedicated"
    " servers (95 % interval: at most 31 %).": (
        over_demand(STRETCH, edits=[savings(LOST | {"ci_simultaneous_high": 1.0})]),
        over_demand(STRETCH, edits=[savings(LOST)]),
    ),
    "At some demands, shared servers replace dedicated servers that are partly idle. If all"
    " servers are full, the best mix (a 1 : 1 b) saves 20 % (95 % interval: 14 % to 26 %).": (
        SECOND,
        NEVER,
    ),
    "At this demand, shared servers replace dedicated servers that are partly idle. If all"
    " servers are full, the best mix (a 1 : 1 b) saves 20 % (95 % interval: 14 % to 26 %).": (
        ASKED,
        fleet(together={"saving": 0.0}),
    ),
}


@pytest.mark.parametrize("text", BRIDGES)
def test_one_sentence_connects_the_saving_at_a_demand_with_that_on_full_servers(text):
    true, false = BRIDGES[text]
    assert bridge(true) == text
    assert bridge(false) != text


def test_nothing_is_connected_if_one_saving_is_unknown_or_not_reliable():
    doubtful = over_demand(STRETCH | {"reliable": False})
    for tables in (SURE, NEVER, doubtful, {**FIRST, "savings": FIRST["savings"].iloc[:0]}):
        assert bridge(tables) == ""


CAVEATS = {
    "The costs in this report use the price of n1-standard-4.": (SURE, without("costs")),
    "The costs in this report use the prices of several types of machine.": (
        study(("costs", MIX, {"instance": "n1-standard-8"})),
        SURE,
    ),
    "Perseus does not check whether the measured host is such a machine.": (
        SURE,
        without("costs"),
    ),
    "Before you buy a server, measure on a server of the type that you want to buy.": (
        SURE,
        without("costs"),
    ),
    QUICK_ANSWER: (study(QUICK), SURE),
}


@pytest.mark.parametrize("text", CAVEATS)
def test_each_caveat_stands_only_where_it_is_true(text):
    true, false = CAVEATS[text]
    assert text in caveats(true) and text not in caveats(false)


def test_the_headline_is_no_surer_than_the_conclusion():
    """In the simulated queues, only half of the requests of b are in time."""
    assert (headline(ASKED).kind, headline(LATE).kind) == ("yes", "perhaps")
    assert headline(LATE).text == headline(ASKED).text


def test_the_headline_is_no_surer_if_its_saving_may_be_smaller():
    assert (headline(MAY_SAVE_LESS).kind, headline(MAY_SAVE_MORE).kind) == ("perhaps", "yes")


COVERAGE = {
    "Intervals and probabilities cover the variation within one run. They do not cover the"
    " variation between runs on restarted servers, other hosts, or failures of a server.": study(
        peaks(ONCE, "a")
    ),
    "Intervals and probabilities cover the variation within a run and between runs on restarted"
    " servers. They do not cover other hosts, or failures of a server.": SURE,
    "An interval covers the variation within one run. A range over several runs covers the"
    " variation between these runs. Neither covers other hosts or failures of a server.": study_of(
        "replay", SHARED
    ),
    "The study has no result, so no interval is known.": study(peaks(NOTHING)),
}


@pytest.mark.parametrize("text", COVERAGE)
def test_the_first_screen_says_what_the_certainty_covers(text):
    assert coverage(COVERAGE[text]) == text


@dataclass
class OfSeconds:
    """The record of a cell whose measurement took `lasted_s` seconds."""

    lasted_s: float

    @property
    def started(self):
        return SimpleNamespace(monotonic_ns=5e9)

    @property
    def finished_monotonic_ns(self):
        return 5e9 + self.lasted_s * 1e9


FIVE_MINUTES = [OfSeconds(100.0)] * 3
NARROW = {"ci_low": -0.05, "ci_high": 0.05}

# For each case: the tables of a study of five minutes, the advice for a more precise result, and
# its duration.
ADVICE = {
    "one run of each": (study(peaks(ONCE)), "repeats: 3", "10 more minutes"),
    "one run of each by the preset quick": (
        study(QUICK, peaks(ONCE)),
        "repeats: 3",
        "10 more minutes",
    ),
    # (0.05 / 0.03)^2 x 3 repeats, rounded up to 9, take 15 minutes, of which 5 minutes are already
    # measured.
    "an unclear saving": (study(savings(UNCLEAR | NARROW)), "repeats: 9", "10 more minutes"),
    "servers that may not suffice": (
        fleet(together={"probability_enough": 0.8}),
        "repeats: 6",
        "5 more minutes",
    ),
    "one replay": (study_of("replay", SHARED), "repeats: 3", "10 more minutes"),
    # (0.06 / 0.03)^2 x 3 = 12 repeats take 20 minutes, of which 5 minutes are already measured.
    "an unclear saving by the preset quick": (
        study(QUICK, savings(UNCLEAR | {"ci_low": -0.06, "ci_high": 0.06})),
        "repeats: 12",
        "15 more minutes",
    ),
}


@pytest.mark.parametrize("case", ADVICE)
def test_there_is_one_advice_that_names_what_limits_the_certainty_and_how_long_it_takes(case):
    tables, setting, time = ADVICE[case]
    found = surer(tables, FIVE_MINUTES)
    assert (found.setting, found.time) == (setting, time)
    assert bool(found.gain) == (tables["peaks"].empty or int(tables["peaks"]["repeats"].max()) < 2)


TOO_MANY = study(savings(UNCLEAR))  # 34 repeats: (0.1 / 0.03)^2 x 3
NO_ADVICE = {
    "First solve the problems that the section Failed measurements lists. Then run `make"
    " again`.": study(peaks(NOTHING)),
    "More repeats would make the intervals narrower.": SURE,
    "Even 20 repeats would not show whether sharing saves money on full servers: the"
    " interval of the saving is too wide.": TOO_MANY,
    "More repeats would not show whether sharing saves money on full servers: an end of the"
    " interval of the saving is infinite.": study(savings(OPEN)),
}


@pytest.mark.parametrize("text", NO_ADVICE)
def test_where_more_repeats_would_not_help_the_report_says_why(text):
    assert surer(NO_ADVICE[text], FIVE_MINUTES) == Surer(gain=text)


def test_for_a_study_by_the_preset_smoke_the_advice_is_another_preset():
    assert surer(study(*SMOKE), FIVE_MINUTES) == Surer(
        "preset: quick", gain="Measurements with the preset smoke are too short for a result."
    )


def test_repeats_by_the_preset_quick_become_those_of_the_preset_standard():
    made = synthetic.records(
        synthetic.Truth({"a": 30.0, "b": 90.0}, repeats=3, preset="quick"), mixes=[(1, 1)], holds=()
    )
    records = synthetic.loaded(made)
    frames = {name: table.to_pandas() for name, table in synthetic_files.tables_of(made).items()}
    took_s = sum(certainty._cell_s(record) for record in records)
    found = surer(frames, records)
    assert found.setting == "preset: standard"
    number, unit = found.time.split()
    assert int(number) * {"minutes": 60, "hours": 3600}[unit] > 1.5 * took_s


def test_every_text_on_certainty_has_a_case():
    settings = [setting for _, setting, _ in ADVICE.values()]
    gain = surer(study(peaks(ONCE)), FIVE_MINUTES).gain
    smoke = surer(study(*SMOKE), FIVE_MINUTES)
    cases = [*BRIDGES, *CAVEATS, *COVERAGE, *NO_ADVICE, *settings, "preset: standard", gain]
    cases += [smoke.setting, smoke.gain]
    assert without_case(certainty, cases) == []


def test_long_times_are_in_hours():
    assert surer(study(peaks(ONCE)), [OfSeconds(4000.0)]).time == "3 more hours"
    assert surer(study(peaks(ONCE)), [OfSeconds(20.0)]).time == "1 more minute"


def test_what_makes_the_answer_surer_stands_on_the_first_screen_and_nowhere_else():
    truth = synthetic.Truth({"a": 30.0, "b": 90.0}, repeats=1, preset="quick")
    made = synthetic.records(truth, mixes=[(1, 1)], holds=())
    frames = {name: table.to_pandas() for name, table in synthetic_files.tables_of(made).items()}
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"></svg>'
    page = report_page.render(frames, {"frontier": svg}, synthetic.loaded(made))
    first, rest = page.split("</header>")
    shown = html.unescape(re.sub(r"<[^>]+>", "", first)).replace("\N{NO-BREAK SPACE}", " ")
    advice = " ".join(shown.split()).partition("To be surer: ")[2]
    assert re.match(
        r"set measurement: {repeats: 3} in the configuration and run the study again: about \d+"
        r" more minutes?\. With repeats, the intervals cover the variation between server starts\.",
        advice,
    )
    assert "How sure is this, and what would make it surer?" in first.split("</summary>")[0]
    assert coverage(frames) in shown and QUICK_ANSWER in shown
    sure = cards(frames, len(made))[-1]
    assert f"How sure: {sure.value} ({sure.note})." in " ".join(shown.split())
    assert bridge(frames) and bridge(frames) in shown
    body = re.sub(r"<script.*?</script>", "", rest, flags=re.DOTALL)
    assert not re.search(r"surer|repeats: \d|preset: standard|repeat to be sure", body)


@pytest.mark.parametrize(("cells", "words"), [(1, "1 cell, measured"), (2, "2 cells, measured")])
def test_the_page_counts_one_cell_in_the_singular(cells, words):
    made = synthetic.records(mixes=[(1, 1)], holds=())
    frames = {name: table.to_pandas() for name, table in synthetic_files.tables_of(made).items()}
    page = report_page.render(frames, {}, synthetic.loaded(made)[:cells])
    assert words in page and f"<p>{cells} cell{'' if cells == 1 else 's'}: " in page


@pytest.mark.parametrize("figure", report_page.FIRST)
def test_the_picture_is_that_of_the_study_with_one_sentence_below_it(figure):
    made = synthetic.records(mixes=[(1, 1)], holds=())
    frames = {name: table.to_pandas() for name, table in synthetic_files.tables_of(made).items()}
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"></svg>'
    drawn = {"costs": svg, figure: svg}
    first = report_page.render(frames, drawn, synthetic.loaded(made)).split("</header>")[0]
    (caption,) = re.findall("<figcaption>(.*)</figcaption>", first)
    assert f'id="figure-{figure}"' in first
    assert html.unescape(caption) == report_page.FIRST[figure]
    assert caption.count(".") == 1 and word_count(caption) <= 25


def test_without_figures_the_first_screen_has_no_picture():
    made = synthetic.records(mixes=[(1, 1)], holds=())
    frames = {name: table.to_pandas() for name, table in synthetic_files.tables_of(made).items()}
    page = report_page.render(frames, {}, synthetic.loaded(made))
    assert "<figure" not in page.split("</header>")[0]


def test_the_picture_of_an_experiment_shows_the_numbers_of_the_headline():
    made = synthetic.records(mixes=[(1, 1)], holds=())
    frames = study_of("soak", LATENCY, LEAK) | {"replay": study_of("replay", SHARED)["replay"]}
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"></svg>'
    drawn = dict.fromkeys(("replay", "soak"), svg)
    first = report_page.render(frames, drawn, synthetic.loaded(made)).split("</header>")[0]
    assert headline(frames).figure == "soak" and 'id="figure-soak"' in first
