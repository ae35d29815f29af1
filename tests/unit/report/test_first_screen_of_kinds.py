"""Tests of the first screen of studies without searches: a headline with its certainty, and key
figures, for each kind of experiment."""

import re

import numpy as np
import pytest
import synthetic
import synthetic_files
from sentences import without_case
from test_sentences import without
from test_sentences_of_kinds import (
    A_ALONE,
    AGAIN,
    ALONE,
    BACKGROUND,
    BEATEN,
    COSTS,
    DEAD,
    DEARER,
    FEW,
    GAIN,
    INFINITE,
    INT8,
    KEPT,
    KNEE,
    LABELLED,
    LATENCY,
    LEAK,
    LOSS,
    MANY,
    MEMORY,
    MISSED,
    NOISE,
    NOTHING,
    OTHER,
    OVERLOADED,
    REMOTE,
    SHARED,
    SMALL,
    SPOILT,
    STEADY,
    THREE,
    TWO,
    UNHELD,
    UNPLAYED,
    both,
    loops,
    starts,
    study,
)

from perseus.report import headlines_of_kinds
from perseus.report.cards_of_kinds import CARDS
from perseus.report.evidence import read_records
from perseus.report.headline import MAX_WORDS, headline, word_count
from perseus.report.headlines_of_kinds import HEADLINES, finding
from perseus.report.key_figures import MAX_CARDS, Card, cards
from perseus.report.page import FIRST, render
from perseus.results.study_results import StudyResults
from perseus.study.experiments import OTHER_KINDS

C = SHARED | {"tenant": "c"}
AT_THE_SLA = {"attained": 0.9497}
WITH_ENDS = {"ci_low_usd": 0.18, "ci_high_usd": 0.22}
DEARER_WITH_ENDS = DEARER | {"ci_low_usd": 0.38, "ci_high_usd": 0.42}
OPEN_COST = {"ci_low_usd": 0.1, "ci_high_usd": np.inf}
FOUR_STARTS = [NOISE | {"restart": i, "windows": 3} for i in range(1, 5)]
NOT_KNOWN = NOISE | {"noise_floor": None, "verdict": "failed"}

# For each headline: tables that make it true, and tables that make it false.
OF_KINDS = {
    "cpu1 keeps both SLAs under bursts: at least 96.0 % in time (95 % interval: 95.0 % to"
    " 97.0 %).": (KEPT, study("replay", SHARED | MISSED, OTHER)),
    "cpu1 keeps all 3 SLAs under bursts: at least 96.0 % in time (95 % interval: 95.0 % to"
    " 97.0 %).": (study("replay", SHARED, OTHER, C), KEPT),
    "cpu1 keeps the SLA of a under the trace: 99.0 % in time (95 % interval: 95.0 % to 97.0 %).": (
        study("replay", ALONE | {"process": "trace"}),
        KEPT,
    ),
    "cpu1 misses the SLA of a under bursts: 94.97 % in time (95 % interval: 95.0 % to 97.0 %).": (
        study("replay", SHARED | MISSED | AT_THE_SLA, OTHER),
        KEPT,
    ),
    "cpu1 misses 2 of 3 SLAs under bursts: at worst 80.0 % in time (95 % interval: 95.0 % to"
    " 97.0 %).": (study("replay", SHARED | MISSED, OTHER | MISSED, C), KEPT),
    "cpu1 keeps the SLA of a under bursts: 96.0 % in time (one run, no interval).": (
        study("replay", SHARED | {"attained_low": None}),
        study("replay", SHARED),
    ),
    "The data do not show whether cpu1 keeps its SLAs under bursts (1 repeat).": (
        study("replay", SHARED | UNPLAYED),
        KEPT,
    ),
    "The data do not show whether cpu1 keeps its SLAs under bursts (2 repeats).": (
        study("replay", SHARED, SHARED | AGAIN | SPOILT),
        study("replay", SHARED, SHARED | AGAIN),
    ),
    "No measured value grows on cpu1 during 3.90 h (9 windows).": (
        STEADY,
        study("soak", LATENCY, LEAK),
    ),
    "On cpu1, memory grows by 12.0 MB per hour (95 % interval: 10.0 to 14.0).": (
        study("soak", LATENCY, LEAK),
        STEADY,
    ),
    "On cpu1, memory grows by 13.0 MB per hour (12.0 to 14.0 in 2 repeats).": (
        study("soak", LATENCY, LEAK, LATENCY | AGAIN, LEAK | AGAIN | {"per_hour": 14.0}),
        study("soak", LATENCY, LEAK),
    ),
    "On cpu1, failed requests of a grow by 0.100 % per hour (95 % interval: 0.0500 to 0.150).": (
        study("soak", LATENCY, FEW | {"drift": "grows", **SMALL}),
        study("soak", LATENCY, FEW),
    ),
    "On cpu1, 10.0 % of the requests to a failed (4200 of 42000).": (
        study("soak", LATENCY, MANY, LEAK),
        study("soak", LATENCY, FEW),
    ),
    "On cpu1, some p95 latencies were infinite: the data do not show whether they grow (9"
    " windows).": (study("soak", INFINITE, MEMORY), STEADY),
    "3.90 h on cpu1 are too short to tell whether 1 of 2 values grow (9 windows).": (
        study("soak", LATENCY | {"drift": "too short to tell"}, MEMORY),
        STEADY,
    ),
    "cpu1 failed under the load (1 repeat).": (
        study("soak", LATENCY | {"verdict": "infeasible"}),
        study("soak", LATENCY | {"verdict": "infeasible", "windows": 0}),
    ),
    "The drift of values on cpu1 is not known (1 repeat).": (
        study("soak", LATENCY | {"verdict": "disturbed"}),
        STEADY,
    ),
    "On cpu1, requests of b take 1.70 times as long beside a (95 % interval: 1.60 to 1.80).": (
        study("slowdown", *TWO),
        study("slowdown", *THREE),
    ),
    "On cpu1, 3 of 3 pairs slow each other, by factors up to 2.00 (95 % interval: 1.90 to 2.10).": (
        study("slowdown", *THREE),
        study("slowdown", *TWO),
    ),
    "On cpu1, no slowdown is certain: factors up to 0.97 (95 % interval: 0.87 to 1.07).": (
        study("slowdown", *both("a", "b", 0.97, 0.96, beyond_noise=False)),
        study("slowdown", *TWO),
    ),
    "The slowdown on cpu1 is not known (1 repeat).": (
        study("slowdown", *NOTHING),
        study("slowdown", *TWO),
    ),
    "cpu1 does not keep up with a and b together (1 repeat).": (
        study("slowdown", TWO[0], *OVERLOADED),
        study("slowdown", *OVERLOADED),  # all rows are infeasible, as if no server ran
    ),
    "cpu1 does not keep up with 1 of 3 pairs (1 repeat).": (
        study("slowdown", *OVERLOADED, *both("a", "c", 1.1, 1.2)),
        study("slowdown", TWO[0], *OVERLOADED),
    ),
    "cpu1 does not keep up with a alone (1 repeat).": (
        study("slowdown", *A_ALONE, *OVERLOADED),
        study("slowdown", TWO[0], *OVERLOADED),
    ),
    "A fresh cpu1 server starts in 3.10 s with a warm page cache (3.00 to 3.20 in 2 starts).": (
        starts({}, {"ready_s": 3.2}),
        starts({}),
    ),
    "A fresh cpu1 server starts in 5.00 s with a cold page cache (one start).": (
        starts({}, {"page_cache": "cold", "ready_s": 5.0, "resident_share": 0.0}),
        starts({}),
    ),
    "The remote server cpu1 loads its models in 3.10 s (3.00 to 3.20 in 2 loads).": (
        starts(REMOTE, REMOTE | {"ready_s": 3.2}),
        starts({}, {"ready_s": 3.2}),
    ),
    "The start time of cpu1 is not known (1 repeat).": (starts(DEAD), starts({})),
    "Beyond 2.00 requests in flight (95 % interval: 1.80 to 2.20), the throughput of cpu1 hardly"
    " grows.": (loops(KNEE), loops(KNEE | {"knee": 2.1})),
    "The knee of cpu1 is not known (1 repeat).": (loops(KNEE | {"bracketed": False}), loops(KNEE)),
    "The Pareto front has 2 of 3 networks, at $0.200 to $0.400 per million images (95 %"
    " intervals: at most \N{PLUS-MINUS SIGN}10 %).": (
        study("catalogue", COSTS | WITH_ENDS, DEARER_WITH_ENDS, BEATEN),
        study("catalogue", COSTS | WITH_ENDS, DEARER_WITH_ENDS),
    ),
    "The Pareto front has 1 of 1 network, at $0.200 per million images (some without an"
    " interval).": (
        study("catalogue", INT8 | LABELLED),
        study("catalogue", INT8 | LABELLED | WITH_ENDS),
    ),
    "The Pareto front has 2 of 2 networks, at $0.200 to $0.400 per million images (some"
    " intervals have no bound).": (
        study("catalogue", COSTS | OPEN_COST, DEARER_WITH_ENDS),
        study("catalogue", COSTS | WITH_ENDS, DEARER_WITH_ENDS),
    ),
    "The networks on the Pareto front are not known (1 cell).": (
        study("catalogue", COSTS | {"on_front": None}),
        study("catalogue", COSTS),
    ),
    "Beside tenants at fixed rates, sharing cpu1 may save money or cost more (sharing ratio 0.80 to"
    " 1.10, 95 %).": (study("background", BACKGROUND), study("background", BACKGROUND | GAIN)),
    "Beside tenants at fixed rates, sharing cpu1 saves money (sharing ratio 1.10 to 1.30, 95 %).": (
        study("background", BACKGROUND | GAIN),
        study("background", BACKGROUND),
    ),
    "Beside tenants at fixed rates, sharing cpu1 costs more than dedicated servers (sharing ratio"
    " 0.60 to 0.80, 95 %).": (
        study("background", BACKGROUND | LOSS),
        study("background", BACKGROUND),
    ),
    "The capacity of cpu1 beside fixed loads is not known (1 repeat).": (
        study("background", BACKGROUND | UNHELD),
        study("background", BACKGROUND),
    ),
    "On cpu1, differences of throughput below 12 % may be noise of this host (4 starts, 12"
    " windows).": (study("aa", *FOUR_STARTS), study("aa", *FOUR_STARTS[:3])),
    "The noise floor of cpu1 is not known (1 repeat).": (
        study("aa", NOT_KNOWN),
        study("aa", *FOUR_STARTS),
    ),
}


@pytest.mark.parametrize("text", OF_KINDS)
def test_the_headline_of_a_kind_is_one_true_sentence_with_its_certainty(text):
    true, false = OF_KINDS[text]
    assert finding(true).text == text
    assert finding(false).text != text


@pytest.mark.parametrize("text", OF_KINDS)
def test_a_headline_has_twenty_words_even_if_it_names_the_cells_of_a_server(text):
    found = finding(OF_KINDS[text][0])
    _, longer = HEADLINES[found.experiment]("cpu1 (cpu1.s.x)", found.rows)
    assert word_count(longer) <= MAX_WORDS
    assert re.search(r"\d %|\(|knee|floor", longer)


def test_every_text_of_a_headline_has_a_case():
    assert without_case(headlines_of_kinds, OF_KINDS) == []


def test_each_kind_of_experiment_has_a_headline_cards_and_a_picture():
    assert set(HEADLINES) == set(CARDS) == set(OTHER_KINDS) <= set(FIRST)


def test_of_several_experiments_a_problem_comes_first_and_an_unknown_result_last():
    problem = {**KEPT, "soak": study("soak", LATENCY, LEAK)["soak"]}
    unknown = {**STEADY, "replay": study("replay", SHARED | UNPLAYED)["replay"]}
    assert finding(problem).experiment == "soak"
    assert headline(problem).figure == "soak" and finding(unknown).experiment == "soak"


def test_a_question_comes_before_the_dedicated_peaks_that_every_study_searches():
    peaks = without("savings")
    assert headline({**peaks, "replay": KEPT["replay"]}).figure == "replay"
    unknown = study("replay", SHARED | UNPLAYED)["replay"]
    noise = study("aa", *FOUR_STARTS)["aa"]
    assert headline({**peaks, "replay": unknown, "aa": noise}) == headline(peaks)


def tables_of_kind(kind, folder):
    return tables_of([synthetic_files.write_kind(kind, folder)])


def tables_of(cells):
    results = StudyResults.read(synthetic.TASK, cells, [])
    return {name: table.to_pandas() for name, table in synthetic_files.all_tables(results).items()}


METHOD = {
    "startup": (),
    "catalogue": ("(open loop)",),
    "replay": ("(open loop)",),
    "peak": ("(open loop)", "A rate passes", "the uncertainty of each search"),
}
"""For each kind of experiment, the texts that the section Method needs."""


@pytest.mark.parametrize("kind", METHOD)
def test_the_method_states_only_what_the_study_did(kind, tmp_path):
    if kind == "peak":
        cells = synthetic_files.write(tmp_path, synthetic.records(mixes=(), holds=())[:1])
    else:
        cells = [synthetic_files.write_kind(kind, tmp_path)]
    records = read_records([cell / "record.json" for cell in cells])
    method = render(tables_of(cells), {}, records).split('<section id="method">')[1]
    told = {text for text in METHOD["peak"] if text in method}
    assert told == set(METHOD[kind])


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_every_kind_has_three_to_five_cards_of_which_the_last_says_how_sure(kind, tmp_path):
    found = cards(tables_of_kind(kind, tmp_path), 1)
    assert 3 <= len(found) <= MAX_CARDS and found[-1].label == "How sure"
    shown = " ".join(f"{card.label} {card.value} {card.unit} {card.note}" for card in found)
    assert not re.search(r"\b(nan|None|inf)\b", shown)


@pytest.mark.parametrize("text", OF_KINDS)
def test_no_card_lacks_its_value(text):
    found = cards(OF_KINDS[text][0], 1)
    assert 3 <= len(found) <= MAX_CARDS
    assert not any(re.search(r"\b(nan|None|inf|NaT)\b", str(card)) for card in found)


def test_cards_show_the_values_of_the_experiment():
    assert cards(KEPT, 1)[0] == Card(
        "a together, in time",
        "96.0 %",
        note="95 % interval: 95.0 % to 97.0 %; SLA: 95 % within 60 ms",
    )
    assert cards(study("soak", LATENCY, FEW, LEAK), 1)[1:] == [
        Card("Requests", "42000", note="42 failed"),
        Card("Growth of the memory", "12.0", "MB per hour", "95 % interval: 10.0 to 14.0"),
        Card("How sure", "95 %", "intervals", "1 run"),
    ]
    pair = (1.7, "b beside a", "1.60 to 1.80"), (1.5, "a beside b", "1.40 to 1.60")
    assert cards(study("slowdown", *TWO), 1)[:2] == [
        Card(label, f"{factor:.2f}", "times as long", f"95 % interval: {ends}")
        for factor, label, ends in pair
    ]
    two = [row | AGAIN for row in TWO]
    assert cards(study("slowdown", *TWO, *two), 2)[-1] == Card(
        "How sure", "2", "repeats", "of each experiment"
    )
    assert cards(starts({}, {"ready_s": 3.2}), 1)[-1] == Card(
        "How sure", "2", "starts", "medians and ranges of the starts"
    )
    assert cards(study("replay", SHARED | UNPLAYED), 1) == [
        Card("Verdict ok", "0", "of 1 runs"),
        Card("Most frequent verdict", "failed", note="1 of 1"),
        Card("How sure", "no result"),
    ]
