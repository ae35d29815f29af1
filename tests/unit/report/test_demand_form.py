"""Tests that the demand form of the page plans the same servers as `snakemake plan`."""

import csv
import io
import json
import re

import browser
import numpy as np
import pytest
import synthetic
import synthetic_files
import yaml

from perseus.report import demand_form as form_data
from perseus.report import page as report_page
from perseus.report.demand_form import MAX_SLIDERS, demand_form
from perseus.report.headline import sure, usd
from perseus.report.numbers import percent, significant
from perseus.results.fleets import plans as of_plans
from perseus.results.fleets.plans import DEDICATED, HOURS_PER_MONTH, SHARING, plans
from perseus.results.study_results import StudyResults
from perseus.study.demand import Demand, ModelDemand, Spot
from perseus.study.price import PriceRow

THREE = synthetic.Truth({"a": 30.0, "b": 90.0, "c": 50.0}, gain=1.3, repeats=2, bootstraps=60)
FAST = synthetic.Truth({"a": 75.0, "b": 180.0, "c": 150.0}, gain=1.1, repeats=2, bootstraps=60)
MIXES = ((1, 1, 1), (2, 1, 1), (1, 1, 0), (0, 1, 1), (1, 0, 3))
DEAR = synthetic.PRICE.model_copy(
    update={"on_demand_usd_per_hour": 0.107, "spot_usd_per_hour": 0.041}
)


def results_of(folder, truths, task):
    """Return the results of a study whose servers have different capacities."""
    made = [
        synthetic.on_server(record, server, "onnxruntime")
        for server, truth in truths.items()
        for record in synthetic.records(truth, mixes=MIXES, holds=())
    ]
    return StudyResults.read(task, synthetic_files.write(folder, made), []), made


def page_of(results, made, draws=True):
    frames = {name: t.to_pandas() for name, t in synthetic_files.all_tables(results).items()}
    if not draws:
        frames["operating_point_draws"] = frames["operating_point_draws"].iloc[:0]
    return report_page.render(frames, {}, synthetic.loaded(made))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Return a study of three models on two types of servers."""
    task = synthetic.TASK.model_copy(update={"prices": {"cpu1": synthetic.PRICE, "cpu2": DEAR}})
    truths = {"cpu1": THREE, "cpu2": FAST}
    return results_of(tmp_path_factory.mktemp("study"), truths, task)


@pytest.fixture(scope="module")
def page(study):
    """Return a page without draws and probabilities, which another test covers."""
    return page_of(*study, draws=False)


ASKED = """
  const found = [];
  for (const values of %s) {
    for (const [name, value] of Object.entries(values)) {
      const input = page.querySelector(`input[name="${name}"]`);
      input.value = value;
      input.dispatchEvent(new Event("input", { bubbles: true }));
    }
    await page.defaultView.update();
    const texts = (parts) => [...parts].map((part) => part.textContent);
    const table = page.querySelector("#demand-result .scroll table");
    const rows = table ? [...table.tBodies[0].rows].map((row) => texts(row.cells)) : [];
    found.push({ cards: texts(page.querySelectorAll("#demand-result dl > div")), rows });
  }
  return found;
"""


def asked(page, demands):
    found = browser.look(page, (1100,), ASKED % json.dumps(demands))
    assert found["console"] == []
    return found["asked"]


def form_of(rps, **more):
    return {f"rps.{model}": value for model, value in rps.items()} | more


def utilisation(points, rows, rps):
    """Return the load of the busiest model as a share of the lower limits of all its servers;
    `rows` has the rows of the table of servers, none of them with spot servers."""
    lower_rps = {(point.server, point.peak.mix): point.lower_rps for point in points}
    carried_rps = dict.fromkeys(rps, 0.0)
    for count, server, mix, *_ in rows:
        for model, lower in lower_rps[server, mix].items():
            carried_rps[model] += int(count) * lower
    return max(rate / carried_rps[model] for model, rate in rps.items() if rate)


@browser.needs_chromium
def test_fleets_for_random_demands_are_those_of_the_plan(study, page, monkeypatch):
    monkeypatch.setattr(of_plans, "MAX_RESAMPLED", 0)  # another test checks the probabilities
    results, _ = study
    rng = np.random.default_rng(1)
    demands, planned = [], []
    for _ in range(40):
        rps = {m: float(f"{10 ** rng.uniform(0.3, 2.9):.4g}") for m in THREE.capacities}
        if rng.random() < 0.25:
            rps["b"] = 0.0
        settings = {
            "headroom": float(rng.integers(0, 4)) / 10,
            "min_servers": int(rng.integers(1, 4)),
        }
        spot_share = float(rng.integers(0, 3)) / 2
        if spot_share:
            settings["spot"] = Spot(largest_share=spot_share, revocations_per_hour=0.05)
        form = {"headroom": 100 * settings["headroom"], "min_servers": settings["min_servers"]}
        demands.append(form_of(rps, spot_share=100 * spot_share, **form))
        demand = synthetic.demand(rps, **settings, servers=("cpu1", "cpu2"))
        planned.append({p.strategy: p for p in plans(results.operating_points, demand)})
    differing = with_spot = 0
    for form, shown, plan in zip(demands, asked(page, demands), planned, strict=True):
        for card, strategy in zip(shown["cards"], (SHARING, DEDICATED), strict=False):
            one = plan[strategy]
            count = f"{one.servers} server{'' if one.servers == 1 else 's'}"
            assert f"{usd(one.usd_per_month)} a month{count}" in card
        differing += plan[SHARING].usd_per_hour < plan[DEDICATED].usd_per_hour
        assert sum(int(row[0]) for row in shown["rows"]) == plan[SHARING].servers
        if plan[SHARING].usd_per_hour == plan[DEDICATED].usd_per_hour:
            assert {row[2] for row in shown["rows"]} <= {*THREE.capacities}
        if any("spot" in row[1] for row in shown["rows"]):
            with_spot += 1
            continue
        rps = {model: form[f"rps.{model}"] for model in THREE.capacities}
        used = percent(utilisation(results.operating_points, shown["rows"], rps))
        text = f"Utilisation{used}largest load of a model, as a share of the lower limit"
        assert shown["cards"][-1].replace("\N{NO-BREAK SPACE}", " ") == text
    assert differing > 10  # for many demands, sharing saves money
    assert 10 < with_spot < 40


NOT_KNOWN = (
    "No server that the plan may use has both a price and a known lower limit of its capacity for"
)

CERTAIN = """
  await page.defaultView.update();
  return [...page.querySelectorAll("#demand-result dl > div")].map((card) => card.textContent);
"""


@browser.needs_chromium
def test_how_sure_a_saving_is_equals_the_plan(tmp_path):
    """The page and the plan use the same draws."""
    truth = synthetic.Truth({"a": 30.0, "b": 90.0}, between=0.1, within=0.1)
    made = synthetic.records(truth, mixes=[(1, 1)], holds=())
    demand = synthetic.demand({"a": 26.0, "b": 80.0})
    task = synthetic.TASK.model_copy(update={"demand": demand})
    results = StudyResults.read(task, synthetic_files.write(tmp_path, made), [])
    page = page_of(results, made)
    found = browser.look(page, (1100,), CERTAIN)["asked"]
    frames = {name: t.to_pandas() for name, t in synthetic_files.all_tables(results).items()}
    row = frames["fleets"].set_index("strategy").loc[SHARING]
    low, high = (percent(row[f"saving_if_known_{end}"]) for end in ("low", "high"))
    assert 0.02 < row["probability_of_saving"] < 0.98
    text = f"95 % interval {low} to {high}; {sure(row['probability_of_saving'])} to save"
    assert found[2].replace("\N{NO-BREAK SPACE}", " ").endswith(text)


@browser.needs_chromium
@pytest.mark.parametrize("line", ["peak", "mix-1-1"])
def test_a_capacity_without_upper_limit_is_the_reason_for_no_certainty(line, tmp_path):
    """The client was too slow for one repeat, so the capacity may be higher in this repeat."""
    truth = synthetic.Truth({"a": 30.0, "b": 90.0}, gain=1.6, between=0, within=0.1)
    made = synthetic.records(truth, mixes=[(1, 1)], holds=())
    made = synthetic.with_lost(made, line, "client_limited")
    results = StudyResults.read(synthetic.TASK, synthetic_files.write(tmp_path, made), [])
    found = browser.look(page_of(results, made), (1100,), CERTAIN)["asked"]
    assert "sure to suffice" in found[0].replace("\N{NO-BREAK SPACE}", " ")
    why = "certainty not computed: the capacity of a server has no known upper limit"
    assert re.fullmatch(rf"Saving of sharing[\d.]+\s%{why}", found[2])


WITHOUT_CERTAINTY = {
    r"there are too many possible plans \(3 kinds of servers, 2 models\)": (
        "const MAX_RESAMPLED = 400",
        "const MAX_RESAMPLED = 5",
    ),
    "the computation takes longer than -1 s": (
        "const CERTAINTY_MS = 10000",
        "const CERTAINTY_MS = -1000",
    ),
    "for some random samples of the capacities, the solver found no plan": (
        "savings.push(savingOfDraw(solver, shared, dedicated, settings, draw))",
        "savings.push(NaN)",
    ),
}
"""Reasons for which the page cannot compute how sure a saving is, each with a change of the page
that causes the reason."""


@browser.needs_chromium
def test_a_saving_without_certainty_has_a_reason(monkeypatch):
    truth = synthetic.Truth({"a": 30.0, "b": 90.0}, gain=1.6)
    made = synthetic.records(truth, mixes=[(1, 1)], holds=())
    frames = {name: t.to_pandas() for name, t in synthetic_files.tables_of(made).items()}
    page = report_page.render(frames, {}, synthetic.loaded(made))
    pages = {why: page.replace(*change) for why, change in WITHOUT_CERTAINTY.items()}
    assert page not in pages.values()
    frames["operating_point_draws"] = frames["operating_point_draws"].iloc[:0]
    pages["the study has no random samples of a capacity"] = report_page.render(
        frames, {}, synthetic.loaded(made)
    )
    monkeypatch.setattr(form_data, "MAX_DRAWN", 3)
    many = "the study has 4 capacities, and the page contains random samples only for up to 3"
    pages[f"{many} capacities"] = report_page.render(frames, {}, synthetic.loaded(made))
    for why, each in pages.items():
        saving = browser.look(each, (1100,), CERTAIN)["asked"][2]
        assert re.fullmatch(rf"Saving of sharing[\d.]+\s%certainty not computed: {why}", saving)
    assert "not computed" not in browser.look(page, (1100,), CERTAIN)["asked"][2]


@browser.needs_chromium
def test_dedicated_servers_without_a_known_capacity_are_not_called_impossible(tmp_path):
    truth = synthetic.Truth({"a": 30.0, "b": 90.0})
    made = [
        synthetic.with_outcome(each, "disturbed", "other_load")
        if each["cell"]["scenario"] == "cpu1.a"
        else each
        for each in synthetic.records(truth, mixes=[(1, 1)], holds=())
    ]
    results = StudyResults.read(synthetic.TASK, synthetic_files.write(tmp_path, made), [])
    found = browser.look(page_of(results, made), (1100,), CERTAIN)["asked"]
    assert found[1] == f"Dedicated serversnot known{NOT_KNOWN} a."


@browser.needs_chromium
def test_a_model_that_no_server_carries_and_a_demand_of_nothing_are_told(page):
    nothing = form_of({"a": 0, "b": 0, "c": 0})
    without_price = form_of({"a": 5}, **{"usd.cpu1": "", "usd.cpu2": ""})
    none, unpriced = asked(page, [nothing, without_price])
    assert none["cards"][0] == "Cheapest servers$0 a month0 servers"
    assert none["rows"] == [] and unpriced["cards"] == []
    seen = browser.look(page, (1100,), SEEN % json.dumps(without_price))["asked"]
    assert seen["why"] == [f"{NOT_KNOWN} a, b, c."]


SEEN = """
  const input = (name) => page.querySelector(`input[name="${name}"]`);
  for (const [name, value] of Object.entries(%s)) input(name).value = value;
  await page.defaultView.update();
  const result = page.getElementById("demand-result");
  const link = result.querySelector(".chart a");
  const texts = (parts) => [...parts].map((part) => part.textContent);
  const mixes = result.querySelectorAll('[aria-label="If all servers had the same mix"] tbody tr');
  const planned = result.querySelectorAll('[aria-label="The cheapest servers"] tbody tr');
  return {
    bars: [...result.querySelectorAll("meter")].map((bar) => bar.value),
    csv: link && (await (await page.defaultView.fetch(link.href)).text()),
    mixes: [...mixes].map((row) => texts(row.cells)),
    planned: [...planned].map((row) => row.cells[2].textContent),
    why: texts(result.querySelectorAll(":scope > p")),
    drawn: result.querySelectorAll(".uplot canvas").length,
  };
"""


def of_one_mix(points, rps):
    """Return number and cost of servers by type and mix, if all servers have the same mix."""
    found = {}
    for point in points:
        if set(point.models) == set(rps):
            count = max(np.ceil(rps[model] / point.lower_rps[model]) for model in rps)
            usd = count * point.usd_per_hour["on_demand"] * of_plans.HOURS_PER_MONTH
            found[point.peak.mix, point.server] = str(int(count)), significant(usd)
    return found


COMBINED = (
    "The plan combines 3 servers with different models or mixes. If all servers had the same mix, "
)


def why(points, rps, count, planned):
    """Return the sentences on the mixes of cpu1 for this demand and this number of servers.

    `planned` has the mixes of the planned servers.
    """
    found = []
    for point in points:
        if set(point.models) == set(rps) and point.server == "cpu1":
            used = {model: rate / point.lower_rps[model] / count for model, rate in rps.items()}
            scarce = max(used, key=used.get)
            found.append((used[scarce], point.peak.mix, scarce, count * point.lower_rps[scarce]))
    alone = {p.models[0]: p.rates_rps for p in points if p.server == "cpu1" and not p.is_shared}
    shares = [
        f"{percent(rate / alone[model][model])} of the dedicated peak of {model}"
        for model, rate in rps.items()
    ]
    (least, best, *_), *others = sorted(found)
    said = [f"This demand is {' and '.join(shares)}"]
    at = f"this demand at {percent(least)} of the lower limit"
    is_one_mix = planned == {best}
    alike = f"With mix {best}, {count} servers carry {at}"
    said += [alike if is_one_mix else f"{COMBINED}{count} servers with mix {best} would carry {at}"]
    for share, mix, scarce, most_rps in others:
        asked = f"{significant(most_rps)} of the {significant(rps[scarce])} requests/s of {scarce}"
        also = f"With mix {mix}, the load is {percent(share)} of the lower limit"
        only = f"With mix {mix}, {count} servers can carry only {asked}"
        said.append(also if share <= 1 else only)
    if is_one_mix and others:
        rule = "Among equally cheap sets of servers, the plan takes the set with the most spare"
        said.append(f"{rule} capacity")
    return [f"{'. '.join(said)}."]


@browser.needs_chromium
def test_the_page_says_what_the_other_mixes_carry(study, page):
    points = study[0].operating_points
    texts = []
    for rps in ({"a": 30.0, "b": 75.0, "c": 45.0}, {"a": 32.0, "b": 60.0, "c": 33.0}):
        only_one = form_of(rps) | {"usd.cpu2": ""}
        seen = browser.look(page, (1100,), SEEN % json.dumps(only_one))["asked"]
        assert [text.replace("\N{NO-BREAK SPACE}", " ") for text in seen["why"]] == why(
            points, rps, 3, set(seen["planned"])
        )
        texts += seen["why"]
    told = " ".join(texts).replace("\N{NO-BREAK SPACE}", " ")
    assert "carry only" in told and "the load is" in told and COMBINED in told


@browser.needs_chromium
def test_at_equal_cost_the_page_keeps_the_models_apart_and_says_so(study, page):
    points = study[0].operating_points
    alone = [p.lower_rps for p in points if p.server == "cpu1" and not p.is_shared]
    full = form_of({model: 0.99 * rps for each in alone for model, rps in each.items()})
    seen = browser.look(page, (1100,), SEEN % json.dumps(full | {"usd.cpu2": ""}))["asked"]
    assert seen["why"] == [
        "At this demand, shared servers are no cheaper than dedicated servers. The plan therefore"
        " uses dedicated servers, on which models do not slow each other down."
    ]
    (dearer,) = asked(page, [full | {"usd.cpu1": "34.7", "usd.cpu2": "1e6"}])
    same = "3 servers; the new price does not change the servers; configured price: $104 a month"
    assert same in dearer["cards"][0]


@browser.needs_chromium
def test_a_plan_of_two_models_is_drawn_on_their_frontier(study, page):
    two = form_of({"a": 40, "b": 90, "c": 0})
    found = browser.look(page, (1100,), SEEN % json.dumps(two))
    assert found["console"] == []
    seen = found["asked"]
    mixes = {tuple(row[:2]): tuple(row[2:4]) for row in seen["mixes"]}
    assert mixes == of_one_mix(study[0].operating_points, {"a": 40.0, "b": 90.0})
    best, second = seen["mixes"][:2]
    assert (float(best[3]), float(best[5][:-2])) < (float(second[3]), float(second[5][:-2]))
    assert seen["drawn"] == 1 and seen["bars"] and all(0 < bar <= 1 for bar in seen["bars"])
    rows = [line.split(",") for line in seen["csv"].splitlines()]
    assert rows[0] == ["series", "point", '"a (requests/s)"', '"b (requests/s)"']
    most = [row for row in rows if row[0] == '"lower limit of a planned server"']
    gets = [row for row in rows if row[0] == '"load of a planned server"']
    counts = [int(row[1].strip('"').split(" ")[0]) for row in most]
    for place, demand in ((2, 40), (3, 90)):
        total = sum(n * float(row[place]) for n, row in zip(counts, gets, strict=True))
        assert total == pytest.approx(demand)
        assert all(float(g[place]) <= float(m[place]) for g, m in zip(gets, most, strict=True))


@browser.needs_chromium
def test_of_three_models_the_load_of_each_planned_server_is_drawn(study, page):
    demand = {"a": 40.0, "b": 90.0, "c": 10.0}
    found = browser.look(page, (1100,), SEEN % json.dumps(form_of(demand)))
    assert found["console"] == []
    seen = found["asked"]
    assert seen["drawn"] == 1 and len(seen["bars"]) >= 3
    head, *rows = csv.reader(io.StringIO(seen["csv"]))
    assert head == ["series", "point", "servers, as in the table", "% of the lower limit"]
    points = study[0].operating_points
    lower_rps = {(point.server, point.peak.mix): point.lower_rps for point in points}
    carried_rps = dict.fromkeys(demand, 0.0)
    assert [row[3] for row in rows if row[0] == "lower limit"] == ["100", "100"]
    for model, point, label, used in rows[2:]:
        text = r"(\d+) \N{MULTIPLICATION SIGN} (\S+), (.+): ([\d.]+) of ([\d.]+) requests/s"
        count, server, mix, gets, most = re.fullmatch(text, point).groups()
        assert label == f"{count} \N{MULTIPLICATION SIGN} {server}"
        assert float(gets) / float(most) == pytest.approx(float(used) / 100, rel=0.01)
        assert most == significant(lower_rps[server, mix][model])
        carried_rps[model] += int(count) * lower_rps[server, mix][model] * float(used) / 100
    assert carried_rps == pytest.approx(demand)


@browser.needs_chromium
def test_mixes_are_not_compared_for_one_model(page):
    one = form_of({"a": 40, "b": 0, "c": 0})
    seen = browser.look(page, (1100,), SEEN % json.dumps(one))["asked"]
    assert seen["why"] == [] and seen["mixes"] == []


@browser.needs_chromium
def test_a_saving_is_told_only_if_a_server_was_measured_with_several_of_the_models(page):
    two, one = asked(page, [form_of({"a": 40, "b": 90, "c": 0}), form_of({"a": 40, "b": 0})])
    assert any("Saving of sharing" in card for card in two["cards"])
    assert not any("Saving of sharing" in card for card in one["cards"])


@browser.needs_chromium
def test_a_dedicated_fleet_in_place_of_a_dearer_fleet_with_sharing_has_its_own_cost(page):
    """The solver had no cheaper fleet with sharing at its time limit."""
    ask = """
      const offers = [{ shared: false }, { shared: true }, { shared: false }];
      const shared = { offers, counts: [1, 2, 0], usd: 120, isProven: false };
      const dedicated = { counts: [2, 1], usd: 100, isProven: true };
      return page.defaultView.sharingIfCheaper(shared, dedicated);
    """
    found = browser.look(page, (1100,), ask)["asked"]
    assert (found["counts"], found["usd"]) == ([2, 0, 1], 100)


TEXTS = {
    "cost({usd: 20, counts: [1, 0], isProven: true})[1]": "1 server",
    "cost({usd: 20, counts: [1, 1], isProven: false})[1]": "2 servers; the solver ran out of time,"
    " so a cheaper fleet may exist",
    "certaintyText(0.5, null)": "computing the certainty",
    "certaintyText(0, {why: 'a reason'})": "certainty not computed: a reason",
    "certaintyText(0.5, {chance: 0.97, low: 0.1, high: 0.5})": "95 % interval 10 % to 50 %; 97 %"
    " sure to save",
    "certaintyText(0.5, {chance: 1, low: 0.5, high: 0.5})": "95 % interval 50 %; over 99 % sure to"
    " save",
    "certaintyText(0, {chance: 0.3})": "with exactly known capacities, sharing would save with a"
    " probability of 30 %",
    "certaintyText(0, {chance: 0})": "",
    "certifiedRate(undefined, 10)": "not certified",
    "certifiedRate(12.34, 12.34)": "12.3",
    "certifiedRate(12.34, 12.4)": "12.3, below the load",
}
"""Texts of the form, by the call that returns the text."""


@browser.needs_chromium
def test_texts_of_the_form_say_what_is_known(page):
    ask = f"{json.dumps([*TEXTS])}.map((call) => page.defaultView.eval(call))"
    found = browser.look(page, (1100,), ask)["asked"]
    plain = [text.replace("\N{NO-BREAK SPACE}", " ") for text in found]
    assert dict(zip(TEXTS, plain, strict=True)) == TEXTS


@browser.needs_chromium
@pytest.mark.parametrize("rps", [{"a": 40.0, "b": 90.0}, {"a": 30.0, "b": 130.0}])
def test_the_demand_of_two_models_is_compared_with_their_peaks(rps, study, page):
    seen = browser.look(page, (1100,), SEEN % json.dumps(form_of(rps) | {"rps.c": 0}))["asked"]
    server, (why,) = seen["mixes"][0][1], seen["why"]
    points = [p for p in study[0].operating_points if p.server == server and not p.is_shared]
    peaks = {point.models[0]: point.rates_rps[point.models[0]] for point in points}
    a, b = (rate / peaks[model] for model, rate in rps.items())
    ratio = f"{significant(a / b)} : 1" if a > b else f"1 : {significant(b / a)}"
    assert why.replace("\N{NO-BREAK SPACE}", " ").startswith(
        f"This demand is {percent(a)} of the dedicated peak of a and {percent(b)} of the dedicated"
        f" peak of b, a ratio of about {ratio}."
    )


@browser.needs_chromium
def test_a_solver_without_a_fleet_is_told(page):
    found = "const found = cheapest(solver, offers, settings, rates);"
    without = page.replace(found, "const found = null;")
    seen = browser.look(without, (1100,), SEEN % "{}")["asked"]
    assert without != page and seen["bars"] == []
    assert seen["why"] == [
        "The solver found no set of the available servers that carries the demand."
    ]
    assert seen["why"] != browser.look(page, (1100,), SEEN % "{}")["asked"]["why"]


KEPT = """
  const input = page.querySelector('input[name="rps.a"]');
  input.value = "41.5";
  input.dispatchEvent(new Event("input", { bubbles: true }));
  input.dispatchEvent(new Event("change", { bubbles: true }));
  const kept = page.defaultView.location.href;
  const lines = page.getElementById("demand-lines").textContent;
  page.defaultView.location.hash = "#demand&rps.a=7&headroom=20&spot_share=50&unknown=3";
  page.defaultView.restore();
  await page.defaultView.update();
  const now = page.getElementById("demand-lines").textContent;
  const slider = page.querySelector('input[data-for="rps.a"]').value;
  return { kept, lines, now, slider };
"""


@browser.needs_chromium
def test_settings_stay_in_the_link_and_become_lines_of_the_configuration(page):
    found = browser.look(page, (1100,), KEPT)["asked"]
    assert "#demand&rps.a=41.5&" in found["kept"]
    assert found["lines"].startswith(
        "demand:\n  models:\n    - {name: a, rps: 41.5}\n    - {name: b"
    )
    assert "{name: a, rps: 7}" in found["now"] and "\n  headroom: 0.2\n" in found["now"]
    assert found["now"].endswith("spot: {largest_share: 0.5, revocations_per_hour: 0.05}")
    assert float(found["slider"]) == 7


COPIED = """
  const view = page.defaultView;
  const copied = [];
  const writeText = async (text) => {
    if (%s) throw new Error("not allowed");
    copied.push(text);
  };
  Object.defineProperty(view.navigator, "clipboard", { value: { writeText } });
  const button = page.getElementById("demand-copy");
  const lines = page.getElementById("demand-lines");
  button.closest("details").open = true;
  await view.update();
  button.click();
  await new Promise((resume) => setTimeout(resume, 50));
  const selected = view.getSelection().toString();
  return { copied, text: button.textContent, selected, lines: lines.textContent };
"""


@browser.needs_chromium
@pytest.mark.parametrize("is_refused", [False, True])
def test_the_button_copies_the_lines_or_selects_them_if_the_browser_refuses(is_refused, page):
    found = browser.look(page, (1100,), COPIED % json.dumps(is_refused))["asked"]
    assert found["lines"].startswith("demand:\n  models:") and found["selected"] == found["lines"]
    assert found["copied"] == ([] if is_refused else [found["lines"]])
    assert found["text"] == ("Selected: press Ctrl+C" if is_refused else "Copied")


PRICED = """
  const changed = {};
  for (const [name, value] of %s) {
    const input = page.querySelector(`input[name="${name}"]`);
    input.value = value;
    await page.defaultView.update();
    changed[name] = page.getElementById("demand-lines").textContent;
  }
  await page.defaultView.update();
  const lines = page.getElementById("demand-lines").textContent;
  const card = page.querySelector("#demand-result dl > div").textContent;
  return { ...changed, card, lines };
"""


@browser.needs_chromium
def test_changed_prices_are_copied_and_compared_with_those_of_the_configuration(page):
    prices = [["usd.cpu1", "60"], ["spot.cpu1", "20"], ["usd.cpu2", ""]]
    found = browser.look(page, (1100,), PRICED % json.dumps(prices))["asked"]
    assert found["usd.cpu1"].splitlines()[-2] == "# cpu1 in servers:"
    assert "cpu2" not in found["usd.cpu1"]
    for name, rates in (("usd.cpu1", (60, 9.5338)), ("spot.cpu1", (60, 20))):
        lines = found[name].splitlines()
        stated = yaml.safe_load(lines[-1].removeprefix("#   "))["price"]
        custom = PriceRow.model_validate(stated).custom
        each = (custom.on_demand, custom.spot)
        of_month = [rate.usd_per_vcpu_hour * HOURS_PER_MONTH for rate in each]
        assert of_month == pytest.approx(rates, rel=1e-4)
        assert Demand.model_validate(yaml.safe_load(found[name])["demand"])
    # A server without a price is never bought, neither on the page nor with the copied lines.
    assert found["usd.cpu2"].replace("  servers: [cpu1]\n", "", 1) == found["spot.cpu1"]
    assert Demand.model_validate(yaml.safe_load(found["usd.cpu2"])["demand"]).servers == ("cpu1",)
    same = (
        r"the new price does not change the servers; configured price: \$[\d.]+ a month, \d+ server"
    )
    assert re.search(same, found["card"])
    (other,) = asked(page, [{"usd.cpu1": "1e5"}])
    assert re.search(r"at the configured prices: \$[\d.]+ a month, \d+ server", other["cards"][0])


@browser.needs_chromium
def test_the_page_says_that_a_slightly_higher_price_does_not_change_the_servers(page):
    found = browser.look(page, (1100,), PRICED % '[["usd.cpu1", "34.7"]]')["asked"]
    same = r"; the new price does not change the servers; configured price: \$[\d.]+ a month"
    assert re.search(same, found["card"])


@browser.needs_chromium
def test_unchanged_prices_are_neither_copied_nor_compared(page):
    found = browser.look(page, (1100,), PRICED % "[]")["asked"]
    assert "price" not in found["card"] and "price" not in found["lines"]


@browser.needs_chromium
def test_the_lines_are_a_demand_of_the_configuration(page):
    lines = browser.look(page, (1100,), KEPT)["asked"]["now"]
    demand = Demand.model_validate(yaml.safe_load(lines)["demand"])
    assert demand.spot == Spot(largest_share=0.5, revocations_per_hour=0.05)
    assert demand.headroom == 0.2 and [model.name for model in demand.models] == ["a", "b", "c"]


def test_the_form_begins_with_the_demand_of_the_study():
    made = synthetic.records(mixes=[(1, 1)], holds=())
    asked_for = synthetic.demand({"resnet18": 40.0, "mobilenet_v3_large": 0.0})
    task = synthetic.TASK.model_copy(update={"demand": asked_for})
    frames = {n: t.to_pandas() for n, t in synthetic_files.tables_of(made, task).items()}
    spot = Spot(largest_share=0.4, revocations_per_hour=0.2)
    stated = Demand(models=(ModelDemand(name="resnet18", rps=40.0),), headroom=0.1, min_servers=2,
                    servers=("cpu9",), spot=spot)  # fmt: skip
    form = demand_form(frames, stated)
    assert (form.usd_per_month, form.spot_share) == ({"cpu1": None}, 0.4)
    assert form.machines == {"cpu1": synthetic.PRICE.instance}
    assert form.spot_usd_per_month == {"cpu1": None}
    may_use = demand_form(frames, stated.model_copy(update={"servers": ("cpu1",)}))
    assert may_use.spot_usd_per_month == {"cpu1": pytest.approx(0.01306 * 730)}
    assert json.loads(form.json)["revocations_per_hour"] == 0.2
    assert json.loads(form.json)["cores"] == {"cpu1": 1}
    # The plan uses spot prices also if costs.pricing, and so the table costs, has none.
    without_spot = {**frames, "costs": frames["costs"][frames["costs"]["pricing"] != "spot"]}
    assert demand_form(without_spot, stated).spot_usd_per_month == form.spot_usd_per_month
    assert demand_form(without_spot).spot_usd_per_month == may_use.spot_usd_per_month
    assert form.rps == {"resnet18": 40.0, "mobilenet_v3_large": 0.0}
    assert (form.headroom, form.min_servers) == (0.1, 2)
    nothing = demand_form({**frames, "operating_points": frames["operating_points"].iloc[:0]})
    assert nothing is None


def test_without_a_fleet_for_the_demand_the_form_begins_with_loads_that_servers_carry():
    made = synthetic.records(mixes=[(1, 1)], holds=())
    asked_for = synthetic.demand({"resnet18": 40.0, "unknown": 5.0})
    task = synthetic.TASK.model_copy(update={"demand": asked_for})
    frames = {n: t.to_pandas() for n, t in synthetic_files.tables_of(made, task).items()}
    assert frames["fleets"]["servers"].isna().all()
    assert all(rps > 0 for rps in demand_form(frames).rps.values())


def test_a_server_whose_prices_are_of_other_kinds_has_no_machine_on_the_page():
    """For example, `pricing: [committed]` for a server without a committed price."""
    made = synthetic.records(mixes=[(1, 1)], holds=())
    frames = {n: t.to_pandas() for n, t in synthetic_files.tables_of(made).items()}
    frames["costs"] = frames["costs"].iloc[:0]
    page = report_page.render(frames, {}, synthetic.loaded(made))
    assert "price of the kinds in costs.pricing" in page and "USD a month" in page


def test_without_a_demand_the_form_begins_in_the_proportion_and_the_order_of_the_headline():
    """The ratio of the lower limits of the models differs from the ratio of the estimates."""
    truth = synthetic.Truth({"z": 37.0, "a": 83.0}, repeats=2)
    made = synthetic.records(truth, mixes=[(1, 1)], holds=())
    frames = {n: t.to_pandas() for n, t in synthetic_files.tables_of(made).items()}
    frames["operating_points"].loc[frames["operating_points"]["model"] == "z", "lower_rps"] /= 2
    form = demand_form(frames)
    total = sum(form.rps.values())
    shown = ", ".join(f"{model} {form.rps[model] / total:.0%}" for model in form.models)
    assert {shown} == set(frames["crossings"]["proportion"]) and form.models == ["z", "a"]


def test_more_models_than_sliders_are_rows_of_a_table():
    models = {f"m{i}": 30.0 + i for i in range(MAX_SLIDERS + 1)}
    made = synthetic.records(synthetic.Truth(models, repeats=1), mixes=(), holds=())
    frames = {n: t.to_pandas() for n, t in synthetic_files.tables_of(made).items()}
    shown = report_page.render(frames, {}, synthetic.loaded(made))
    assert '<input type="range"' not in shown
    assert len(re.findall(r'name="rps\.m\d"', shown)) == MAX_SLIDERS + 1


def test_names_cannot_leave_the_data_of_the_form():
    truth = synthetic.Truth({"</script><b>": 30.0, "a&b": 90.0}, repeats=1)
    made = synthetic.records(truth, mixes=[(1, 1)], holds=())
    frames = {n: t.to_pandas() for n, t in synthetic_files.tables_of(made).items()}
    form = demand_form(frames)
    points = json.loads(form.json)["points"]
    assert "<" not in form.json and list(points[-1]["lower"]) == ["</script><b>", "a&b"]
