"""Tests of a grid's recommendation: first in the report, with a section and a figure."""

import html
import re

import numpy as np
import pandas as pd
import pytest
import synthetic
import synthetic_files
from drawn import STYLE, figure_of
from matplotlib.collections import PathCollection

from perseus.report import page as report_page
from perseus.report.conclusions.recommended import conclusions
from perseus.report.figure_data import FigureData
from perseus.report.style import drawing

THREE = synthetic.Truth(synthetic.TRUTH.capacities, repeats=3)


def frames_of(made, **task):
    found = synthetic_files.tables_of(made, synthetic.grid_task(**task))
    return {name: table.to_pandas() for name, table in found.items()}


@pytest.fixture(scope="module")
def made():
    return synthetic.grid_records(truth=THREE)


@pytest.fixture(scope="module")
def frames(made):
    return frames_of(made)


def text_of(frames, made):
    page = report_page.render(frames, {}, synthetic.loaded(made))
    shown = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", shown)).split())


def test_the_report_begins_with_what_to_take(frames, made):
    text = text_of(frames, made)
    assert text.index("resnet18: runtime openvino") < text.index("Peaks")
    assert "Recommended settings" in text and "Settings side by side" in text
    assert "left out" in text and "it needs a GPU" in text
    assert not re.search(r"\b(nan|inf|None)\b", text)


def test_a_conclusion_is_as_sure_as_its_verdict(frames):
    kinds = [conclusion.kind for conclusion in conclusions(frames)]
    assert kinds == ["yes"] * 3
    close = frames["recommendations"].assign(verdict="too close to tell")
    (first, *_) = conclusions({"recommendations": close})
    assert first.kind == "unclear"
    assert first.headline.endswith(", but another setting may be better")
    nothing = frames["recommendations"].assign(verdict="none", setting=None)
    (first, *_) = conclusions({"recommendations": nothing})
    assert (first.kind, first.headline) == ("no", "resnet18: no setting can be recommended")
    smoke = frames["recommendations"].assign(preset="smoke")
    assert list(conclusions({"recommendations": smoke})) == []


def test_a_study_without_a_grid_does_not_speak_of_it():
    plain = synthetic.records()
    without = synthetic_files.tables_of(plain)
    text = text_of({name: table.to_pandas() for name, table in without.items()}, plain)
    assert "ecommended" not in text and "Settings side by side" not in text


def drawn(frames):
    with drawing(STYLE):
        made = figure_of("grid", FigureData(frames))
        made.canvas.draw()
    return made


def marks(axes):
    """Return the points of the settings, with the ring around the cheapest setting."""
    scattered = (each for each in axes.collections if isinstance(each, PathCollection))
    return [tuple(np.round(each.get_offsets()[0], 6)) for each in scattered]


def labels(axes):
    """Return the settings in the numbered list, and check that each number in the list is also
    beside a mark."""
    *numbers, names = (text.get_text() for text in axes.texts)
    named = dict(line.split("  ") for line in names.splitlines())
    assert sorted(numbers) == sorted(named)
    return set(named.values())


def test_the_figure_has_a_mark_for_each_setting_and_a_ring_around_the_cheapest(frames):
    panels = drawn(frames).axes
    assert [axes.get_title(loc="left").split(":")[0] for axes in panels][:2] == [
        "resnet18",
        "mobilenet_v3_large",
    ]
    for axes in panels:
        found = marks(axes)
        assert len(found) == 4 and len(set(found)) == 3
    assert panels[0].get_title(loc="left").endswith(": 3 of 4 settings")
    assert labels(panels[0]) == {"runtime onnxruntime", "runtime openvino", "runtime pytorch"}


def test_the_figure_says_where_nothing_was_certified():
    made = [
        synthetic.with_outcome(r, "failed", "the server died") for r in synthetic.grid_records()
    ]
    for axes in drawn(frames_of(made)).axes:
        assert [text.get_text() for text in axes.texts] == ["no setting has a certified rate"]


def test_many_settings_are_labelled_on_the_front_only(frames):
    many = frames["grid"][frames["grid"]["mix"] == "resnet18"].dropna(subset="rank")
    rows = [many.assign(setting=f"instances {n}", rank=None, on_front=False) for n in range(4)]
    pages = {**frames, "grid": pd.concat([many, *rows], ignore_index=True)}
    (axes,) = drawn(pages).axes
    front = many[many["on_front"].eq(True)]
    assert labels(axes) == set(front["setting"])


def test_more_questions_than_a_page_holds_are_told_of(frames):
    rows = [frames["grid"].assign(grid=f"grid {n}") for n in range(4)]
    pages = {**frames, "grid": pd.concat(rows, ignore_index=True)}
    assert drawn(pages).get_supxlabel() == "4 more models and mixes in grid.csv"
