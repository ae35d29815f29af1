"""Tests of the report: answer first, with its uncertainty, and safe HTML for any name."""

import html
import re

import numpy as np
import pandas as pd
import pytest
import synthetic
import synthetic_files

from perseus.host import machine, parquet
from perseus.peak.outcome import Outcome
from perseus.report import page as report_page
from perseus.report.conclusions import cheapest
from perseus.report.conclusions.sharing import conclusions
from perseus.report.hosts import differences
from perseus.report.numbers import percent, significant
from perseus.results.study_results import StudyResults
from perseus.results.tables import module_of
from perseus.study.experiments import OTHER_KINDS
from perseus.study.tasks.report import ReportTask

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><rect id="a"/></svg>'


def frames_of(made):
    return {name: table.to_pandas() for name, table in synthetic_files.tables_of(made).items()}


def rendered(made):
    return report_page.render(frames_of(made), {"peaks": SVG}, synthetic.loaded(made))


def without_scripts(page):
    return re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def repeated(gain=1.25, repeats=5, **truth):
    """Return the true values of a study with five repeats, as in the preset publication.

    Two repeats leave a large uncertainty.
    """
    return synthetic.Truth(synthetic.TRUTH.capacities, gain, repeats=repeats, **truth)


def conclusion_of(gain, preset="standard", **truth):
    """Return the conclusion of a synthetic study with one mix."""
    truth = repeated(gain, preset=preset, **truth)
    frames = frames_of(synthetic.records(truth, mixes=[(1, 1)], holds=()))
    (conclusion,) = conclusions(frames)
    return conclusion


@pytest.fixture(scope="module")
def page():
    return rendered(synthetic.with_failures(synthetic.records(repeated())))


def test_it_begins_with_the_conclusion(page):
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    assert text.index("should share: sharing saves about") < text.index("Peaks")
    assert re.search(r"carries 1\.\d\d times the load that dedicated servers carry", text)
    assert re.search(r"95 % interval \d+ % to \d+ %.*; probability of a saving > 0\.999", text)


def test_it_is_one_file(page):
    assert "data:image/svg+xml,<svg" in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)


def test_it_lists_what_did_not_succeed(page):
    for words in (
        "server ended during the measurement",
        "client used 91% of its core",
        "client limited",
    ):
        assert words in page


def test_every_outcome_without_a_result_has_an_explanation():
    unexplained = {*Outcome} - {*report_page.MEANINGS}
    assert unexplained == {Outcome.OK, Outcome.PREDICTED}


def test_a_line_without_dedicated_peaks_is_not_blamed_on_its_server():
    why = (
        "the rates of this cell depend on dedicated peaks that these cells did not find:"
        " cpu1.a.peak.r1 (unsteady)"
    )
    made = synthetic.records(mixes=[(1, 1)], holds=())
    mixes = [r for r in made if len(r["cell"]["tenants"]) > 1]
    alone = [
        synthetic.with_outcome(r, "unsteady", "it slowed down") for r in made if r not in mixes
    ]
    made = alone + [synthetic.with_outcome(r, "blocked", why) for r in mixes]
    frames = frames_of(made)
    assert set(frames["savings"]["verdict"]) == {"blocked"}
    (conclusion,) = conclusions(frames)
    assert conclusion.kind == "unknown" and why in " ".join(conclusion.sentences)
    assert "infeasible" not in rendered(made)


def test_a_figure_says_where_all_of_its_numbers_are():
    priced = ", tables/tenants.csv and tables/costs.csv"
    also = {"costs": "", "peaks": priced, "frontier": priced}
    also |= {
        figure: f" and tables/{table}.csv"
        for figure, table in (
            ("replay", "attainment"),
            ("ceilings", "peaks"),
            ("concurrency", "knees"),
            ("break_even", "crossings"),
        )
    }
    made = synthetic.records(synthetic.Truth(synthetic.TRUTH.capacities, repeats=1))
    page = report_page.render(frames_of(made), dict.fromkeys(also, SVG), synthetic.loaded(made))
    for figure, tables in also.items():
        files = f"figures/{figure}.csv{tables}"
        assert f'its numbers are in {files}"' in page and f"Data: {files}<" in page


def times_when_certified(page):
    """Return the table of response times at the certified rates."""
    return page.split("Response times at the certified rates</h")[1].split("</table>")[0]


def test_tenants_without_load_have_no_response_times():
    truth = synthetic.Truth({"a": 30.0, "b": 90.0, "c": 50.0}, repeats=1, bootstraps=20)
    page = rendered(synthetic.records(truth, mixes=[(1, 1, 0)], holds=()))
    times = times_when_certified(page)
    rows = [row for row in times.split("<tr>") if "mix-1-1-0" in row]
    assert len(rows) == 2 and not any("<td>c</td>" in row for row in rows)


def test_a_cell_that_was_predicted_is_not_said_to_be_certified():
    made = synthetic.records(mixes=[(1, 1)], holds=())
    predicted = {"outcome": "predicted", "certified_scale": None, "certified_window": -1}
    mixed = [each | predicted if len(each["weights"]) > 1 else each for each in made]
    page = rendered(mixed)
    assert "Every cell has a result." in page
    assert "mix-1-1" in times_when_certified(rendered(made))
    assert "mix-1-1" not in times_when_certified(page)
    of_mix = sum(each["outcome"] == "predicted" for each in mixed)
    words = " ".join(page.split())
    assert (
        f">{len(made) - of_mix} cells, measured on 20" in words
        and f", and {of_mix} predicted. A" in words
    )
    assert "predicted. A" not in rendered(made)


def test_it_tells_of_a_cell_that_was_measured_twice():
    made = synthetic.records(mixes=[(1, 1)], holds=())
    frames = frames_of(made)
    page = report_page.render(frames, {}, synthetic.loaded(made))
    assert "was measured 2 times" not in page
    unsteady = {"outcome": "unsteady", "reason": "it slowed down"}
    made[0] |= {"attempt": 2, "attempts": [unsteady, {"outcome": "ok", "reason": ""}]}
    page = report_page.render(frames, {}, synthetic.loaded(made))
    text = " ".join(page.split())
    assert "was measured 2 times" in text
    assert "unsteady (it slowed down), then ok. The report uses attempt 2." in text


def test_the_noise_of_the_host_stands_beside_the_savings(tmp_path):
    made = synthetic.records(synthetic.Truth(synthetic.TRUTH.capacities, 1.1), mixes=[(1, 1)])
    cells = [*synthetic_files.write(tmp_path, made), synthetic_files.write_aa(tmp_path)]
    results = StudyResults.read(synthetic.TASK, cells, [])
    noisy = {name: table.to_pandas() for name, table in synthetic_files.all_tables(results).items()}
    floor = percent(noisy["savings"]["noise_floor"].iloc[0])
    (conclusion,) = conclusions(noisy)
    (message,) = (each for each in conclusion.sentences if "noise" in each)
    assert message.startswith("On this host, two runs of the same cell on restarted servers")
    noise = "so the effect of sharing may be noise"
    assert message.endswith(f" may differ by {floor} (noise floor), {noise}.")
    page = report_page.render(noisy, {}, synthetic.loaded(made))
    assert f"<td>{floor}</td>" in page.replace("\N{NO-BREAK SPACE}", " ")
    larger = noisy["savings"].assign(noise_floor=0.01)
    (conclusion,) = conclusions(noisy | {"savings": larger})
    assert not any(noise in each for each in conclusion.sentences)
    without = frames_of(made)
    (conclusion,) = conclusions(without)
    assert not any("noise" in each for each in conclusion.sentences)


def test_what_preprocessing_costs_is_told_of_the_tenants_that_are_sent_pictures():
    first, *others = synthetic.records(synthetic.Truth({"resnet18": 30.0}), mixes=(), holds=())
    heading = "Where images are converted into tensors"
    assert heading not in rendered([first, *others])
    page = rendered([synthetic.by_server(first), *others])
    (section,) = re.findall(rf"<h3>{heading}.*?</table>", page, re.DOTALL)
    cells = re.findall(r"<td>(.*?)</td>", section)
    assert " to " in cells[3] and " to " in cells[4]  # the limit and p95, with their intervals
    assert cells[1:3] == ["resnet18", "server"] and cells[5:] == ["50000", "0.400", "4.50", "12.5"]


def test_a_ceiling_that_is_too_low_is_refused_and_why():
    made = synthetic.records(mixes=[(1, 1)], holds=())
    frames = frames_of(made)
    frames["ceilings"]["problem"] = "the client sent 449 % of this ceiling in valid windows"
    frames["peaks"]["client_load"] = np.nan
    page = report_page.render(frames, {"peaks": SVG}, synthetic.loaded(made))
    assert "The ceiling of the client is unreliable" in page and "449 % of this ceiling" in page
    assert without_scripts(page).count("449") == 1
    assert "run `make again` to measure the ceiling again" in " ".join(page.split())
    assert "is unreliable" not in rendered(made)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({}, None),
        ({"tells_siblings": False}, "does not show which CPUs share a physical core"),
        ({"shared_by_server_and_client": [2, 6]}, "share a physical core (CPUs 2, 6)"),
    ],
)
def test_it_says_what_is_known_of_physical_cores(told, message):
    made = synthetic.records(mixes=[(1, 1)], holds=())
    for record in made:
        record["host"]["topology"] |= told
    text = " ".join(rendered(made).split()).replace("\n", " ")
    assert (message in text) if message else ("share a physical core" not in text)


def test_names_cannot_break_the_page():
    truth = synthetic.Truth({"<script>alert(1)</script>": 30.0, "a&b": 90.0}, repeats=1)
    page = rendered(synthetic.records(truth, mixes=[(1, 1)], holds=()))
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert "a&amp;b" in page


def test_a_clear_gain_is_a_yes():
    conclusion = conclusion_of(1.25)
    assert conclusion.kind == "yes"


def test_a_clear_loss_is_a_no_and_said_as_more_cost():
    conclusion = conclusion_of(0.8)
    assert conclusion.kind == "no"
    assert re.search(
        r"money: sharing costs 2\d % more \(95 % interval \d+ % to \d+ %;", conclusion.sentences[0]
    )
    assert "\N{MINUS SIGN}" not in conclusion.sentences[0]


def test_a_loss_in_the_mixes_that_could_be_measured_is_told_as_such():
    made = synthetic.records(repeated(0.8))
    first = next(r["cell"]["run"] for r in made if r["cell"]["run"]["line"] == "mix")
    made = [
        synthetic.with_outcome(r, "failed", "the server died") if r["cell"]["run"] == first else r
        for r in made
    ]
    frames = frames_of(made)
    (conclusion,) = conclusions(frames)
    assert "every measured mix" not in conclusion.headline
    assert re.search(r"\d of \d mixes have an estimate", conclusion.headline)
    assert any("There is no estimate for" in s and "died" in s for s in conclusion.sentences)


def test_the_headline_names_the_mixes_that_it_does_not_answer_for():
    made = synthetic.records(repeated())
    made = [
        synthetic.with_outcome(r, "failed", "the server died")
        if r["cell"]["run"]["name"] == "mix-3-1"
        else r
        for r in made
    ]
    frames = frames_of(made)
    (conclusion,) = conclusions(frames)
    assert "should share: sharing saves about" in conclusion.headline
    assert conclusion.headline.endswith("(no estimate for resnet18 3 : 1 mobilenet_v3_large)")


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        ({"dedicated": "ok", "mix": "client_limited"}, "carries at least"),
        ({"dedicated": "failed", "mix": "uncertified"}, "carries about"),
    ],
)
def test_mixes_that_were_measured_are_never_not_known(outcomes, words):
    made = []
    for record in synthetic.records(mixes=[(1, 1)], holds=()):
        outcome = outcomes[record["cell"]["run"]["line"]]
        made.append(
            record if outcome == "ok" else synthetic.with_outcome(record, outcome, "for a reason")
        )
    frames = frames_of(made)
    (conclusion,) = conclusions(frames)
    assert words in conclusion.headline and "not known" not in conclusion.headline
    assert any("for a reason" in sentence for sentence in conclusion.sentences)


def test_no_difference_is_called_unclear():
    conclusion = conclusion_of(1.0, between=0.0)
    assert conclusion.kind == "unclear"
    within = r"saves at most [\d.]+ % and, in the best mix, costs at most [\d.]+ % more$"
    assert re.search(within, conclusion.headline)
    assert any("interval of the saving contains 0" in sentence for sentence in conclusion.sentences)


def test_a_single_quick_run_is_called_so():
    conclusion = conclusion_of(1.25, preset="quick", repeats=1)
    assert conclusion.headline.endswith("(one run each)")
    sentences = " ".join(conclusion.sentences)
    assert "comes from one run" in sentences
    assert "preset quick gives a first answer" in sentences
    assert "comes from one run" not in " ".join(conclusion_of(1.25, repeats=2).sentences)


def test_a_scenario_of_the_preset_smoke_is_no_measurement_beside_one_that_is():
    made = synthetic.with_two_presets()
    frames = frames_of(made)
    smoke = {"preset": "smoke"}
    for name in ("peaks", "savings"):
        mine = frames[name]["preset"] == "quick"
        frames[name].loc[mine, "preset"] = smoke["preset"]
    first, second = conclusions(frames)
    assert first.headline.startswith("No result for cpu1.shared: the preset smoke")
    assert second.kind != "unknown" and "resnet18" in second.headline


def test_the_caveat_of_a_preset_is_of_its_scenario_and_each_preset_is_told():
    made = synthetic.with_two_presets()
    frames = frames_of(made)
    quick, standard = conclusions(frames)
    for conclusion, is_quick in ((quick, True), (standard, False)):
        assert ("preset quick gives a first answer" in " ".join(conclusion.sentences)) == is_quick
    text = " ".join(rendered(made).split())
    assert "Preset quick (of cpu1.resnet18, cpu1.mobilenet_v3_large, cpu1.shared): settings" in text
    assert (
        "Preset standard (of cpu1.resnet18, cpu1.mobilenet_v3_large, cpu1.sure): settings" in text
    )
    assert "Preset quick: settings" in " ".join(rendered(synthetic.records()).split())


def test_a_served_model_that_changed_meanwhile_is_a_difference_between_cells():
    made = synthetic.records(mixes=[(1, 1)], holds=())
    model = {"name": "mine", "version": "3", "backend": "onnxruntime", "max_batch_size": 0}
    for record in made:
        record["served_models"] = {"resnet18": model | {"config_sha256": "ab" * 32}}
    assert differences(synthetic.loaded(made)) == []
    page = rendered(made)
    assert page.count("ab" * 32) == 1 and "Models that the servers already had" in page
    made[-1]["served_models"] = {"resnet18": model | {"config_sha256": "cd" * 32}}
    (difference,) = differences(synthetic.loaded(made))
    assert difference == (
        "mine of cpu1 version 3 with configuration abababababab"
        " or version 3 with configuration cdcdcdcdcdcd"
    )
    assert "Models that the servers already had" not in rendered(synthetic.records())


def test_warnings_of_cells_stand_before_the_findings():
    made = synthetic.records(mixes=[(1, 1)], holds=())
    assert "<strong>Warning</strong>" not in rendered(made)
    made[0]["warnings"] = ["resnet18 answered 551 requests/s, and <that> is too fast"]
    page = rendered(made)
    warning = page.index("resnet18 answered 551 requests/s, and &lt;that&gt; is too fast.")
    assert page.index("<h1>") < warning < page.index('id="conclusions"')
    assert "more cell" not in page
    for record in made:
        record["warnings"] = ["it is too fast"]
    assert len(made) == 6
    assert "1 more cell has warnings: see the file record" in rendered(made)
    made += synthetic.records(mixes=[(2, 1)], holds=())[-1:]
    made[-1]["warnings"] = ["it is too fast"]
    assert "2 more cells have warnings: see the file record" in rendered(made)


def test_what_recorded_requests_were_read_as_is_told_by_study_and_cell():
    made = synthetic.records(mixes=[(1, 1)], holds=())
    assert "Recorded requests" not in rendered(made)
    made[0]["traces"] = {"day.txt": "day.txt was read as text: 3 requests in 1.5 s, 2/s"}
    task = ReportTask(traces=("week.csv was read as a CSV file: <2> requests in 3 s",))
    page = report_page.render(frames_of(made), {}, synthetic.loaded(made), task=task)
    of_study = page.index("<li>week.csv was read as a CSV file: &lt;2&gt; requests in 3 s.</li>")
    assert page.index('id="configuration"') < of_study
    assert "day.txt was read as text: 3 requests in 1.5 s, 2/s" in page


def test_two_repeats_that_agree_do_not_settle_a_fifth():
    """Two repeats on a host whose speed varies by 20 % sometimes agree well by chance."""
    assert conclusion_of(1.25, repeats=2).kind == "unclear"


@pytest.mark.parametrize(
    ("outcome", "ends"), [("infeasible", "at most"), ("client_limited", "at least")]
)
def test_survivors_are_told_as_such(outcome, ends):
    made = synthetic.records(repeated(), mixes=[(1, 1)], holds=())
    frames = frames_of(synthetic.with_lost(made, "mix-1-1", outcome))
    (conclusion,) = conclusions(frames)
    assert (conclusion.kind == "unclear") == (outcome == "infeasible")
    assert re.search(rf"interval ([^)]* )?{ends} [^;]*\)", conclusion.sentences[0])
    assert not re.search(r"\b(nan|inf)\b", " ".join(conclusion.sentences))
    lost = r"Only 4 of 5 repeats of .+ found a limit \(repeat 2: it was lost\)"
    assert any(re.search(lost, sentence) for sentence in conclusion.sentences)
    shown = without_scripts(rendered(synthetic.with_lost(made, "mix-1-1", outcome)))
    assert "4 of 5" in shown and not re.search(r"\b(nan|inf)\b", shown)


def test_a_saving_that_is_only_the_best_of_many_is_a_perhaps():
    frames = frames_of(synthetic.records())
    savings = frames["savings"].assign(ci_low=0.01, ci_simultaneous_low=-0.01)
    conclusion = conclusions(frames | {"savings": savings})[0]
    assert conclusion.kind == "perhaps"


def test_nothing_known_gives_the_reasons():
    made = [synthetic.with_outcome(r, "failed", "the server died") for r in synthetic.records()]
    page = rendered(made)
    assert "is not known" in page
    assert "the server died" in page
    assert "No rate was certified" in page


def test_a_study_without_sharing_has_a_report():
    made = [r for r in synthetic.records() if r["cell"]["run"]["line"] == "dedicated"]
    page = rendered(made)
    assert "Savings of sharing" not in page
    assert "30." in page


def test_a_study_without_prices_says_so_once():
    task = synthetic.TASK.model_copy(update={"prices": {}})
    made = synthetic.records(mixes=[(1, 1)], holds=())
    tables = synthetic_files.tables_of(made, task)
    assert not any(len(tables[name]) for name in ("costs", "operating_points", "break_even"))
    frames = {name: table.to_pandas() for name, table in tables.items()}
    found = report_page.render(frames, {"peaks": SVG}, synthetic.loaded(made))
    text = "has a price of the kinds in costs.pricing, so the report has no costs."
    assert found.count(text) == 1 and "USD" not in found


def test_of_several_servers_the_cheapest_is_named():
    costs = frames_of(synthetic.records())["costs"]
    dear = costs.assign(
        server="gpu1", usd_per_million_inferences=9 * costs["usd_per_million_inferences"]
    )
    (conclusion,) = cheapest.conclusions({"costs": pd.concat([dear, costs])})
    assert conclusion.sentences[0].startswith("resnet18 is cheapest on cpu1: 0.4")


def other_host(record, **facts):
    return record | {"host": record["host"] | facts}


def test_cells_of_different_hosts_are_marked():
    made = synthetic.records()
    made[0] = other_host(made[0], cpu="Another processor")
    shown = " ".join(rendered(made).split())
    assert "processor Another processor or A processor" in shown
    assert "not strictly comparable" in shown


def test_what_a_cell_does_not_know_or_has_for_itself_makes_no_difference():
    """The page does not warn about these differences: a cell without a client, a server with
    another Triton version, and a cell on other cores."""
    made = synthetic.records()
    made = [other_host(made[0], client_realtime=None, server_cores=[3]),
            *(other_host(record, client_realtime=True) for record in made[1:])]  # fmt: skip
    gpu = made[1]["cell"]["server"] | {"name": "gpu1"}
    made[1] |= {"cell": made[1]["cell"] | {"server": gpu}, "triton_version": "2.60.0"}
    assert differences(synthetic.loaded(made)) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"triton_version": "2.52.0"}, "Triton of cpu1 2.52.0 or 2.51.0"),
        ({"image_id": "sha256:b"}, "image of cpu1 sha256:b or sha256:a"),
        ({"packages": {"torch": "2.8.0"}}, "torch 2.8.0 or 2.7.1"),
        ({"client_realtime": False}, "clients scheduled before ordinary processes False or True"),
        ({"gpu": {"driver": "570"}}, "GPU (driver) of cpu1 570 or 560"),
    ],
)
def test_a_real_change_of_software_is_told(change, words):
    facts = {"client_realtime": True, "packages": {"torch": "2.7.1"}, "gpu": {"driver": "560"}}
    made = [other_host(r, **facts) | {"image_id": "sha256:a"} for r in synthetic.records()]
    of_host = {name: value for name, value in change.items() if name in facts}
    made[0] = other_host(made[0], **of_host) | {k: change[k] for k in change.keys() - facts.keys()}
    assert differences(synthetic.loaded(made)) == [words]


def test_versions_that_matter_are_those_of_the_record():
    assert {"torch", "torchvision", "nvidia-pytriton"} <= machine.describe([], [])[
        "packages"
    ].keys()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0475, "0.0475"),
        (1234.5, "1234"),
        (None, "\N{EN DASH}"),
        (float("inf"), "\N{INFINITY}"),
        (0.0, "0"),
        (0.000123, "0.000123"),
        (0.00000301, "3.01e\N{MINUS SIGN}6"),
        (-0.00000301, "\N{MINUS SIGN}3.01e\N{MINUS SIGN}6"),
    ],
)
def test_numbers_are_for_people(value, text):
    assert significant(value) == text


def test_percentages():
    assert percent(0.2128) == "21 %"
    assert percent(-0.031) == "\N{MINUS SIGN}3.1 %"
    assert percent(0.09999) == "10 %"


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_a_kind_of_experiment_has_its_section_with_its_rows(kind, tmp_path):
    cell = synthetic_files.write_kind(kind, tmp_path)
    results = StudyResults.read(synthetic.TASK, [cell], [])
    frame = parquet.table(
        list(module_of(kind).rows(results)), module_of(kind).SCHEMA.arrow
    ).to_pandas()
    made = synthetic.records()
    without = frames_of(made)
    shown = report_page.render({**without, kind: frame}, {}, synthetic.loaded(made))
    shown = shown.replace("<wbr>", "")
    assert f"<h3>{module_of(kind).TITLE}</h3>" in shown
    assert f"<h3>{module_of(kind).TITLE}</h3>" not in rendered(made)
    assert shown.count(f"<td>{cell.name}</td>") == len(frame)


def test_a_kind_may_have_more_tables_which_stand_below_its_own(tmp_path):
    cell = synthetic_files.write_scaling(tmp_path, {1: 20.0, 2: 38.0, 4: 60.0, 8: 66.0})
    results, made = StudyResults.read(synthetic.TASK, [cell], []), synthetic.records()
    names = ("concurrency", "knees")
    more = {
        name: parquet.table(
            list(module_of(name).rows(results)), module_of(name).SCHEMA.arrow
        ).to_pandas()
        for name in names
    }
    shown = report_page.render({**frames_of(made), **more}, {}, synthetic.loaded(made))
    first, second = (shown.index(f"<h3>{module_of(name).TITLE}</h3>") for name in names)
    assert first < second and "queueing network" in shown[second:]


def test_other_prices_have_a_section_with_where_and_when_they_were_valid():
    made = synthetic.records()
    dear = synthetic.PRICE.model_copy(
        update={"region": "asia-east1", "date": "2026-09-01", "doubts": ("lines 2 and 9 <odd>",)}
    )
    task = synthetic.TASK.model_copy(update={"other_prices": {"cpu1": (dear,)}})
    frames = {
        name: table.to_pandas() for name, table in synthetic_files.tables_of(made, task).items()
    }
    shown = report_page.render(frames, {}, synthetic.loaded(made))
    section = shown[shown.index("<h3>At other prices</h3>") :]
    assert section.count("<td>asia-east1</td>") == len(frames["other_costs"])
    assert "<td>2026-09-01</td>" in section and "lines 2 and 9 &lt;odd&gt;" in section
    assert "<h3>At other prices</h3>" not in rendered(made)


def test_sharing_is_predicted_where_there_are_mixes_enough_and_nothing_is_said_of_it_elsewhere(
    page,
):
    assert "Predicted sharing" not in page and "How far predictions are off" not in page
    mixes = [(1, 1), (1, 2), (2, 1), (1, 3), (3, 1)]
    enough = rendered(synthetic.records(repeated(repeats=1), mixes=mixes, holds=()))
    assert "Predicted sharing</h3>" in enough and "How far predictions are off</h3>" in enough
