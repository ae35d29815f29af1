"""Tests of the summary: several conclusions on one question become one conclusion with parts."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest
import synthetic
import synthetic_files

from perseus.report.conclusions import QUESTIONS, conclusions, module_of
from perseus.report.conclusions.conclusion import Conclusion
from perseus.report.conclusions.summary import MANY, MAX_SEPARATE, NAMED, summed_up
from perseus.report.links import MAX_LINES, PEAKS, Link, to_section
from perseus.report.page import render
from perseus.study.experiments import OTHER_KINDS

MODELS = {f"m{number:02}": 10.0 * 2**number for number in range(8)}
KINDS = {"yes", "perhaps", "no", "unclear", "unknown"}


def conclusion(kind, name, rank=0.0, sentences=("Of all.",), behind=()):
    return Conclusion(kind, name, (*sentences, f"Of {name}."), behind, rank)


def test_a_few_conclusions_stay_as_they_are():
    few = [conclusion("no", f"n{number}") for number in range(MAX_SEPARATE)]
    assert list(summed_up(few, "sharing")) == few


def test_many_conclusions_are_counted_and_the_first_that_gain_most_are_named():
    many = [conclusion("no", f"n{number}") for number in range(MAX_SEPARATE)]
    two = ("Of two.", "Of all.")
    many += [conclusion("perhaps", "perhaps"), conclusion("yes", "less", 0.1, two)]
    many += [conclusion("yes", "more", 0.2, two)]
    (told,) = summed_up(many, "sharing")
    assert told.headline == (
        "Of 9 scenarios of different models on full servers: 2 should share, 1 would probably gain,"
        " 6 should not share"
    )
    assert told.kind == "unclear"
    named, common = told.sentences[:NAMED], told.sentences[NAMED:]
    assert named == ("more.", "less.", "perhaps.")
    assert "arise by chance" in common[0] and common[1:] == ("For each: Of all.",)
    assert [part.headline for part in told.parts[:NAMED]] == ["more", "less", "perhaps"]
    assert sorted(told.parts, key=repr) == sorted(many, key=repr)


def test_many_conclusions_of_one_kind_are_of_that_kind():
    (told,) = summed_up(
        [conclusion("no", f"n{number}") for number in range(MAX_SEPARATE + 1)], "sharing"
    )
    assert told.kind == "no" and told.headline.endswith(": 7 should not share")
    assert not any("by chance" in sentence for sentence in told.sentences)
    unknown = [conclusion("unknown", f"n{number}") for number in range(MAX_SEPARATE)]
    (told,) = summed_up([conclusion("no", "no"), *unknown], "sharing")
    assert told.kind == "unclear"


def test_trouble_of_experiments_is_named_first_and_marks_all():
    many = [conclusion("yes", f"n{number}") for number in range(MAX_SEPARATE)]
    (told,) = summed_up([*many, conclusion("no", "fails")], "replay")
    assert told.headline == (
        "Of 7 conclusions on bursts and traces: 1 with a problem, 6 without a problem"
    )
    assert told.sentences[0] == "fails." and told.kind == "no"


@pytest.mark.parametrize("of_each", [1, MAX_LINES])
def test_links_lead_to_what_all_rest_on_where_they_are_many(of_each):
    table = Link("table", "table")
    many = [
        conclusion("no", f"n{number}", behind=(table, *own(number, of_each)))
        for number in range(MAX_SEPARATE + 1)
    ]
    (told,) = summed_up(many, "sharing")
    assert told.behind == ((table, *own_of_all(1)) if of_each == 1 else (table,))
    without = [conclusion("no", f"n{number}", behind=own(number, MAX_LINES)) for number in range(9)]
    (told,) = summed_up(without, "sharing")
    assert told.behind == (to_section(PEAKS),)


def own(number, count):
    return tuple(Link(f"{number} {line}", f"line-{number}.{line}") for line in range(count))


def own_of_all(count):
    return tuple(link for number in range(MAX_SEPARATE + 1) for link in own(number, count))


@pytest.mark.parametrize("name", MANY)
def test_there_are_words_for_every_kind_of_conclusion_that_the_code_gives(name):
    of = "sharing" if name == "copies" else name  # `sharing` makes both conclusions
    tree = ast.parse(Path(module_of(of).__file__).read_text())
    given = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)} & KINDS
    assert given and given <= set(MANY[name].labels)


def test_what_has_no_words_has_one_conclusion_at_most():
    assert set(QUESTIONS) - set(MANY) == {"servers_to_buy", "cheapest"}
    assert set(OTHER_KINDS) <= set(MANY)


@pytest.fixture(scope="module")
def made():
    """Return a study of eight models: each alone on a server, and each beside the next model."""
    found = {}
    for first, second in pairwise(MODELS):
        truth = synthetic.Truth({name: MODELS[name] for name in (first, second)}, 1.2, repeats=1)
        for record in synthetic.records(truth, mixes=((1, 1),), holds=()):
            named = in_scenario(record, f"{first}-{second}")
            found[named["cell"]["cell"]] = named
    return list(found.values())


@pytest.fixture(scope="module")
def frames(made):
    return {name: table.to_pandas() for name, table in synthetic_files.tables_of(made).items()}


def in_scenario(record, name):
    """Return a shared record under another scenario name."""
    cell = record["cell"]
    names = {key: cell[key].replace(".shared", f".{name}") for key in ("cell", "scenario")}
    return record | {"cell": cell | names}


def test_a_study_of_many_groups_has_one_conclusion_for_all(frames):
    told = list(conclusions(frames))
    of_demand, of_full_servers = (each for each in told if each.parts)
    assert of_demand.headline.startswith("Of 7 groups of models over all demands: 7 should share")
    assert of_full_servers.headline.startswith(
        "Of 7 scenarios of different models on full servers: "
    )
    assert {len(of_demand.parts), len(of_full_servers.parts)} == {7}
    ranks = [each.rank for each in of_full_servers.parts if each.kind == "yes"]
    assert len(set(ranks)) > 1 and ranks == sorted(ranks, reverse=True)


def test_the_page_unfolds_them(made, frames):
    page = render(frames, {}, synthetic.loaded(made))
    opening = '<details class="conclusion yes"><summary><h4>Up to '
    assert len(re.findall(f"{opening}[^<]*, m00 and m01 should share servers: ", page)) == 1
    assert "<summary>All 7 conclusions</summary>" in page
