"""Tests of the page in a headless Chromium: nothing is broken or cut, tables sort and filter."""

import re
from pathlib import Path

import browser
import pytest
import synthetic
import synthetic_files

from perseus.host import parquet
from perseus.host.files import write_json
from perseus.report import drawing
from perseus.report import page as report_page
from perseus.report.evidence import read_records, read_samples, read_windows
from perseus.report.figures import figures_of
from perseus.report.main_tables import AT_MOST
from perseus.report.templating import TEMPLATES
from perseus.results.study_results import StudyResults
from perseus.study.tasks.figure import FigureTask
from perseus.study.tasks.report import ReportTask

pytestmark = browser.needs_chromium

WIDTHS = (380, 800, 1280, 1900)
A4_PX = 710  # between margins of 1 cm
MAX_BYTES = 2_000_000
EXAMPLE = Path(__file__).parents[3] / "docs/example/report.html"
STYLE = FigureTask(width_mm=160, font_pt=9, dpi=60, pricing="on_demand")

SORTED = """
  const table = page.querySelector("#response-times-at-the-certified-rates table");
  const heading = table.tHead.rows[0].cells[%d];
  const values = () => [...table.tBodies[0].rows].map((row) => row.cells[%d].textContent);
  const found = [];
  for (let clicks = 0; clicks < 2; clicks++) {
    heading.querySelector("button").click();
    found.push({ sorted: heading.getAttribute("aria-sort"), values: values() });
  }
  return found;
"""

FILTERED = """
  const table = page.querySelector("#response-times-at-the-certified-rates table");
  const line = table.parentElement.previousElementSibling;
  const input = line.querySelector("label > input");
  input.value = "RESNET18 mix-1-1";
  input.dispatchEvent(new Event("input"));
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
  const shown = line.querySelector("output").textContent;
  return { left: rows.map((row) => row.textContent), shown };
"""

LINKS = """
  const to = [...page.querySelectorAll('a[href^="#"]')].map((link) => link.getAttribute("href"));
  const ids = [...page.querySelectorAll("[id]")].map((part) => part.id);
  const images = [...page.images].every((image) => image.alt);
  const scopes = [...page.querySelectorAll("th")].every((heading) => heading.scope);
  const captions = [...page.querySelectorAll("table")].every((table) => table.caption);
  const windows = to.filter((link) => link.includes(".w")).length;
  return { to, ids, images, scopes, captions, windows, lang: page.documentElement.lang };
"""

OPEN_WIDTH = """
  for (const folded of page.querySelectorAll("details")) folded.open = true;
  return page.documentElement.scrollWidth;
"""

OPENED = """
  const link = page.querySelector('#peaks a[href*=".w"]');
  const row = page.getElementById(link.getAttribute("href").slice(1));
  const before = row.closest("details").open;
  page.location.hash = link.getAttribute("href");
  page.defaultView.openTarget();
  return [before, row.closest("details").open];
"""


def written(folder, made, kinds=(), figures=("peaks",)):
    """Write the page of a study with these figures, from its files."""
    cells = synthetic_files.write(folder, made)
    cells += [synthetic_files.OF_KIND[kind](folder) for kind in kinds]
    write_json(folder / "ceilings/cpu1.json", synthetic.ceiling())
    results = StudyResults.read(synthetic.TASK, cells, [folder / "ceilings/cpu1.json"])
    paths, drawn = {}, {}
    for name, table in synthetic_files.all_tables(results).items():
        paths[name] = folder / f"{name}.parquet"
        parquet.write(table, paths[name], folder / f"{name}.csv")
    for name in figures:
        svg, png, csv = (folder / f"{name}.{kind}" for kind in ("svg", "png", "csv"))
        drawing.draw(name, paths, cells, STYLE, svg, png, csv)
        drawn[name] = svg.read_bytes()
    frames = {
        name: table.to_pandas() for name, table in synthetic_files.all_tables(results).items()
    }
    records = read_records([cell / "record.json" for cell in cells])
    seen = read_windows(records), read_samples(records)
    return report_page.render(frames, drawn, records, ReportTask(), *seen)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    made = synthetic.with_failures(synthetic.records())
    return written(tmp_path_factory.mktemp("page"), made, synthetic_files.OF_KIND)


@pytest.fixture(scope="module")
def long_page(tmp_path_factory):
    truth = synthetic.Truth({"a": 30.0, "b": 90.0, "c": 50.0}, repeats=1, bootstraps=20)
    mixes = [(i, j, 1) for i in range(1, 7) for j in range(1, 7)]
    made = synthetic.records(truth, mixes=mixes, holds=())
    return written(tmp_path_factory.mktemp("long"), made)


def test_at_no_width_is_anything_cut_broken_or_complained_of(page, long_page):
    for each in (page, long_page):
        found = browser.look(each, WIDTHS, OPEN_WIDTH)
        assert found["console"] == []
        for width in WIDTHS:
            seen = found[str(width)]
            assert seen["width"] <= width
            assert seen["images"] == 1 and seen["broken"] == 0
        assert found["asked"] <= min(WIDTHS)
        # on a narrow screen the table scrolls, and the keyboard can reach it
        assert "Peaks" in found["380"]["cut"]
        assert found["1280"]["cut"] == found["1900"]["cut"] == []


def test_a_heading_sorts_by_number_in_both_directions(page):
    up, down = browser.look(page, (1280,), SORTED % (2, 2))["asked"]
    assert (up["sorted"], down["sorted"]) == ("ascending", "descending")
    rates = [float(text) for text in up["values"]]
    assert rates == sorted(rates) and len(set(rates)) > 2
    assert down["values"] == up["values"][::-1]


SORTED_COLUMN = """
  const table = page.querySelector("table");
  table.tHead.rows[0].cells[0].querySelector("button").click();
  return [...table.tBodies[0].rows].map((row) => row.textContent);
"""


@pytest.mark.parametrize(
    "ascending",
    [
        [f"p95{AT_MOST}60", f"p95{AT_MOST}120", f"p95{AT_MOST}300", f"p99{AT_MOST}20"],
        ["0.20", "1.50", "30.0", "\N{INFINITY}", "\N{EN DASH}"],
        ["2.5", "at least 3", "10"],
        ["\u221219 % to 46 %", "\u22124.5 %", "1.23e\u22127", "0.001"],
        ["3d_alexnet", "3d_resnet", "3d_vgg", "resnet18", "resnet50"],
    ],
)
def test_values_of_every_kind_are_sorted(ascending):
    rows = "".join(f"<tr><td>{value}</td></tr>" for value in ascending[::-1])
    page = (
        f"<table class=data><thead><tr><th>x</th></tr></thead><tbody>{rows}</tbody></table>"
        f"<script>{(TEMPLATES / 'tables.js').read_text()}</script>"
    )
    found = browser.look(page, (800,), SORTED_COLUMN)["asked"]
    assert found == ascending


def test_what_is_missing_comes_last_in_both_directions(page):
    slowdown = 9
    found = browser.look(page, (1280,), SORTED % (slowdown, slowdown))["asked"]
    for way in found:
        known = [text for text in way["values"] if text != "\N{EN DASH}"]
        assert way["values"][: len(known)] == known and 0 < len(known) < len(way["values"])


def test_a_filter_leaves_the_rows_with_all_words_and_says_how_many(page):
    found = browser.look(page, (1280,), FILTERED)["asked"]
    assert len(found["left"]) == 2 and all("mix-1-1" in row for row in found["left"])
    assert re.fullmatch(r"2 of \d+ rows", found["shown"])


def test_every_link_leads_somewhere_and_the_page_can_be_read_aloud(page):
    found = browser.look(page, (1280,), LINKS)["asked"]
    assert {link[1:].split("&")[0] for link in found["to"]} <= set(found["ids"])
    assert len(found["ids"]) == len(set(found["ids"]))
    assert found["windows"] > 10
    assert found["images"] and found["scopes"] and found["captions"] and found["lang"] == "en"


def test_a_link_opens_the_cell_of_its_window(page):
    assert browser.look(page, (1280,), OPENED)["asked"] == [False, True]


VISIBLE = """
  const tables = [...page.querySelectorAll(".cell table")];
  return [tables.length, tables.filter((table) => table.checkVisibility()).length];
"""


def test_it_prints(page, tmp_path):
    paper = page.replace("@media print", "@media all")
    paper = paper.replace(".scroll { overflow: visible;", ".scroll { overflow-x: auto;")
    found = browser.look(paper, (A4_PX,), VISIBLE)
    assert paper != page and found[str(A4_PX)]["cut"] == []
    windows, visible = found["asked"]
    assert windows == visible > 10  # in place of the charts, paper has the rows of the windows
    (tmp_path / "page.html").write_text(page)
    browser.pdf(tmp_path / "page.html", tmp_path / "page.pdf")
    printed = (tmp_path / "page.pdf").read_bytes()
    assert printed.startswith(b"%PDF") and len(re.findall(rb"/Type /Page\b", printed)) > 2


def test_without_javascript_a_section_has_the_rows_of_its_windows(page):
    """The page has no charts then. With JavaScript, the rows are folded."""
    opened = f"for (const line of page.querySelectorAll('.line')) line.open = true; {VISIBLE}"
    windows, visible = browser.look(page, (1280,), opened)["asked"]
    assert windows > 10 and visible == 0
    without = page.replace("(scripting: none)", "all")
    windows, visible = browser.look(without, (1280,), opened)["asked"]
    assert without != page and windows == visible


def test_the_report_of_a_study_like_the_default_study_has_at_most_two_megabytes(tmp_path):
    figures = figures_of({"peak", "choice", "prices"})
    made = synthetic.records(mixes=[(2, 1), (1, 1), (1, 2)], holds=())
    page = written(tmp_path, made, figures=figures)
    assert page.count("<img src='data:image/svg") == len(figures) > 8
    assert len(page.encode()) <= MAX_BYTES


def test_the_example_report_has_at_most_two_megabytes():
    assert EXAMPLE.stat().st_size <= MAX_BYTES
