"""Tests of the checks of all tables: correct tables pass, and each error has its place."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import synthetic
import synthetic_files

from perseus.host import parquet
from perseus.host.files import write_json
from perseus.peak.outcome import Outcome
from perseus.results.check import (
    MAX_LISTED,
    ContradictionError,
    between,
    check,
    csv_problems,
    of_table,
    problems,
)
from perseus.results.study_results import StudyResults
from perseus.results.tables import TABLES, module_of
from perseus.study.demand import Spot

ROOT = Path(__file__).parents[3]
MODELS = tuple(synthetic.TRUTH.capacities)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the tables of a study with every kind of experiment, every verdict, and a demand."""
    folder = tmp_path_factory.mktemp("synthetic")
    cells = synthetic_files.write(folder, synthetic.with_failures(synthetic.records()))
    cells += [write(folder) for write in synthetic_files.EVERY_KIND.values()]
    write_json(folder / "ceilings/cpu1.json", synthetic.ceiling())
    spot = Spot(largest_share=0.5, revocations_per_hour=0.1)
    asked = synthetic.demand(dict.fromkeys(MODELS, 200.0), headroom=0.1, min_servers=2, spot=spot)
    other = synthetic.PRICE.model_copy(update={"region": "asia-east1"})
    task = synthetic.TASK.model_copy(
        update={"demand": asked, "other_prices": {"cpu1": (other, other)}}
    )
    return synthetic_files.all_tables(
        StudyResults.read(task, cells, [folder / "ceilings/cpu1.json"])
    )


@pytest.fixture(scope="module")
def grid():
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=3)
    return synthetic_files.tables_of(synthetic.grid_records(truth=truth), synthetic.grid_task())


def test_what_is_made_of_measurements_holds(made, grid):
    empty = {name for name in TABLES if not made[name].num_rows}
    # Only studies with a grid or a catalogue have rows in these tables.
    of_others = {"grid", "recommendations", "runtimes", "catalogue_predictions"}
    assert empty <= of_others, "tests/synthetic_files.py writes none of them"
    assert grid["grid"].num_rows and grid["recommendations"].num_rows
    assert problems(made, {}) == [] and problems(grid, {}) == []


@pytest.mark.parametrize("outcome", Outcome)
def test_whatever_became_of_a_repeat_its_tables_hold(outcome):
    records = synthetic.records(mixes=[(1, 1)], holds=(("resnet18", 50),))
    for line in ("peak", "mix-1-1"):
        lost = synthetic.with_lost(records, line, outcome) if outcome != "ok" else records
        assert problems(synthetic_files.tables_of(lost), {}) == []


def test_a_study_without_a_search_holds(tmp_path):
    folder = synthetic_files.write_startup(tmp_path)
    found = synthetic_files.all_tables(StudyResults.read(synthetic.TASK, [folder], []))
    assert problems(found, {}) == []


def alone(name, table):
    return of_table(name, module_of(name).SCHEMA, table)


def edited(made, table, where=None, **values):
    """Return the tables with other values in the row whose columns have the values in `where`."""
    rows = made[table].to_pylist()
    wanted = (where or {}).items()
    row = next(row for row in rows if all(row[name] == value for name, value in wanted))
    row |= {name: value(row) if callable(value) else value for name, value in values.items()}
    return {**made, table: parquet.table(rows, module_of(table).SCHEMA.arrow)}


MIX = {"load_line": "mix-1-1"}
PLANTED = {
    "an estimate outside its interval": (
        ("peaks", MIX, {"estimate_rps": lambda row: 2 * row["ci_high_rps"]}),
        "peaks, row 4 (cpu1.shared, mix-1-1): broken rule: ci_low_rps <= estimate_rps",
    ),
    "a certified rate over the first that fails": (
        ("peaks", MIX, {"certified_rps": lambda row: 1.01 * row["first_failing_rps"]}),
        "broken rule: certified_rps < first_failing_rps (",
    ),
    "a cost that is not price by rate": (
        ("costs", MIX, {"usd_per_million_inferences": lambda row: 1.001 * row["ci_high_usd"]}),
        "costs: usd_per_million_inferences = usd_per_hour / (million inferences per hour)",
    ),
    "a certified cost that is not either": (
        ("other_costs", MIX, {"usd_per_million_certified": 1.0}),
        "other_costs: usd_per_million_certified = usd_per_hour / (million inferences per hour)",
    ),
    "shares of a demand that do not add up": (
        ("break_even", {}, {"proportion": f"{MODELS[0]} 50%, {MODELS[1]} 60%"}),
        "broken rule: the percentages in the column `proportion` add up to 100 %",
    ),
    "shares of a mix that do not add up": (
        ("background", {}, {"background_share": lambda row: 1.01 * row["background_share"]}),
        "broken rule: sharing_ratio = share + background_share (",
    ),
    "a tenant's rate that its load line has not": (
        ("tenants", MIX, {"rate_rps": lambda row: 0.99 * row["rate_rps"]}),
        "peaks: certified_rps is the sum of the rates of all tenants of the load line (cpu1.shared,"
        " mix-1-1)",
    ),
    "a saving that does not follow from the ratio": (
        ("savings", MIX, {"saving": lambda row: row["ci_low"]}),
        "broken rule: saving = 1 - 1 / sharing_ratio (",
    ),
    "a corrected interval that is narrower": (
        ("savings", MIX, {"ci_simultaneous_low": lambda row: row["saving"]}),
        "ci_simultaneous_low <= ci_low <= saving <= ci_high <= ci_simultaneous_high",
    ),
    "an interval that ends below its value": (
        ("tenants", MIX, {"p95_high_ms": lambda row: 0.9 * row["p95_ms"]}),
        "broken rule: p95_low_ms <= p95_ms <= p95_high_ms (",
    ),
    "another ratio than that of the peaks": (
        ("peaks", MIX, {"sharing_ratio": lambda row: row["sharing_ratio_low"]}),
        "savings: sharing_ratio equals sharing_ratio in the table peaks (cpu1.shared, mix-1-1)",
    ),
    "noise that was not measured": (
        ("savings", MIX, {"noise_floor": 0.5}),
        "savings: noise_floor is the highest noise_floor of the server in the table aa",
    ),
    "what was certified over its SLA": (
        ("tenants", MIX, {"sla_percentile_ms": lambda row: 2 * row["sla_ms"]}),
        "broken rule: sla_percentile_ms <= sla_ms (",
    ),
    "ok without a rate": (
        ("peaks", MIX, {"certified_rps": None}),
        "broken rule: a row with verdict ok has a certified rate and an estimate (",
    ),
    "a verdict that there is not": (
        ("peaks", MIX, {"verdict": "fine"}),
        "peaks, row 4 (cpu1.shared, mix-1-1): verdict is fine, and must be ok, infeasible,",
    ),
    "a share above 1": (
        ("tenants", MIX, {"exceedance": 1.5}),
        ": exceedance is 1.5, and must be 0 to 1, or null",
    ),
    "a time below 0": (("tenants", {}, {"queue_ms": -1.0}), "queue_ms is -1, and must be at least"),
    "a missing count": (("peaks", MIX, {"repeats": None}), "repeats is null, but must have"),
    "a line twice": (
        ("peaks", {"load_line": "mix-3-1"}, MIX),
        "peaks, row 3 (cpu1.shared, mix-1-1): another row has the same values of scenario,",
    ),
    "servers that are not in the fleet": (
        ("fleet_servers", {}, {"servers": 100}),
        "fleets: usd_per_hour is the sum over the servers in the table fleet_servers (demand,"
        " dedicated)",
    ),
    "a fleet and a reason why there is none": (
        ("fleets", {}, {"reason": "there is none"}),
        "broken rule: a row has either a fleet or a reason why it has no fleet (",
    ),
    "a fleet that carries too little": (
        ("fleet_models", {}, {"capacity_rps": 100.0}),
        "broken rule: demand_rps <= capacity_rps (demand_rps 200, capacity_rps 100)",
    ),
    "sharing that costs more": (
        ("fleets", {"strategy": "dedicated"}, {"usd_per_hour": 0.001}),
        "broken rule: a fleet that may use shared servers costs no more than the dedicated fleet (",
    ),
    "a model within its SLA that is not": (
        ("fleets", {}, {"attained": 0.01}),
        "fleets: attained is the lowest value of attained in the table fleet_models (demand,"
        " dedicated)",
    ),
    "a change that is none": (
        ("fleet_changes", {}, {"cost_ratio": 3.0}),
        "fleet_changes: cost_ratio = usd_per_month / (usd_per_month in the table fleets) (demand,"
        " dedicated,",
    ),
    "a server at another price": (
        ("break_even", {}, {"usd_per_hour": 7.0}),
        "break_even: usd_per_hour = servers x usd_per_hour in the table costs",
    ),
    "a replay that its seconds do not make": (
        ("attainment", {"bin_s": 60}, {"within": 0, "attained": 0.0}),
        "replay: attained equals the share of requests within the SLA over all bins in the table"
        " attainment",
    ),
}
OF_GRIDS = {
    "chances that do not add up": (
        ("grid", {"rank": 1}, {"probability_cheapest": 0.0}),
        "broken rule: the probabilities of all settings for one load line add up to 1 (",
    ),
    "a rank of what is excluded": (
        ("grid", {"rank": 1}, {"excluded": "too slow"}),
        "broken rule: a row has either a rank or a reason in the column `excluded` (",
    ),
    "another cost than that of the cheapest": (
        ("recommendations", {}, {"usd_per_million_inferences": lambda row: row["ci_low_usd"]}),
        "recommendations: usd_per_million_inferences equals the value in the row of rank 1 of the"
        " table grid",
    ),
}


@pytest.mark.parametrize(
    ("study", "fault", "message"),
    [
        *(pytest.param("made", *each, id=name) for name, each in PLANTED.items()),
        *(pytest.param("grid", *each, id=name) for name, each in OF_GRIDS.items()),
    ],
)
def test_a_planted_fault_is_told(study, fault, message, request):
    table, where, values = fault
    wrong = edited(request.getfixturevalue(study), table, where, **values)
    found = alone(table, wrong[table]) + between(wrong, {})
    assert any(message in line for line in found), found
    assert not any("Traceback" in line or "\n" in line for line in found)


@pytest.mark.parametrize("share", [-2e-16, 1 + 2e-16])
def test_a_rounding_error_beyond_a_bound_is_no_fault(made, share):
    wrong = edited(made, "tenants", MIX, exceedance=share)
    assert not any("exceedance is" in line for line in alone("tenants", wrong["tenants"]))


def test_both_numbers_are_told(made):
    wrong = edited(made, "peaks", MIX, certified_rps=100.0, first_failing_rps=90.0)
    assert (
        "peaks, row 4 (cpu1.shared, mix-1-1): broken rule: certified_rps < first_failing_rps"
        " (certified_rps 100, first_failing_rps 90)"
    ) in alone("peaks", wrong["peaks"])


def test_every_fault_is_told_at_once(made):
    wrong = edited(made, "peaks", MIX, certified_rps=lambda row: 2 * row["first_failing_rps"])
    wrong = edited(wrong, "costs", MIX, pricing="barter")
    found = "\n".join(problems(wrong, {}))
    assert "certified_rps < first_failing_rps" in found and "pricing is barter" in found


def test_of_many_rows_with_one_fault_the_first_are_told_and_the_rest_counted(made):
    rows = [row | {"requests": -1} for row in made["attainment"].to_pylist()]
    wrong = parquet.table(rows, module_of("attainment").SCHEMA.arrow)
    mine = [line for line in alone("attainment", wrong) if "requests is -1" in line]
    assert len(mine) == MAX_LISTED
    more = [line for line in alone("attainment", wrong) if "more rows" in line]
    assert f"{len(rows) - MAX_LISTED} more rows" in more[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop_columns("mix"), "mix"),
        (lambda table: table.slice(0, 0).drop_columns("mix"), "mix"),
        (lambda table: table.append_column("extra", table["mix"]), "extra"),
        (lambda table: table.select([1, 0, *range(2, table.num_columns)]), "order"),
        (lambda table: table.set_column(11, "repeats", table["study"]), "repeats"),
    ],
)
def test_other_columns_are_told(made, change, message):
    wrong = {**made, "peaks": change(made["peaks"])}
    found = alone("peaks", wrong["peaks"]) + between(wrong, {})
    assert found and any(message in line for line in found)
    assert all(line.startswith("peaks") for line in found) and len(found) < 5


def test_costs_are_those_of_an_image():
    """The rates count requests, and a request may contain several images."""
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=2)
    records = synthetic.records(truth, mixes=[(1, 1)], holds=())
    for record in records:
        for tenant in record["cell"]["tenants"]:
            tenant["request_batch_size"] = 4 if tenant["name"] == "resnet18" else 1
    found = synthetic_files.tables_of(records)
    images = {"cpu1.resnet18": {"resnet18": 4}, "cpu1.shared": {"resnet18": 4}}
    assert problems(found, images) == []
    assert any(line.startswith("costs: ") for line in problems(found, {}))


def written(folder, made):
    for name, table in made.items():
        parquet.write(table, folder / f"{name}.parquet", folder / f"{name}.csv")
    return folder


def test_the_csv_files_say_the_same(made, tmp_path):
    assert check(written(tmp_path, made), {})["rows"]["peaks"] == made["peaks"].num_rows
    csv = tmp_path / "savings.csv"
    csv.write_text(csv.read_text().replace("mix-1-1", "mix-1-2"))
    with pytest.raises(ContradictionError) as error:
        check(tmp_path, {})
    (message,) = error.value.problems
    assert message == "savings.csv, row 2: load_line is 'mix-1-2', but 'mix-1-1' in savings.parquet"
    csv.write_text("\n".join(csv.read_text().splitlines()[:-1]))
    with pytest.raises(
        ContradictionError, match=r"savings\.csv has 5 rows, but savings\.parquet has 6"
    ):
        check(tmp_path, {})


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        (lambda line: line.rsplit(",", 5)[0], "fields, but"),
        (lambda line: f"{line},1,2", "fields, but"),
        (lambda line: "", "has 0 fields, but"),
        (lambda line: f"{line}\udcff", "cannot be read ('utf-8' codec can't decode byte 0xff"),
    ],
)
def test_rows_of_csv_that_are_cut_too_long_or_no_text_are_told(made, tmp_path, cut, message):
    files = tmp_path / "savings.parquet", tmp_path / "savings.csv"
    parquet.write(made["savings"], *files)
    *lines, last = files[1].read_text().splitlines()
    text = "\n".join([*lines, cut(last)]) + "\n"
    files[1].write_bytes(text.encode(errors="surrogateescape"))
    (told,) = csv_problems("savings", made["savings"], files[1])
    assert told.startswith("savings.csv") and message in told


def test_the_job_ends_with_all_that_does_not_hold_and_no_traceback(made, tmp_path):
    wrong = edited(made, "peaks", MIX, certified_rps=lambda row: 2 * row["first_failing_rps"])
    wrong = edited(wrong, "costs", MIX, pricing="barter")

    def run(folder, content):
        written(folder, content)
        code = f"""
import runpy
from types import SimpleNamespace
params = SimpleNamespace(task={{"images_per_request": {{}}}})
snakemake = SimpleNamespace(log=[{str(folder / "job.log")!r}], params=params)
snakemake.input = [{str(folder / "peaks.parquet")!r}]
snakemake.output = [{str(folder / "checked.json")!r}]
runpy.run_path("scripts/check_tables.py", {{"snakemake": snakemake}})
"""
        return subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={"PYTHONPATH": "scripts"},
            capture_output=True,
            text=True,
            timeout=120,
        )

    good = run(tmp_path / "good", made)
    assert good.returncode == 0, good.stderr
    told = json.loads((tmp_path / "good" / "checked.json").read_text())
    assert told["rows"].keys() == set(TABLES)
    assert "certified_rps < first_failing_rps" in told["holds"]["peaks"]
    assert any(each.startswith("costs: ") for each in told["holds_between"])
    bad = run(tmp_path / "bad", wrong)
    assert bad.returncode == 1 and "Traceback" not in bad.stderr
    assert "certified_rps < first_failing_rps" in bad.stderr
    assert "pricing is barter" in bad.stderr and "--forcerun tables" in bad.stderr
    assert not (tmp_path / "bad" / "checked.json").exists()
    assert (tmp_path / "bad" / "job.error").exists()


def test_a_definition_speaks_of_columns_that_it_has():
    for name in TABLES:
        schema = module_of(name).SCHEMA
        assert len(set(schema.names)) == len(schema.names)
        assert {*schema.key}.union(*(each.columns for each in schema.holds)) <= {*schema.names}


def test_the_meaning_of_a_column_tells_its_words():
    for name in TABLES:
        for column in module_of(name).SCHEMA.columns:
            if "as in the table" not in column.meaning:
                assert all(word in column.meaning for word in column.choices), (name, column.name)


def test_what_is_read_again_is_what_was_defined(made, tmp_path):
    written(tmp_path, made)
    for name in TABLES:
        schema = pq.read_schema(tmp_path / f"{name}.parquet")
        assert schema.equals(module_of(name).SCHEMA.arrow, check_metadata=True)
