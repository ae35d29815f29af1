"""Tests of a comparison: summary, lines on the terminal, figure, and other differences."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise

import browser
import matplotlib.image
import numpy as np
import pandas as pd
import pytest
import synthetic
import synthetic_files

from perseus.peak.stats import Interval
from perseus.report import headline
from perseus.report.comparison import files, page, sentences, text
from perseus.report.comparison.changes import changes
from perseus.report.comparison.figure import draw
from perseus.report.style import drawing, save
from perseus.results.compare.source import read_source
from perseus.results.compare.table import compare
from perseus.study.presets import PRESETS
from perseus.study.tasks.figure import FigureTask
from perseus.study.traces import TraceSource

STYLE = FigureTask(width_mm=160, font_pt=9, dpi=60, pricing="on_demand")
TRUTH = synthetic.Truth(synthetic.TRUTH.capacities, repeats=3)
SLOWER = replace(TRUTH, capacities={name: rps / 1.3 for name, rps in TRUTH.capacities.items()})


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Return four studies: base, slower server, failed cells, and base with a higher price."""
    root = tmp_path_factory.mktemp("studies")
    dear = synthetic.TASK.prices["cpu1"].model_copy(update={"on_demand_usd_per_hour": 0.095})
    dearer = synthetic.TASK.model_copy(update={"prices": {"cpu1": dear}})
    made = {
        "base": (synthetic.records(TRUTH, 1), synthetic.TASK),
        "slower": (synthetic.records(SLOWER, 2), synthetic.TASK),
        "failed": (synthetic.with_failures(synthetic.records(TRUTH, 2)), synthetic.TASK),
        "dear": (synthetic.records(TRUTH, 2), dearer),
    }
    return {
        name: read_source(synthetic_files.write_study(root / name, records, task))
        for name, (records, task) in made.items()
    }


@pytest.fixture(scope="module")
def found(sources):
    return {
        name: compare(sources["base"], sources[name], 500) for name in sources if name != "base"
    }


def test_the_summary_answers_first_and_says_what_the_intervals_hold_against(found):
    summary = text.markdown(found["slower"])
    first = summary.splitlines()[0]
    assert re.fullmatch(
        r"# synthetic against synthetic: 8 worse, 5 no difference, 12 not .*", first
    )
    assert "the variation between repeats" in summary
    assert "was not measured (experiment aa)" in summary
    assert "a cost changes only if a peak changes" in summary
    assert "**worse** | all compared peaks of cpu1 (geometric mean) | 1.00 | 0.7" in summary
    assert "12 latencies (p95): the certified rates differ" in summary
    assert "The records show no difference: " in summary


def test_latencies_that_are_equal_are_counted_each(found):
    slower = found["slower"]
    (one, *_) = (
        each for each in slower.judged if each.pair.why_not.startswith("the certified rates differ")
    )
    base = replace(one.pair.base, draws=one.pair.base.draws.copy())
    twin = replace(one, pair=replace(one.pair, base=base))
    summary = text.markdown(replace(slower, judged=(*slower.judged, twin)))
    assert "13 latencies (p95): the certified rates differ" in summary


def test_of_many_rows_the_first_are_shown_and_those_that_differ_come_first(found, monkeypatch):
    whole, rows = text.markdown(found["slower"]), "no difference |"
    monkeypatch.setattr(text, "MAX_ROWS", 9)
    summary = text.markdown(found["slower"])
    assert summary.count("| **worse** |") == whole.count("| **worse** |") == 8
    assert summary.count(rows) == 1 < whole.count(rows) == 5
    assert "The first 9 of 13 lines. All lines are in comparison.csv." in summary
    assert "The first 9 of" not in whole
    monkeypatch.setattr(text, "MAX_ROWS", 0)
    assert "## Not compared\n\n\nThe first 0 of 1 lines. All" in text.markdown(found["slower"])


def test_costs_are_shown_where_a_price_differs(found):
    summary = text.markdown(found["dear"])
    assert "**worse** | cost of resnet18 alone on cpu1, on-demand" in summary
    assert (
        "| price of cpu1, on-demand | 0.0475 USD/h (n1-standard-1 in us-central1) | 0.095"
        in summary
    )


def test_what_failed_is_named_with_its_reason(found):
    summary = text.markdown(found["failed"])
    assert "## Not compared" in summary
    assert (
        "no estimate in new (client limited: repeat 1: the client used 91% of its core)" in summary
    )


def test_no_text_of_a_result_is_markup(sources):
    records = [record.model_copy(update={"host": record.host | {"kernel": "6|1 <b>*x*\n# @me"}})
               for record in sources["slower"].records]  # fmt: skip
    new = replace(sources["slower"], records=tuple(records), where="`a`|b")
    summary = text.markdown(compare(sources["base"], new, 200))
    assert "| kernel | 6.1 | 6\\|1 \\<b\\>\\*x\\* \\# \\@me |" in summary
    assert "\n# @me" not in summary and "\\`a\\`\\|b" in summary


def test_the_name_of_a_study_is_no_markup(sources):
    new = replace(sources["slower"], study="x\n\n# fine <img src=x> @team")
    summary = text.markdown(compare(sources["base"], new, 200))
    assert summary.startswith("# x \\# fine \\<img src=x\\> \\@team against synthetic: ")
    assert "- New: study x \\# fine \\<img src=x\\> \\@team (" in summary


@pytest.mark.parametrize("name", ["$\\frac$", "$x", "a$b$c"])
def test_names_in_the_figure_are_no_mathematics(found, tmp_path, name):
    table = found["slower"].table.to_pandas().assign(server=name)
    assert drawn(table, tmp_path)


def test_what_the_noise_floor_hides_is_said(sources):
    def hidden(floor):
        rates = 100 * np.exp(0.01 * np.array([-1.2, -0.6, 0.0, 0.6, 1.2]))
        rows = {"server": "cpu1", "cell": "cpu1.shared.aa.r1", "windows": 3, "answered_rps": rates}
        rows |= {"low_rps": 0.999 * rates, "high_rps": 1.001 * rates, "noise_floor": floor}
        tables = {**sources["base"].tables, "aa": pd.DataFrame(rows)}
        base = replace(sources["base"], tables=tables)
        summary = text.markdown(compare(base, sources["slower"], 500))
        (line,) = (each for each in summary.splitlines() if "comparison does not detect" in each)
        return line

    assert "noise floor" not in hidden(0.01)
    line = hidden(0.5)
    assert "If a peak changes by less than about 29 %, this comparison" in line  # 0.5 / sqrt(3)
    assert "not detect the change (for 7 of 7 peaks, the reason is the noise floor)." in line


def test_the_terminal_has_few_lines(found):
    lines = list(text.terminal(found["slower"]))
    assert len(lines) == 8 and all(line.startswith("  worse: ") for line in lines[1:6])
    mean = "all compared peaks of cpu1 (geometric mean)"
    assert lines[1].startswith(f"  worse: {mean}: \N{MINUS SIGN}2")
    assert lines[6] == "  and 3 more"


def test_an_unknown_noise_is_said(sources):
    alone = [replace(sources[name], records=tuple(r for r in sources[name].records
                                                  if r.task.repeat == 1))
             for name in ("base", "slower")]  # fmt: skip
    assert "The noise of the host is not known" in sentences.noise(compare(*alone, 200))


def test_intervals_of_repeats_in_tables_are_no_unknown_noise(sources):
    told = {"records": (), "without_records": "its records are missing"}
    base, new = (replace(sources[name], **told) for name in ("base", "slower"))
    text = sentences.noise(compare(base, new, 200))
    assert "the variation between repeats" in text and "have neither repeats" not in text
    assert "without repeats" not in text
    peaks = base.tables["peaks"]
    once = peaks.assign(repeats_used=peaks["repeats_used"].where(peaks["kind"] == "mix", 1))
    mixed = replace(base, tables={**base.tables, "peaks": once})
    text = sentences.noise(compare(mixed, new, 200))
    assert "of measurements without repeats allow for the usual changes in a host's speed." in text


def test_the_noise_of_the_quietest_and_of_the_noisiest_server_is_said(found):
    deviations = {"a": np.full(3, 0.02), "b": np.full(3, 0.01), "c": np.full(3, 0.08)}
    noise = replace(found["slower"].noise, deviations=deviations)
    text = sentences.noise(replace(found["slower"], noise=noise))
    told = "1.0 % to 8.0 %, depending on the server"
    assert f"the variation between repeats (standard deviation {told})." in text


def test_a_change_is_signed_and_an_open_end_said():
    assert sentences.change(Interval(1.072, 1.021, 1.12)) == "+7.2 % (+2.1 % to +12 %)"
    for low, high in ((0.0, np.inf), (0.08, 2800.0)):
        text = sentences.change(Interval(0.9, low, high))
        assert text == "\N{MINUS SIGN}10 % (no bound)"
    # The text always contains the end of the interval that decides the verdict.
    assert sentences.change(Interval(20.0, 1.8, 30.0)) == "+1900 % (+80 % to +2900 %)"
    assert sentences.change(Interval(0.05, 0.04, 0.6)).endswith("to \N{MINUS SIGN}40 %)")


def test_hosts_versions_settings_and_prices_that_differ_are_listed(sources):
    base, records = sources["base"], []
    for record in sources["dear"].records:
        server = record.task.server.model_copy(update={"cores": 2})
        task = record.task.model_copy(update={"server": server, "seed": 7})
        packages = record.host["packages"] | {"numpy": "2.0"}
        host = record.host | {"kernel": "6.2", "packages": packages}
        records.append(record.model_copy(update={"host": host, "task": task}))
    assert changes(base, replace(sources["dear"], records=tuple(records))) == [
        ("kernel", "6.1", "6.2"),
        ("numpy", "1.26.4", "2.0"),
        ("cores of cpu1", "1", "2"),
        ("seed", "1", "7"),
        ("price of cpu1, on-demand", "0.0475 USD/h (n1-standard-1 in us-central1)",
         "0.095 USD/h (n1-standard-1 in us-central1)"),
    ]  # fmt: skip
    assert changes(base, replace(base, records=())) == []


def test_what_only_one_study_has_is_listed(sources):
    base, records = sources["base"], []
    for record in base.records:
        task = record.task.model_copy(update={"trace": TraceSource(file="t.csv")})
        host = record.host | {"cpu_quota_cores": 2}
        records.append(record.model_copy(update={"host": host, "task": task}))
    costs = base.tables["costs"]
    tables = {**base.tables, "costs": costs[costs["pricing"] == "on_demand"]}
    checks = {name: check for name, check in base.checks.items() if name != "resnet18"}
    new = replace(base, records=tuple(records), tables=tables, checks=checks)
    network = "architecture resnet18, weights random, seed 1, file random resne"
    assert changes(base, new) == [
        ("CPU quota in cores", "none or unknown", "2"),
        ("trace.file", "none", "t.csv"),
        ("network of resnet18", network, "none"),
        ("price of cpu1, spot", "0.01306 USD/h (n1-standard-1 in us-central1)", "none"),
    ]
    assert {(what, after, before) for what, before, after in changes(base, new)} == set(
        changes(new, base)
    )


def test_another_preset_is_one_difference_and_not_one_for_each_of_its_settings(sources):
    base, standard = sources["base"], PRESETS["standard"].settings
    records = [
        record.model_copy(
            update={"task": record.task.model_copy(
                update={"preset": "standard", "search": standard})}
        )
        for record in base.records
    ]  # fmt: skip
    new = replace(base, records=tuple(records))
    assert changes(base, new) == [("preset", "quick", "standard")]


def test_what_the_records_cannot_show_is_said(found, sources):
    unrecorded = "The records do not contain the settings instances, intra_op_threads,"
    for name in ("slower", "dear"):
        assert unrecorded in page.render(found[name], SVG)
        assert unrecorded.replace("_", "\\_") in text.markdown(found[name])
    new = replace(sources["dear"], records=(), without_records="its records are missing")
    without = compare(sources["base"], new, 200)
    for shown in (page.render(without, SVG), text.markdown(without)):
        assert "price of cpu1" in shown
        assert "Not known: the records with the hosts, versions and settings are missing." in shown


def test_new_versions_of_models_are_listed(sources):
    base = replace(
        sources["base"],
        checks={
            "own": {"sha256": "0123456789abcdef"},
            "built": {
                "architecture": "resnet18",
                "weights": "random",
                "seed": 1,
                "sha256": "1" * 64,
            },
            "failed": {"export_error": "it has no classifier"},
        },
    )
    checks = {**base.checks, "own": {"sha256": "fedcba9876543210"}}
    checks["built"] = {**checks["built"], "weights": "tuned.pt"}
    assert changes(base, replace(base, checks=checks)) == [
        ("network of own", "file 0123456789ab", "file fedcba987654"),
        (
            "network of built",
            "architecture resnet18, weights random, seed 1, file 111111111111",
            "architecture resnet18, weights tuned.pt, seed 1, file 111111111111",
        ),
    ]


@pytest.mark.parametrize("name", ["slower", "failed", "dear"])
def test_all_files_are_written_and_the_figure_is_the_same_each_time(found, name, tmp_path):
    for folder in ("a", "b"):
        files.write(found[name], STYLE, tmp_path / folder)
    names = {path.name for path in (tmp_path / "a").iterdir()}
    kinds = ("parquet", "csv", "svg", "png", "html")
    assert names == {"summary.md", *(f"comparison.{kind}" for kind in kinds)}
    svgs = [(tmp_path / folder / "comparison.svg").read_bytes() for folder in ("a", "b")]
    assert svgs[0] == svgs[1]
    assert matplotlib.image.imread(tmp_path / "a/comparison.png").std() > 0.01


SVG = b'<svg xmlns="http://www.w3.org/2000/svg"/>'


CHANGED = r" \N{MINUS SIGN}?\+?[\d.]+ % \([^)]+\)\."


def test_the_page_answers_in_one_sentence(found, sources):
    same = compare(sources["base"], sources["base"], 200)
    faster = compare(sources["slower"], sources["base"], 200)
    alone = [replace(sources[name], records=tuple(r for r in sources[name].records
                                                  if r.task.repeat == 1))
             for name in ("base", "slower")]  # fmt: skip
    better = [each for each in sentences.shown(faster) if each.verdict == "better"]
    peak = [each for each in better if each.pair.metric == "peak"][:1]
    both = (*found["failed"].judged, *found["slower"].judged, *faster.judged)
    lost = sentences.lost(found["failed"].judged)
    mean, none = "; mean change of peaks", "shows a difference"
    for comparison, sentence in (
        (found["slower"], rf"8 of 13 values got worse{mean}:{CHANGED}"),
        (same, rf"None of \d+ values {none} beyond the noise{mean}:{CHANGED}"),
        (compare(*alone, 200), rf"None of \d+ values {none} \(noise unknown\){mean}:{CHANGED}"),
        (faster, rf"8 of \d+ values got better{mean}:{CHANGED}"),
        (replace(faster, judged=tuple(peak)), rf"1 of 1 .* better; change of the peak:{CHANGED}"),
        (found["failed"], rf"2 of \d+ values got worse \(2 lost\){mean}:{CHANGED}"),
        (replace(same, judged=tuple(lost)), r"2 of 2 values got worse \(2 lost\)\."),
        (replace(same, judged=both), rf"10 of \d+ .* worse \(2 lost\), 8 better{mean}:{CHANGED}"),
        (
            replace(same, judged=(*both, *map(elsewhere, found["slower"].judged))),
            rf"18 of \d+ .* worse \(2 lost\), 8 better{mean} on (gpu1|cpu1):{CHANGED}",
        ),
        (replace(same, judged=()), r"Nothing in these two studies can be compared\."),
    ):
        told = sentences.conclusion(comparison)
        assert re.fullmatch(sentence, told)
        assert headline.word_count(told) <= headline.MAX_WORDS


def elsewhere(judged):
    """Return the compared value of another server."""
    line = judged.pair.line
    moved = replace(line, row={**line.row, "server": "gpu1"})
    return replace(judged, pair=replace(judged.pair, line=moved))


def test_a_lost_peak_is_worse_wherever_a_result_is_shown(found):
    """The gate fails because of a lost peak, so that no text may call the comparison good."""
    failed, peak = (
        found["failed"],
        "peak of resnet18 3 : 1 mobilenet_v3_large on cpu1 (cpu1.shared)",
    )
    lost = f"{peak}: now infeasible: repeat 1: the SLA fails at every rate tested"
    summary, lines = text.markdown(failed), list(text.terminal(failed))
    assert summary.startswith("# synthetic against synthetic: 2 worse, ")
    escaped, nothing = peak.replace("_", "\\_"), "\N{EN DASH}"
    assert f"| **worse** | {escaped} | 56.7/s | {nothing} | now infeasible: repeat 1:" in summary
    assert "no estimate in new (infeasible" not in summary
    assert lines[1].startswith(f"  worse: {lost}") and lines[2].startswith("  worse: ")
    shown = page.render(failed, SVG).replace("\N{NO-BREAK SPACE}", " ")
    first = " ".join(re.sub(r"<[^>]+>", "", shown.split("<nav")[0]).split())
    assert 'class="headline no"' in shown and f"Lost peaks 2 {lost}" in first
    rows = shown.split('id="values"')[1].split("<tbody>")[1].split("</tbody>")[0].split("<tr>")
    assert all("<td>worse</td>" in each and "now " in each for each in rows[1:3])


def test_the_page_has_key_figures_a_picture_to_look_into_and_every_value(found):
    shown = page.render(found["slower"], SVG).replace("\N{NO-BREAK SPACE}", " ")
    first = " ".join(re.sub(r"<[^>]+>", " ", shown.split("<nav")[0]).split())
    assert (
        "All compared peaks of cpu1 \N{MINUS SIGN}2" in first and "Largest loss: peak of" in first
    )
    assert "does not detect smaller changes of a peak" in first and "Largest gain" not in first
    (chart,) = re.findall(r'<script type="application/json">(.*?)</script>', shown)
    series = {each["name"]: each for each in json.loads(chart)["series"]}
    assert list(series) == ["no change", "worse"] and len(series["worse"]["x"]) == 7
    assert all(new < base for base, new in zip(*(series["worse"][a] for a in "xy"), strict=True))
    rows = shown.split('id="values"')[1].split("<tbody>")[1].split("</tbody>")[0]
    assert rows.count("<tr>") == 13 and rows.index("worse") < rows.index("no difference")
    assert "Not compared: 1" in shown and "12 latencies (p95)" in shown
    assert not re.search(r'(src|href)="(?!data:|#)', shown)


def test_the_page_tells_what_else_differs_and_lets_no_text_be_markup(found, sources):
    assert "hosts, versions, settings and prices are the same" in page.render(found["slower"], SVG)
    assert "<td>price of cpu1, on-demand</td>" in page.render(found["dear"], SVG)
    new = replace(sources["slower"], study="</title><img src=x>")
    shown = page.render(compare(sources["base"], new, 200), SVG)
    assert "<img src=x>" not in shown and "&lt;img src=x&gt;" in shown


COMPARED = """
  const place = page.querySelector(".chart");
  place.scrollIntoView();
  for (let i = 0; i < 200 && !place.querySelector("canvas"); i++)
    await new Promise((resume) => setTimeout(resume, 50));
  return page.querySelectorAll(".uplot canvas").length;
"""


WIDTHS = (380, 800, 1280, 1900)


@pytest.fixture(scope="module")
def written(found, tmp_path_factory):
    """Return the page of a comparison with its figure."""
    folder = tmp_path_factory.mktemp("page")
    files.write(found["failed"], STYLE, folder)
    return (folder / "comparison.html").read_text()


@browser.needs_chromium
def test_the_page_works_in_a_browser(written):
    seen = browser.look(written, WIDTHS, COMPARED)
    assert seen["console"] == [] and seen["asked"] == 1
    for width in WIDTHS:
        of_width = seen[str(width)]
        assert of_width["width"] <= width
        assert of_width["images"] == 1 and of_width["broken"] == 0
    assert seen["1280"]["cut"] == seen["1900"]["cut"] == []


FIRST_SCREEN = """
  const [picture, title] = ["header img", "h1"].map((of) => page.querySelector(of));
  await picture.decode();
  const shown = [picture, title].map((part) => part.getBoundingClientRect());
  return { width: shown[0].width, ends: shown.map(({ bottom }) => bottom) };
"""


@browser.needs_chromium
def test_the_picture_is_on_the_first_screen_also_on_paper_and_without_scripts(written, tmp_path):
    plain = re.sub(r"<script.*?</script>", "", written, flags=re.DOTALL)
    for shown in (written, plain):
        seen = browser.look(shown, (1280,), FIRST_SCREEN)["asked"]
        assert seen["width"] > 400 and max(seen["ends"]) <= 900  # the height of the view
    paper = written.replace("@media print", "@media all")
    found = browser.look(paper.replace("overflow: visible;", "overflow-x: auto;"), (710,))["710"]
    assert paper != written and found["cut"] == [] and found["width"] <= 710
    (tmp_path / "page.html").write_text(written)
    browser.pdf(tmp_path / "page.html", tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def drawn(table, tmp_path):
    with drawing(STYLE):
        save(draw(table, STYLE), STYLE, tmp_path / "c.svg", tmp_path / "c.png")
    return (tmp_path / "c.svg").read_text()


def test_figures_of_nothing_of_much_and_of_wide_intervals(found, tmp_path):
    table = found["slower"].table.to_pandas()
    assert drawn(table[table["verdict"] == "not comparable"], tmp_path)
    many = pd.concat([table] * 8)
    assert drawn(many, tmp_path)
    wide = table.assign(simultaneous_low=0.0, simultaneous_high=np.inf, noise_floor=0.1)
    assert drawn(wide, tmp_path)


def test_the_figure_begins_with_the_worst_and_names_lost_peaks(found):
    def labels(table):
        with drawing(STYLE):
            return [[label.get_text().replace("\n", " ") for label in panel.get_yticklabels()]
                    for panel in draw(table, STYLE).axes]  # fmt: skip

    slower = found["slower"].table.to_pandas()
    worse, _ = labels(slower[::-1])
    assert len(worse) == 10 and not any("sharing ratio" in each for each in worse[:8])
    _, peaks = labels(found["failed"].table.to_pandas())
    assert [each.endswith(": no new peak") for each in peaks] == [True, True] + 4 * [False]


def test_labels_of_several_lines_do_not_write_over_each_other(tmp_path):
    names = ("squeezenet1_1", "mobilenet_v3_small", "resnet18", "shufflenet_v2_x1_0")
    truth = synthetic.Truth(dict.fromkeys(names, 50.0), bootstraps=50)
    made = synthetic.records(truth, mixes=[(1, 1, 1, 1), (2, 1, 1, 1)], holds=())
    base, new = (
        read_source(synthetic_files.write_study(tmp_path / name, made)) for name in ("base", "new")
    )
    with drawing(STYLE):
        figure = draw(compare(base, new, 200).table.to_pandas(), STYLE)
        figure.draw_without_rendering()
    for panel in figure.axes:
        labels = panel.get_yticklabels()
        boxes = [label.get_window_extent() for label in labels]
        assert max(label.get_text().count("\n") for label in labels) >= 1
        assert not any(one.overlaps(other) for one, other in pairwise(boxes))
