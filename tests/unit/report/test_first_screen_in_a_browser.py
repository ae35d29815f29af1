"""Tests of the first screen in a headless Chromium: it fits on a screen of 1280 x 800 pixels, and
on a phone the notes come last."""

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import browser
import pytest
import synthetic
import synthetic_files

from perseus.host import parquet
from perseus.report import drawing
from perseus.report import page as report_page
from perseus.report.evidence import read_records
from perseus.results.records import Record
from perseus.results.study_results import StudyResults
from perseus.study.tasks.figure import FigureTask

pytestmark = browser.needs_chromium

STYLE = FigureTask(width_mm=160, font_pt=9, dpi=60, pricing="on_demand")
DEMAND = synthetic.demand({"resnet18": 40.0, "mobilenet_v3_large": 90.0})
MANY = {"vision_transformer_large": 30.0, "mobilenet_v3_large": 90.0, "efficientnet_v2_s": 50.0}
KINDS = ("replay", "soak", "startup", "slowdown")


def alone():
    return synthetic.records(mixes=(), holds=())


SEARCHES = {
    "two models": (lambda: synthetic.records(mixes=[(1, 1), (3, 1)]), "frontier"),
    "one model": (alone, "peaks"),
    "three models": (
        lambda: synthetic.records(synthetic.Truth(MANY), mixes=[(1, 1, 1)], holds=()),
        "frontier",
    ),
    "only failures": (
        lambda: [synthetic.with_outcome(each, "failed", "it died") for each in alone()],
        "peaks",
    ),
}
"""For each study with searches only: a function that makes its records, and its picture."""


@cache
def page(name):
    with TemporaryDirectory() as folder:
        made, figure = SEARCHES.get(name, (alone, name))
        task, cells = synthetic.TASK, synthetic_files.write(Path(folder), made())
        if name == "two models":
            task = task.model_copy(update={"demand": DEMAND})
        if name in KINDS:
            cells.append(synthetic_files.write_kind(name, Path(folder)))
        return rendered(Path(folder), cells, task, figure)


def rendered(folder, cells, task, figure):
    """Return the page with one figure."""
    tables = synthetic_files.all_tables(StudyResults.read(task, cells, []))
    paths = {name: folder / f"{name}.parquet" for name in tables}
    for name, table in tables.items():
        parquet.write(table, paths[name], folder / f"{name}.csv")
    of_figure = [
        cell for cell in cells if figure not in KINDS or Record.read(cell).task.run.kind == figure
    ]
    svg, png, csv = (folder / f"{figure}.{kind}" for kind in ("svg", "png", "csv"))
    drawing.draw(figure, paths, of_figure, STYLE, svg, png, csv)
    frames = {name: table.to_pandas() for name, table in tables.items()}
    records = read_records([cell / "record.json" for cell in cells])
    return report_page.render(frames, {figure: svg.read_bytes()}, records)


PLACES = """
  for (const image of page.images) await image.decode().catch(() => null);
  const parts = [".headline > p", "h1", ".cards", ".first figure", ".notes", "nav"];
  const places = parts.map((part) => page.querySelector(part).getBoundingClientRect());
  const found = places.map((place) => [Math.round(place.top), Math.round(place.bottom)]);
  const first = page.querySelector(".first");
  const image = page.querySelector(".first img");
  const cut = [...first.querySelectorAll("h1, .cards div")].filter(
    (part) => part.scrollWidth > part.clientWidth,
  );
  return {
    places: found,
    bottom: first.getBoundingClientRect().bottom,
    share: image.clientWidth / first.clientWidth,
    cut: cut.length,
    folded: !page.querySelector(".notes details").open,
  };
"""


@pytest.mark.parametrize("name", [*SEARCHES, *KINDS])
def test_a_screen_of_1280_by_800_shows_the_first_screen_and_its_large_picture(name):
    found = browser.look(page(name), (1280,), PLACES, height=800)["asked"]
    assert max(bottom for _, bottom in found["places"][:-1]) <= 800
    assert found["bottom"] <= 800 and found["cut"] == 0 and found["folded"]
    assert found["share"] > 0.5


def test_a_tall_picture_fits_too():
    tall = (
        '<img src="data:image/svg+xml,<svg xmlns=%22http://www.w3.org/2000/svg%22 width=%22400%22'
    )
    tall += ' height=%221200%22/>"'
    shown = re.sub("<img src='[^']*'", lambda _: tall, page("one model"), count=1)
    found = browser.look(shown, (1280,), PLACES, height=800)["asked"]
    picture, notes = found["places"][3:5]
    assert picture[1] - picture[0] > 600 and notes[1] <= found["bottom"] <= 800


@pytest.mark.parametrize("name", [*SEARCHES, *KINDS])
def test_on_a_phone_the_notes_come_after_the_title_the_sentence_the_cards_and_the_picture(name):
    found = browser.look(page(name), (380,), PLACES, height=800)["asked"]
    places = found["places"]
    assert all(upper[1] <= lower[0] for upper, lower in pairwise(places))
    assert found["cut"] == 0 and found["share"] > 0.9
