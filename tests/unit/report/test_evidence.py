"""Tests of the evidence for the numbers in the report: cells, windows, and the configuration."""

import io
import re
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import synthetic
import synthetic_files
from drawn import figure_of

from perseus.peak.verdict import NO_SLA
from perseus.report import configuration, evidence, line_evidence, links, main_tables
from perseus.report import page as report_page
from perseus.report.evidence import PageEvidence
from perseus.report.figure_data import FigureData
from perseus.report.numbers import percent, significant
from perseus.report.shown_tables import BELOW, MAX_ROWS
from perseus.results import tables
from perseus.results.study_results import StudyResults
from perseus.study.demand import Demand, ModelDemand
from perseus.study.measurement import ArrivalProcess, ClientSettings, Measurement
from perseus.study.model import Model
from perseus.study.server import PriceRow
from perseus.study.sla import Sla
from perseus.study.tasks.report import ReportedServer, ReportedTenant, ReportTask
from perseus.study.tenant import DynamicBatching


def of(made, folder):
    """Return the tables of a study and its evidence, read from files as in the report."""
    cells = synthetic_files.write(folder, made)
    records = evidence.read_records([cell / "record.json" for cell in cells])
    frames = {name: table.to_pandas() for name, table in synthetic_files.tables_of(made).items()}
    named = {record.task.cell: record for record in records}
    return frames, PageEvidence(named, evidence.read_windows(records))


def table(frames, found, title):
    (shown,) = (each for each in main_tables.tables(frames, found) if each.title == title)
    return shown


def test_rates_lead_to_the_windows_that_they_were_seen_in(tmp_path):
    made = synthetic.records(mixes=[(1, 1)], holds=())
    frames, found = of(made, tmp_path)
    shown = table(frames, found, "Peaks")
    windows = {id: row for cell in found.sections() for id, row in cell.windows}
    for row in shown.rows:
        values = dict(zip(shown.columns, row, strict=True))
        certified, failing = values["certified"], values["first failing"]
        assert windows[certified.link][3].text == "pass"
        assert windows[certified.link][2].text == certified.text
        assert windows[failing.link][3].text == "fail"
        assert windows[failing.link][2].text == failing.text
        assert values["estimated limit"].link in {cell.id for cell in found.sections()}


@dataclass
class OfCell:
    """A record with these windows."""

    task: SimpleNamespace
    rows: dict[str, list[object]]

    def windows(self):
        return self.rows


def test_windows_in_a_closed_loop_have_a_label_instead_of_a_verdict():
    """A window that is invalid, or undecided for another reason than a missing SLA, keeps its
    verdict."""
    rows = {
        "window_verdict": ["undecided", "invalid", "undecided", "pass"],
        "reason": [NO_SLA, NO_SLA, "too few requests", ""],
        "exceedance": [0.5, 0.1, 0.1, 0.0],
    }
    windows = evidence.read_windows([OfCell(SimpleNamespace(cell="c"), rows)])["c"]
    assert list(windows["window_verdict"]) == ["closed loop", "invalid", "undecided", "pass"]
    assert list(windows["reason"]) == ["", NO_SLA, "too few requests", ""]
    assert list(windows["exceedance"].isna()) == [True, False, False, False]


def test_servers_of_a_fleet_lead_to_the_load_lines_that_say_what_they_carry():
    """The load lines link to cells and windows. There are no links to missing parts of the page."""
    made = synthetic.records(mixes=[(1, 1)], holds=())
    asked = synthetic.demand(dict.fromkeys(synthetic.TRUTH.capacities, 3.0))
    task = synthetic.TASK.model_copy(update={"demand": asked})
    frames = {n: t.to_pandas() for n, t in synthetic_files.tables_of(made, task).items()}
    found = PageEvidence({})
    peaks = table(frames, found, "Peaks")
    named = {
        id: row[peaks.columns.index("load line")].text
        for id, row in zip(peaks.ids, peaks.rows, strict=True)
    }
    for title in ("The servers of the fleets", "What one server carries"):
        shown = table(frames, found, title)
        lines = [row[shown.columns.index("load line")] for row in shown.rows]
        assert lines and all(named[line.link] == line.text for line in lines)
    frames["peaks"] = frames["peaks"].iloc[:0]
    assert not any(entry.link for row in table(frames, found, title).rows for entry in row)


def test_what_one_server_carries_says_how_to_plan_by_it():
    """The note says which load line to use, and what to do if a certified rate is lower."""
    made = synthetic.records(mixes=[(1, 1)], holds=())
    frames = {n: t.to_pandas() for n, t in synthetic_files.tables_of(made).items()}
    note = table(frames, PageEvidence({}), "What one server carries").note
    assert (
        "If several mixes need the same number of servers, take the mix with"
        " the largest spare capacity" in note
    )
    assert "A lower limit may be above a certified rate. Plan by the lower limit" in note


def behind(page):
    """Return the ids to which the conclusions link."""
    section = page.split('<section id="conclusions"')[1].split("</section>")[0]
    return re.findall(r'href="#([^"]+)"', section)


@pytest.mark.parametrize("rps", [None, 3.0])
def test_conclusions_lead_to_the_numbers_behind_them(rps):
    models = synthetic.TRUTH.capacities
    asked = synthetic.demand(dict.fromkeys(models, rps)) if rps else None
    made = synthetic.records(mixes=[(1, 1), (2, 1)], holds=())
    task = synthetic.TASK.model_copy(update={"demand": asked})
    frames = {n: t.to_pandas() for n, t in synthetic_files.tables_of(made, task).items()}
    page = report_page.render(frames, {}, synthetic.loaded(made))
    found = behind(page)
    assert all(f'id="{each}"' in page for each in found)
    lines = {f"line-cpu1.{model}.peak" for model in models}
    assert lines < set(found) and found[0] in (
        "what-to-buy",
        "which-servers-are-the-cheapest-at-which-demand",
    )
    assert set(found) & {f"line-cpu1.shared.mix-{mix}" for mix in ("1-1", "2-1")}


def test_a_recommendation_leads_to_its_table():
    made = synthetic.grid_records()
    frames = {
        n: t.to_pandas() for n, t in synthetic_files.tables_of(made, synthetic.grid_task()).items()
    }
    page = report_page.render(frames, {}, synthetic.loaded(made))
    assert "recommended-settings" in behind(page) and 'id="recommended-settings"' in page


def test_of_many_load_lines_or_those_that_the_page_leaves_out_all_are_behind():
    peaks = pd.DataFrame({"mix": "a", "scenario": "cpu1.a", "load_line": "peak"}, range(400))
    assert links.to_lines(peaks.iloc[:2]) == (links.Link("a", "line-cpu1.a.peak"),) * 2
    for some in (peaks.iloc[:20], peaks.iloc[MAX_ROWS - 1 : MAX_ROWS + 1]):
        assert links.to_lines(some) == (links.Link("Peaks", "peaks"),)


def test_of_more_windows_than_a_page_holds_the_decisive_ones_are_shown(tmp_path, monkeypatch):
    frames, found = of(synthetic.records(mixes=[(1, 1)], holds=()), tmp_path)
    monkeypatch.setattr(evidence, "MAX_WINDOWS", 50)
    sections = list(found.sections())
    assert all(len(cell.windows) == 2 < cell.all_windows for cell in sections)
    links = {entry.link for row in table(frames, found, "Peaks").rows for entry in row}
    there = {cell.id for cell in sections} | {id for cell in sections for id, _ in cell.windows}
    assert links - {""} <= there


def test_of_more_cells_than_a_page_holds_the_others_have_no_section(tmp_path, monkeypatch):
    monkeypatch.setattr(evidence, "MAX_CELLS", 2)
    frames, found = of(synthetic.records(mixes=[(1, 1)], holds=()), tmp_path)
    assert [cell.name for cell in found.sections()] == list(found.records)[:2]
    _, *others = table(frames, found, "Peaks").rows
    assert {entry.link for row in others for entry in row} == {""}
    page = report_page.render(frames, {}, list(found.records.values()))
    assert "This page shows the first 2 of 6 cells" in " ".join(page.split())


def test_long_tables_end_and_say_where_the_rest_is():
    made = synthetic.records(mixes=[(1, 1)], holds=())
    frames = {name: each.to_pandas() for name, each in synthetic_files.tables_of(made).items()}
    frames["peaks"] = frames["peaks"].loc[np.repeat(0, MAX_ROWS + 5)]
    page = report_page.render(frames, {}, synthetic.loaded(made))
    text = f"The table shows the first {MAX_ROWS} of {MAX_ROWS + 5} rows; the file"
    assert f"{text} results/synthetic/tables/peaks.csv has all rows." in page


def test_a_first_failing_rate_below_the_interval_is_explained(tmp_path):
    frames, found = of(synthetic.records(mixes=[(1, 1)], holds=()), tmp_path)
    assert table(frames, found, "Peaks").remarks == []
    frames["peaks"].loc[0, "first_failing_rps"] = 0.9 * frames["peaks"]["ci_low_rps"][0]
    shown = table(frames, found, "Peaks")
    assert shown.rows[0][4].text.endswith(BELOW)
    assert not any(BELOW in row[4].text for row in shown.rows[1:])
    (remark,) = shown.remarks
    assert remark.what.startswith(BELOW) and "interval" in remark.what


def test_a_load_line_has_one_row_of_costs_with_all_prices(tmp_path):
    frames, found = of(synthetic.records(), tmp_path)
    shown = table(frames, found, "Costs")
    assert len(shown.rows) == len(frames["peaks"]) == len(frames["costs"]) / 2
    spot = frames["costs"][frames["costs"]["pricing"] == "spot"]
    at = shown.columns.index("at the estimated limit, spot")
    assert [float(row[at].text) for row in shown.rows] == pytest.approx(
        list(spot["usd_per_million_inferences"]), rel=5e-3
    )
    dear = frames["costs"].assign(region="elsewhere")
    frames["costs"] = frames["costs"].iloc[:1]
    (row,) = table(frames, found, "Costs").rows
    assert row[2].text != "\N{EN DASH}"
    frames["costs"] = dear.drop(index=1)  # the first row has no spot price
    assert table(frames, found, "Costs").rows[0][at].text == "\N{EN DASH}"
    assert {row[2].text for row in table(frames, found, "Prices").rows} == {"elsewhere"}


def test_prices_whose_day_is_not_known_say_so_and_what_to_do(tmp_path):
    frames, found = of(synthetic.records(mixes=[(1, 1)], holds=()), tmp_path)
    shown = table(frames, found, "Prices")
    (row,) = shown.rows
    assert row[shown.columns.index("valid on")].text == "not known"
    assert shown.note.endswith(f". {main_tables.NO_DAY}") and "costs.priced_on" in shown.note
    frames["costs"]["price_date"] = "2026-09-01"
    shown = table(frames, found, "Prices")
    assert shown.rows[0][shown.columns.index("valid on")].text == "2026-09-01"
    assert main_tables.NO_DAY not in shown.note
    assert synthetic.PRICE.source in shown.note  # with the version of the price list


def test_what_answers_stands_before_the_peaks_and_experiments_after_them(tmp_path):
    asked = synthetic.demand(dict.fromkeys(synthetic.TRUTH.capacities, 3.0))
    made = synthetic.records(mixes=[(1, 1)], holds=())
    cells = [*synthetic_files.write(tmp_path, made), synthetic_files.write_aa(tmp_path)]
    task = synthetic.TASK.model_copy(update={"demand": asked})
    results = StudyResults.read(task, cells, [])
    frames = {name: each.to_pandas() for name, each in synthetic_files.all_tables(results).items()}
    shown = list(main_tables.tables(frames, PageEvidence({})))
    titles = [each.title for each in shown]
    assert titles.index(tables.module_of("fleets").TITLE) < titles.index("Peaks")
    assert titles.index("Peaks") < titles.index(tables.module_of("aa").TITLE)
    assert "why not" not in shown[0].columns  # no tenant has a reason


TASK = ReportTask(
    models=(Model(name="a", sla=Sla(latency_ms=100.0)),),
    tenants=(ReportedTenant(model="a", name="a"),),
    servers=(ReportedServer(name="cpu1", cores=1, price=PriceRow(instance="i", region="r")),),
    measurement=Measurement(),
)
OTHERS = {
    "instances": {"tenants": (ReportedTenant(model="a", name="a", instances=2),)},
    "batching": {
        "tenants": (ReportedTenant(model="a", name="a", dynamic_batching=DynamicBatching()),)
    },
    "delay": {
        "tenants": (
            ReportedTenant(
                model="a", name="a", dynamic_batching=DynamicBatching(max_queue_delay_us=9)
            ),
        )
    },
    "weights": {"models": (Model(name="a", weights="tuned.pth", sla=Sla(latency_ms=100.0)),)},
    "images": {"models": (Model(name="a", images="pictures", sla=Sla(latency_ms=100.0)),)},
    "protocol": {"measurement": Measurement(client=ClientSettings(protocol="http"))},
    "shared memory": {"measurement": Measurement(client=ClientSettings(shared_memory=True))},
    "trace": {"measurement": Measurement(arrivals=ArrivalProcess(process="trace", trace="t.txt"))},
    "cv": {"measurement": Measurement(arrivals=ArrivalProcess(process="gamma", cv=2.5))},
    "demand": {"demand": Demand(models=(ModelDemand(name="a", rps=20.0),))},
    "launcher": {
        "servers": (
            ReportedServer(
                name="cpu1",
                cores=1,
                launcher="docker",
                image="triton:1",
                price=PriceRow(instance="i", region="r"),
            ),
        )
    },
}


def told(task):
    return [(t.title, t.columns, t.rows) for t in configuration.tables(task, [])]


def test_the_configuration_tells_studies_apart():
    tellings = [told(TASK), *(told(TASK.model_copy(update=other)) for other in OTHERS.values())]
    assert all(a != b for i, a in enumerate(tellings) for b in tellings[:i])
    columns = {title: columns for title, columns, _ in tellings[0]}
    assert {"instances", "max_batch_size"} <= set(columns["Tenants"])  # also keys with defaults


def test_the_configuration_shows_no_keys_that_apply_to_other_models():
    sla = {"latency_ms": 100}
    models = [
        {"name": "own", "onnx": "own.onnx", "images": "photos", "scale": 0.5},
        {"name": "theirs", "served_model": "theirs"},
        {"name": "resnet18"},
    ]
    given = tuple(Model.model_validate(each | {"sla": sla}) for each in models)
    table, *_ = configuration.tables(TASK.model_copy(update={"models": given}), [])
    rows = [
        dict(zip(table.columns, [entry.text for entry in row], strict=True)) for row in table.rows
    ]
    keys = ("architecture", "weights", "scale", "std", "request", "deterministic", "precision")
    none = configuration.NONE.text
    assert [[row[key] for key in keys] for row in rows] == [
        [none, none, "0.5", "1", none, "yes", "fp32"],
        [none, none, none, none, none, "yes", none],
        ["resnet18", "random", none, none, "float32", none, "fp32"],
    ]


def test_the_configuration_shows_the_largest_batch_as_it_is_served():
    made = synthetic.records(synthetic.Truth({"a": 30.0}), mixes=(), holds=())
    served = synthetic.loaded([record | {"max_batch_sizes": {"a": 1}} for record in made])
    (tenants,) = (each for each in configuration.tables(TASK, served) if each.title == "Tenants")
    (row,) = tenants.rows
    assert row[tenants.columns.index("max_batch_size")].text == "1"


def test_the_configuration_stands_on_the_page_by_its_keys():
    made = synthetic.records(mixes=[(1, 1)], holds=())
    frames = {name: each.to_pandas() for name, each in synthetic_files.tables_of(made).items()}
    task = TASK.model_copy(update=OTHERS["weights"] | OTHERS["cv"] | OTHERS["delay"])
    page = report_page.render(frames, {}, synthetic.loaded(made), task)
    section = page[page.index('<section id="configuration">') :].replace("<wbr>", "")
    for text in ("tuned.pth", "process gamma, cv 2.5", "max_queue_delay_us 9", "protocol grpc"):
        assert f">{text}" in section
    assert re.search(r'<th scope="col">weights</th>', section)
    assert "preprocessing" not in section  # no tenant has a value


def test_figures_without_anything_are_words():
    made = synthetic.records(synthetic.Truth({"resnet18": 30.0}), mixes=(), holds=())
    frames = {name: each.to_pandas() for name, each in synthetic_files.tables_of(made).items()}
    drawn = {}
    for name in ("peaks", "frontier"):
        svg, buffer = figure_of(name, FigureData(frames)), io.BytesIO()
        svg.savefig(buffer, format="svg")
        drawn[name] = buffer.getvalue()
    page = report_page.render(frames, drawn, synthetic.loaded(made))
    assert page.count("<figure") == 1 and "Figures without data in this study: frontier." in page


def test_a_section_says_what_was_offered_what_passed_and_what_failed(tmp_path):
    made = synthetic.records(mixes=[(1, 1)], holds=())
    frames, found = of(made, tmp_path)
    peaks = frames["peaks"].set_index("load_line")
    sections = line_evidence.lines(found, frames["peaks"])
    section = next(each for each in sections if "mix-1-1" in each.id)
    windows = pd.concat(found.windows[cell.name] for cell in section.cells)
    windows = windows[windows["scale"].notna()]
    each = windows.groupby(["cell", "window"])
    rates, verdicts = each["offered_rps"].sum(), each["window_verdict"].first()

    def between(rates):
        low, high = significant(rates.min()), significant(rates.max())
        return f"{len(rates)} windows at {low} to {high} requests/s"

    facts = dict(section.facts)
    assert facts["offered"] == f"{between(rates)}, {windows['requests'].sum():.0f} requests"
    assert {*verdicts} >= {"pass", "fail"}
    for verdict in {*verdicts}:
        assert facts[verdict].replace(",", "") == between(rates[verdicts == verdict])
    certified, failing = peaks.loc["mix-1-1", ["certified_rps", "first_failing_rps"]]
    text = f"at {significant(certified)} requests/s, every SLA held in new windows"
    assert facts["certified"] == text
    late = percent(windows[windows["window_verdict"] == "fail"]["exceedance"].max())
    text = f"; in the worst of all failed windows, {late} of the requests of a tenant were late"
    assert facts["first failure"] == f"at {significant(failing)} requests/s{text}"


def test_a_section_without_a_certified_rate_or_a_failure_claims_neither(tmp_path):
    frames, found = of(synthetic.records(mixes=[], holds=())[:1], tmp_path)
    frames["peaks"][["certified_rps", "first_failing_rps"]] = np.nan
    (section,) = line_evidence.lines(found, frames["peaks"])
    assert not {"certified", "first failure"} & set(section.facts) and "pass" in section.facts


ONLY_USUAL = (
    "The saving by sharing is 1 \N{MINUS SIGN} 1 / Σ(rate / dedicated peak)",
    "For a demand, the report states the cheapest set of whole servers",
    "This part of the page needs JavaScript.",
    "Every cell has a result.",
    "All windows of this cell.",
)
ONLY_ODD = (
    "The table has the first 1 of 2 cells without a result.",
    "These servers report no statistics: cpu1 (",
    "The windows that determine the results of this cell. The file windows.parquet of the cell has",
)


def test_sentences_of_the_templates_stand_only_where_they_are_true(tmp_path, monkeypatch):
    """The odd study has no sharing, no prices, failures, and more rows than the page shows."""
    frames, found = of(synthetic.records(mixes=[(1, 1)], holds=()), tmp_path / "usual")
    usual = report_page.render(frames, {}, list(found.records.values()), windows=found.windows)
    first, second, *others = synthetic.records(mixes=[], holds=())
    failed = [synthetic.with_outcome(each, "failed", "it died") for each in (first, second)]
    made = [*failed, *(each | {"tells_statistics": False} for each in others)]
    _, found = of(made, tmp_path / "odd")
    task = synthetic.TASK.model_copy(update={"prices": {}})
    frames = {name: t.to_pandas() for name, t in synthetic_files.tables_of(made, task).items()}
    monkeypatch.setattr(report_page, "MAX_ROWS", 1)
    monkeypatch.setattr(evidence, "MAX_WINDOWS", 1)
    odd = report_page.render(frames, {}, list(found.records.values()), windows=found.windows)
    usual, odd = (" ".join(page.split()) for page in (usual, odd))
    for sentence in ONLY_USUAL:
        assert sentence in usual and sentence not in odd
    for sentence in ONLY_ODD:
        assert sentence in odd and sentence not in usual
