"""Tests of the pages with axe-core: names, contrast, roles and order of headings."""

import json
from importlib import resources

import browser
import pytest
import synthetic
import synthetic_files

from perseus.report import page as report_page
from perseus.report.comparison import files
from perseus.report.evidence import read_records, read_samples, read_windows
from perseus.results.compare.source import read_source
from perseus.results.compare.table import compare
from perseus.results.study_results import StudyResults
from perseus.study.tasks.figure import FigureTask
from perseus.study.tasks.report import ReportTask

axe = pytest.importorskip("axe_core_python", reason="axe-core-python of requirements.txt")
pytestmark = browser.needs_chromium

STYLE = FigureTask(width_mm=160, font_pt=9, dpi=60, pricing="on_demand")

CHECKED = """
  const view = page.defaultView;
  for (const part of page.querySelectorAll("details")) part.open = true;
  for (const place of page.querySelectorAll(".chart")) {
    place.scrollIntoView();
    await new Promise((resume) => setTimeout(resume, 40));
  }
  if (view.update) await view.update();
  const script = page.createElement("script");
  script.textContent = %s;
  page.head.append(script);
  const { violations, passes } = await view.axe.run(page, { resultTypes: ["violations"] });
  return { passes: passes.length, found: violations.map((each) => [each.id, each.nodes[0].html]) };
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    demand = synthetic.demand({"resnet18": 40.0, "mobilenet_v3_large": 90.0})
    task = synthetic.TASK.model_copy(update={"demand": demand})
    made = synthetic.with_failures(synthetic.records())
    cells = synthetic_files.write(folder, made)
    results = StudyResults.read(task, cells, [])
    frames = {name: t.to_pandas() for name, t in synthetic_files.all_tables(results).items()}
    records = read_records([cell / "record.json" for cell in cells])
    seen = read_windows(records), read_samples(records)
    return report_page.render(frames, {}, records, ReportTask(), *seen)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    """Return the page of a comparison with lost peaks, prices that differ, and its figure."""
    folder = tmp_path_factory.mktemp("comparison")
    dear = synthetic.TASK.prices["cpu1"].model_copy(update={"on_demand_usd_per_hour": 0.095})
    dearer = synthetic.TASK.model_copy(update={"prices": {"cpu1": dear}})
    made = synthetic.records()
    base, new = (
        read_source(synthetic_files.write_study(folder / name, records, task))
        for name, records, task in (
            ("base", made, synthetic.TASK),
            ("new", synthetic.with_failures(synthetic.records(seed=1)), dearer),
        )
    )
    files.write(compare(base, new, 200), STYLE, folder)
    return (folder / "comparison.html").read_text()


WIDTHS = (380, 800, 1280, 1900)
A4_PX = 710  # between margins of 1 cm
MEDIA = {
    "light": {},
    "dark": {"(prefers-color-scheme: dark)": "all", "light dark": "dark"},
    "print": {"@media print": "@media all"},
}
"""Changes of the page that show it in dark colours, or as on paper."""
VIEWS = [
    *(("page", medium, width) for medium in ("light", "dark") for width in WIDTHS),
    ("page", "print", A4_PX),
    ("comparison", "light", 1280),
    ("comparison", "dark", 1280),
]


def checked(page, width=1280):
    source = json.dumps((resources.files("axe_core_python") / "axe.min.js").read_text())
    return browser.look(page, (width,), CHECKED % source.replace("</", "<\\/"))["asked"]


@pytest.mark.parametrize(("name", "medium", "width"), VIEWS)
def test_axe_finds_nothing_in_a_page(name, medium, width, request):
    shown = request.getfixturevalue(name)
    for media, other in MEDIA[medium].items():
        assert media in shown
        shown = shown.replace(media, other)
    seen = checked(shown, width)
    assert seen["found"] == [] and seen["passes"] > 20


def test_axe_finds_a_label_that_is_missing(page):
    without = page.replace('aria-label="headroom in percent"', "")
    assert [rule for rule, _ in checked(without)["found"]] == ["label"]
