"""Tests that a grid makes ordinary scenarios from its valid settings, with stable names."""

import itertools
import re
from pathlib import Path

import pytest
from unit.study.test_read import BASE, ROOT, cells, load, merged, model, problems, scenario

from perseus.host import powercap
from perseus.report.figures import FIGURES
from perseus.study import files, planning
from perseus.study.grid import Grid, Vary
from perseus.study.read import read_study
from perseus.study.setting import MARK, configured, describe, of_ceiling, suffix
from perseus.study.tasks.tables import TablesTask

ONE = "squeezenet1_1"
PAIR = (ONE, "mobilenet_v3_small")
REMOTE = {**BASE["servers"][0], "launcher": "remote", "remote": {"host": "127.0.0.1"}}


def alone(vary, tenant=None, servers=("cpu1",), **more):
    """Return a study of one tenant with a grid."""
    item = scenario({"model": ONE, **(tenant or {})}, name=ONE, servers=servers)
    return {"models": [model()], "scenarios": [item | {"grid": {"vary": vary, **more}}]}


def shared(vary, **more):
    return {"scenarios": [scenario(*PAIR, **more) | {"grid": {"vary": vary}}]}


def names(study):
    return [cell.id for cell in cells(study)]


def tenant_of(study, scenario_id):
    (tenant,) = study.scenarios[scenario_id].tenants
    return tenant


@pytest.fixture(autouse=True)
def counters_of_energy(monkeypatch):
    """Tests do not read the energy counters of this host."""
    monkeypatch.setattr(powercap, "is_readable", lambda: False)


# Designs


def grid_of(design="full", **vary):
    return Grid(vary=Vary.model_validate(vary), design=design)


def test_a_full_design_has_every_combination_once():
    lists = {"runtime": ["onnxruntime", "openvino"], "cores": [1, 2, 3], "instances": [2, 1]}
    found = [tuple(setting.values()) for setting in grid_of(**lists).settings()]
    assert found == list(itertools.product(*lists.values()))
    assert grid_of(**lists).size == len(found) == 12


def test_one_at_a_time_varies_each_from_the_first_values():
    grid = grid_of("one_at_a_time", cores=[2, 1], instances=[1, 2, 4])
    assert list(grid.settings()) == [
        {"cores": 2, "instances": 1},
        {"cores": 1, "instances": 1},
        {"cores": 2, "instances": 2},
        {"cores": 2, "instances": 4},
    ]
    assert grid.size == 4


@pytest.mark.parametrize("design", ["full", "one_at_a_time"])
def test_the_size_is_known_without_the_settings(design):
    grid = grid_of(design, cores=[1, 2], instances=[1, 2, 3], precision=["fp32", "int8"])
    assert grid.size == len(list(grid.settings()))
    huge = grid_of(design, instances=list(range(1, 65)), intra_op_threads=list(range(1, 257)))
    assert huge.size == {"full": 64 * 256, "one_at_a_time": 64 + 255}[design]


# Variants


def test_what_a_setting_has_otherwise_stands_in_the_names():
    study = load(shared({"runtime": ["onnxruntime", "openvino"], "instances": [1, 2]}))
    assert {name for name in names(study) if ".mix-" in name} == {
        "cpu1.shared.mix-1-1.r1",
        "cpu1.shared~instances-2.mix-1-1.r1",
        "cpu1~runtime-openvino.shared.mix-1-1.r1",
        "cpu1~runtime-openvino.shared~instances-2.mix-1-1.r1",
    }
    assert len(study.cells) == 3 * 4
    shared_cell = study.cells["cpu1~runtime-openvino.shared~instances-2.mix-1-1.r1"]
    assert [cell.id for cell in study.dedicated_cells(shared_cell)] == [
        f"cpu1~runtime-openvino.{name}~instances-2.peak.r1" for name in PAIR
    ]
    task = planning.measure_task(study, shared_cell)
    assert task.server.runtime == "openvino"
    for served in planning.repository_task(study, shared_cell.scenario.id).tenants:
        assert (served.instances, served.runtime) == (2, "openvino")


def test_all_keys_reach_what_is_served():
    vary = {
        "runtime": ["openvino"],
        "cores": [2],
        "precision": ["int8"],
        "instances": [3],
        "max_batch_size": [16],
        "max_queue_delay_us": [500],
        "preferred_batch_sizes": [[4, 8]],
        "intra_op_threads": [1],
    }
    assert vary.keys() == Vary.model_fields.keys()
    study = load(alone(vary))
    (cell,) = cells(study)
    assert cell.id == (
        "cpu1~runtime-openvino~cores-2.squeezenet1_1~precision-int8~instances-3~batch-16"
        "~delay_us-500~preferred-4-8~threads-1.peak.r1"
    )
    (served,) = planning.repository_task(study, cell.scenario.id).tenants
    assert (served.runtime, served.precision, served.instances) == ("openvino", "int8", 3)
    assert (served.max_batch_size, served.max_queue_delay_us) == (16, 500)
    assert (served.preferred_batch_sizes, served.intra_op_threads) == ((4, 8), 1)
    task = planning.measure_task(study, cell)
    assert (task.server.cores, task.tenants[0].precision) == (2, "int8")
    assert (task.tenants[0].max_batch_size, task.tenants[0].dynamic_batching) == (16, True)
    assert files.served(study, cell.scenario.id, served.name).endswith(f"/{ONE}/model.int8.onnx")


def test_names_do_not_depend_on_what_else_is_varied_nor_on_the_order():
    """A larger grid measures only new cells, and a smaller grid measures no cell again."""
    without = load(shared({"instances": [1]}))
    assert names(without) == names(load({"scenarios": [scenario(*PAIR)]}))
    small = names(load(shared({"instances": [2, 1]})))
    large = names(load(shared({"max_batch_size": [16, 8], "instances": [1, 2, 4]})))
    assert set(names(without)) < set(small) < set(large)


def test_what_a_tenant_has_anyway_is_no_other_setting():
    vary = {
        "runtime": ["onnxruntime"],
        "cores": [1],
        "precision": ["fp32"],
        "max_queue_delay_us": ["none", 0],
        "intra_op_threads": [1],
    }
    assert names(load(alone(vary))) == [
        "cpu1.squeezenet1_1.peak.r1",
        "cpu1.squeezenet1_1~delay_us-0.peak.r1",
    ]
    batching = {"dynamic_batching": {"max_queue_delay_us": 0, "preferred_batch_sizes": [4]}}
    study = load(alone(vary, batching))
    assert names(study) == [
        "cpu1.squeezenet1_1~delay_us-none.peak.r1",
        "cpu1.squeezenet1_1.peak.r1",
    ]
    assert tenant_of(study, "cpu1.squeezenet1_1~delay_us-none").dynamic_batching is None
    assert tenant_of(study, "cpu1.squeezenet1_1").dynamic_batching.preferred_batch_sizes == (4,)


def test_tenants_of_one_scenario_keep_settings_of_their_own():
    tenants = [{"model": PAIR[0], "instances": 2}, {"model": PAIR[1]}]
    item = scenario(*tenants) | {"grid": {"vary": {"instances": [1, 2]}}}
    study = load({"scenarios": [item]})
    made = {each.name: [t.name for t in each.tenants] for each in study.scenarios.values()}
    assert made["shared~instances-1"] == ["squeezenet1_1~instances-1", "mobilenet_v3_small"]
    assert made["shared~instances-2"] == ["squeezenet1_1", "mobilenet_v3_small~instances-2"]


def test_a_background_tenant_is_named_as_in_its_setting():
    hold = {"kind": "peak", "hold": PAIR[1], "percents_of_peak": [50]}
    study = load(shared({"instances": [2]}, experiments=[hold]))
    (cell,) = (cell for cell in cells(study) if cell.run.line == "hold")
    assert cell.run.background_tenant == "mobilenet_v3_small~instances-2"
    assert cell.run.background_tenant in [tenant.name for tenant in cell.scenario.tenants]
    (question,) = (q for q in planning.tables_task(study).grids if len(q.tenants) == 2)
    assert question.load_line == "hold-mobilenet_v3_small-50"
    assert question.settings[0].load_line == cell.run.name


@pytest.mark.parametrize("level", [{"percents_of_peak": [50]}, {"rates_rps": [2.5]}], ids=str)
def test_a_tenant_that_is_searched_beside_others_is_searched_by_its_name(level):
    beside = {"kind": "background", "search": ONE, **level}
    study = load(shared({"instances": [1, 2]}, experiments=[beside]))
    found = [cell for cell in cells(study) if cell.run.kind == "background"]
    assert [cell.run.searched for cell in found] == [ONE, f"{ONE}~instances-2"]
    for cell in found:
        assert cell.run.searched in [tenant.name for tenant in cell.scenario.tenants]
    (question,) = (q for q in planning.tables_task(study).grids if len(q.tenants) == 2)
    assert question.load_line == found[0].run.name
    assert [setting.load_line for setting in question.settings] == [cell.run.name for cell in found]


@pytest.mark.parametrize(
    "experiment",
    [
        {"kind": "concurrency", "concurrencies": [1]},
        {"kind": "slowdown"},
        {"kind": "replay", "process": "gamma", "rates_rps": [5, 10]},
        {"kind": "soak", "percents_of_peak": [40, 30]},
    ],
    ids=lambda experiment: experiment["kind"],
)
def test_kinds_that_go_by_the_order_of_the_tenants_know_no_names(experiment):
    study = load(shared({"instances": [1, 2]}, experiments=[experiment]))
    one, two = (cell for cell in cells(study) if cell.run.kind == experiment["kind"])
    assert one.scenario.id == "cpu1.shared" and two.scenario.id == "cpu1.shared~instances-2"
    assert one.run == two.run


def test_mixes_that_results_choose_are_not_compared():
    """Results determine the later mixes, so only the first mix is the same in all settings."""
    study = load(shared({"instances": [1, 2]}, experiments=[{"kind": "frontier", "points": 3}]))
    asked = [q.load_line for q in planning.tables_task(study).grids if len(q.tenants) == 2]
    assert asked == ["frontier-1"]
    last = study.cells["cpu1.shared~instances-2.frontier-3.r1"]
    assert [cell.id for cell in study.earlier_cells(last)] == [
        "cpu1.shared~instances-2.frontier-1.r1",
        "cpu1.shared~instances-2.frontier-2.r1",
    ]


def test_the_mix_of_the_demand_is_compared():
    """The mix of the demand has the same requests per second in all settings."""
    three = [*PAIR, {"model": ONE, "name": "another"}]
    item = scenario(*three, experiments=[{"kind": "frontier", "points": 2}])
    demand = {"models": [{"name": ONE, "rps": 20}, {"name": PAIR[1], "rps": 30}]}
    study = load(
        {"demand": demand, "scenarios": [item | {"grid": {"vary": {"instances": [1, 2]}}}]}
    )
    asked = {q.load_line: q for q in planning.tables_task(study).grids if len(q.tenants) == 3}
    assert list(asked) == ["mix-demand", "frontier-1"]
    of = [study.cells[f"{s.scenario}.mix-demand.r1"].run for s in asked["mix-demand"].settings]
    assert len(of) == 2 and of[0] == of[1] and of[0].rate_shares == (0.2, 0.6, 0.2)


def test_a_scenario_with_a_preset_of_its_own_is_compared_with_peaks_of_that_preset():
    item = scenario(*PAIR, preset="smoke") | {"grid": {"vary": {"instances": [1, 2]}}}
    study = load({"scenarios": [item]})
    lines = [(q.tenants, q.load_line) for q in planning.tables_task(study).grids]
    assert lines == [((PAIR[0],), "peak-smoke"), ((PAIR[1],), "peak-smoke"), (PAIR, "mix-1-1")]
    for question in planning.tables_task(study).grids:
        for setting in question.settings:
            assert study.cells[f"{setting.scenario}.{setting.load_line}.r1"].preset == "smoke"


def test_a_grid_is_no_kind_of_experiment_with_raw_results():
    study = load(alone({"instances": [1, 2]}))
    assert "grid" in study.kinds and not FIGURES["grid"].reads_raw
    assert [Path(path).stem for path in files.measured(study)] == ["peak"]


def test_every_experiment_of_the_scenario_is_done_with_every_setting():
    item = scenario(ONE, name=ONE, experiments=[{"kind": "startup"}])
    grid = {"vary": {"instances": [1, 2]}}
    study = load({"models": [model()], "scenarios": [item | {"grid": grid}]})
    assert {cell.run.kind for cell in cells(study)} == {"peak", "startup"}
    assert len(study.cells) == 4


def test_names_are_safe_as_files_and_no_name_of_a_user():
    study = load(alone({"max_queue_delay_us": ["none", 0], "preferred_batch_sizes": [[], [4]]}))
    assert all(re.fullmatch(r"[A-Za-z0-9_.~-]+", name) for name in study.cells)
    assert suffix({"preferred_batch_sizes": (4, 8), "cores": 2}) == "~preferred-4-8~cores-2"
    assert describe({"preferred_batch_sizes": (), "runtime": "x"}) == "preferred none, runtime x"
    assert configured("cpu1~cores-2") == configured("cpu1") == "cpu1"
    (messages, *_) = problems({"study": f"a{MARK}b"})
    assert "is not a name" in messages


def test_several_servers_are_settings_too():
    servers = [{**BASE["servers"][0], "name": name} for name in ("a", "b")]
    study = load({"servers": servers, **alone({"instances": [1, 2]}, servers=["a", "b"])})
    (question,) = planning.tables_task(study).grids
    assert [setting.description for setting in question.settings] == [
        f"server {name}, instances {n}" for name in ("a", "b") for n in (1, 2)
    ]


def test_servers_are_compared_where_there_are_several_and_not_for_their_settings():
    """The figure of a grid compares its settings, so Perseus does not compare them as servers."""
    servers = [{**BASE["servers"][0], "name": name} for name in ("a", "b")]
    two = load({"servers": servers, "scenarios": [scenario(*PAIR, servers=["a", "b"])]})
    one = load({"servers": servers, "scenarios": [scenario(*PAIR, servers=["a"])]})
    assert two.kinds == {"peak", "prices", "choice", "servers"}
    assert one.kinds == {"peak", "prices", "choice"}
    assert load(alone({"cores": [1, 2]})).kinds == {"peak", "prices", "grid"}


def test_cores_cost_in_proportion():
    study = load(alone({"cores": [1, 2]}))
    one, two = study.prices["cpu1"], study.prices["cpu1~cores-2"]
    assert two.on_demand_usd_per_hour == 2 * one.on_demand_usd_per_hour
    assert two.spot_usd_per_hour == 2 * one.spot_usd_per_hour
    assert (one.share, two.share) == (1, 2)
    assert two.source == f"{one.source}, scaled in proportion from 1 to 2 cores"


def test_the_ceiling_of_the_client_is_looked_for_once_for_all_runtimes():
    study = load(alone({"runtime": ["onnxruntime", "openvino"], "cores": [1, 2]}))
    assert files.ceilings(study) == [
        "results/base/ceilings/cpu1.json",
        "results/base/ceilings/cpu1~cores-2.json",
    ]
    assert of_ceiling("cpu1~runtime-openvino~cores-2") == "cpu1~cores-2"
    task = planning.ceiling_task(study, "cpu1~cores-2")
    assert (task.server, task.cores) == ("cpu1~cores-2", 2)
    only = load(alone({"runtime": ["openvino"]}))
    assert planning.ceiling_task(only, "cpu1") == planning.ceiling_task(study, "cpu1")
    assert files.checks(only, "cpu1") == ["results/base/models/squeezenet1_1/check.json"]


def test_a_precision_of_a_tenant_exports_its_model_once():
    study = load(alone({"runtime": ["openvino"], "precision": ["fp32", "int8"]}))
    served = [files.served(study, each.id, each.tenants[0].name)
              for each in study.scenarios.values()]  # fmt: skip
    folder = "results/base/models/squeezenet1_1"
    assert served == [f"{folder}/model.onnx", f"{folder}/model.int8.onnx"]


def test_bounds_are_in_the_task_of_the_tables_only():
    vary = {"instances": [1, 2]}
    loose, strict = load(alone(vary)), load(alone(vary, at_most={"p95_ms": 50}))
    for cell in cells(loose):
        assert planning.measure_task(loose, cell) == planning.measure_task(
            strict, strict.cells[cell.id]
        )
    (question,) = planning.tables_task(strict).grids
    assert question.at_most == {"p95_ms": 50.0}
    assert planning.tables_task(loose) != planning.tables_task(strict)


def test_the_questions_survive_the_way_through_a_rule():
    study = load(shared({"preferred_batch_sizes": [[], [4]], "max_queue_delay_us": ["none", 0]}))
    task = planning.tables_task(study)
    assert TablesTask.model_validate(task.plain()) == task
    last = task.grids[0].settings[-1]
    assert last.description == "delay_us 0, preferred 4"
    assert last.values == {"max_queue_delay_us": 0, "preferred_batch_sizes": (4,)}
    assert [(q.tenants, q.load_line) for q in task.grids] == [
        ((PAIR[0],), "peak"),
        ((PAIR[1],), "peak"),
        (PAIR, "mix-1-1"),
    ]
    for question in task.grids:
        for setting in question.settings:
            assert bool(setting.why_not) != (setting.scenario in study.scenarios)


# Impossible settings are left out with a message


@pytest.mark.parametrize(
    ("vary", "left_out", "why"),
    [
        (
            {"runtime": ["onnxruntime", "openvino"], "precision": ["fp32", "int8"]},
            "runtime onnxruntime, precision int8",
            "server 'cpu1' with runtime 'onnxruntime' cannot run 'squeezenet1_1' in int8",
        ),
        ({"runtime": ["onnxruntime", "tensorrt"]}, "runtime tensorrt", "does not run on device"),
        ({"cores": [1, 3]}, "cores 3", "on this machine, a server can have at most 2 cores"),
        (
            {"max_batch_size": [1, 8], "max_queue_delay_us": ["none", 0]},
            "batch 1, delay_us 0",
            "dynamic_batching: dynamic batching joins",
        ),
        (
            {"max_batch_size": [4, 8], "max_queue_delay_us": [0], "preferred_batch_sizes": [[8]]},
            "batch 4, delay_us 0, preferred 8",
            "preferred_batch_sizes: must be <= `max_batch_size`, which is 4",
        ),
        (
            {"max_queue_delay_us": ["none", 0], "preferred_batch_sizes": [[4]]},
            "delay_us none, preferred 4",
            "preferred_batch_sizes: without dynamic batching, Triton forms no batches",
        ),
    ],
)
def test_an_impossible_combination_is_left_out_and_said(vary, left_out, why):
    study = read_study(
        merged(BASE, alone(vary)), prices=ROOT / "config/prices.csv", folder=ROOT, most_cores=2
    )
    (grid,) = study.grids
    (gone,) = (each for each in grid.variants if each.why_not)
    assert describe(gone.setting) == left_out and why in gone.why_not
    assert len(study.cells) == len(grid.variants) - 1
    first, line = grid.messages()
    count = f"{len(study.cells)} of {len(grid.variants)}"
    assert first == f"Grid of 'squeezenet1_1': {count} settings can be measured."
    assert line.startswith(f"  left out: {left_out} (") and why in line
    (question,) = planning.tables_task(study).grids
    assert [setting.why_not for setting in question.settings].count(gone.why_not) == 1


def test_threads_of_a_tenant_with_a_priority_are_no_more_than_the_cores():
    vary = {"cores": [2, 1], "intra_op_threads": [1, 2]}
    (grid,) = load(alone(vary, {"priority": 1})).grids
    (line,) = list(grid.messages())[1:]
    assert line.startswith("  left out: cores 1, threads 2 (")
    assert "intra_op_threads: must be <= 1, the cores of server 'cpu1" in line
    assert not any(each.why_not for each in load(alone(vary)).grids[0].variants)


def test_an_onnx_file_is_not_served_by_torch():
    # the configuration is valid with any existing file
    own = {"name": "own", "onnx": "README.md", "sla": {"latency_ms": 100}}
    item = scenario("own", name="own")
    grid = {"vary": {"runtime": ["onnxruntime", "pytorch"]}}
    study = load({"models": [own], "scenarios": [item | {"grid": grid}]})
    assert names(study) == ["cpu1.own.peak.r1"]


def test_cores_are_not_limited_where_the_machine_is_not_known():
    assert len(load(alone({"cores": [1, 1000]})).cells) == 2


def test_many_that_are_left_out_for_one_reason_are_said_in_one_line():
    vary = {"cores": [1, 3], "instances": list(range(1, 9))}
    study = read_study(
        merged(BASE, alone(vary)), prices=ROOT / "config/prices.csv", folder=ROOT, most_cores=2
    )
    _, line = study.grids[0].messages()
    assert "cores 3, instances 5 and 3 more (" in line and "instances 6" not in line


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (alone({}), "grid.vary: names no key to vary (add a key"),
        (alone({"instances": []}), "grid.vary.instances: must have at least 1 item"),
        (alone({"instances": [1, 1]}), "grid.vary.instances: has 1 twice"),
        (alone({"instances": [0]}), "grid.vary.instances[0]: must be >= 1, not 0"),
        (alone({"instances": 2}), "grid.vary.instances: must be a list, not 2"),
        (alone({"instence": [1]}), "grid.vary.instence: unknown key (did you mean 'instances'?)"),
        (alone({"runtime": ["openvin"]}), "grid.vary.runtime[0]: 'openvin' is not known (did you"),
        (
            alone({"max_queue_delay_us": ["off"]}),
            "grid.vary.max_queue_delay_us[0]: 'off' is not valid (`none`, or the microseconds",
        ),
        (alone({"cores": [1]}, design="halving"), "grid.design: 'halving' is not known"),
        (
            alone({"cores": [1]}, at_most={"p95_ms": 0}),
            "grid.at_most.p95_ms: must be > 0, not 0",
        ),
        (
            alone({"cores": [1]}, at_most={"joules_per_inference": 1}),
            "grid.at_most.joules_per_inference: Perseus cannot measure the energy of server 'cpu1':"
            " the server has no GPU, and the user of Perseus cannot read the energy counters in"
            " /sys/class/powercap (remove this key)",
        ),
        (
            alone({"instances": list(range(1, 65)), "intra_op_threads": list(range(1, 6))}),
            "grid: 320 settings exceed the limit of 300 (use `design: one_at_a_time`, or fewer"
            " values)",
        ),
        (
            alone({"intra_op_threads": list(range(1, 257)), "instances": list(range(1, 65))},
                  design="one_at_a_time"),
            "grid: 319 settings exceed the limit of 300 (use fewer values)",
        ),
        (
            alone({"precision": ["fp16", "int8"]}),
            "grid: no setting of this grid can be measured: precision: server 'cpu1' with",
        ),
        (
            {"servers": [REMOTE], **alone({"cores": [1, 2]})},
            "grid.vary.cores: server 'cpu1' is remote, so its cores cannot vary",
        ),
        (
            {"models": [model("m" * 64, architecture=ONE)],
             "scenarios": [scenario("m" * 64, name="m" * 64) | {"grid": {"vary": {
                 "instances": [1, 2], "max_queue_delay_us": [0, 1000],
                 "preferred_batch_sizes": [[2] * 80]}}}]},
            "more than 240: cpu1.mmm",
        ),
    ],
)  # fmt: skip
def test_a_grid_that_cannot_be_is_refused(change, expected):
    found = problems(change)
    assert any(expected in problem for problem in found), "\n".join(found)


def test_energy_of_a_cpu_is_bounded_where_its_host_tells_it(monkeypatch):
    bounded = alone({"instances": [1, 2]}, at_most={"joules_per_inference": 1})
    monkeypatch.setattr(powercap, "is_readable", lambda: True)
    (question,) = planning.tables_task(load(bounded)).grids
    assert question.at_most == {"joules_per_inference": 1.0}
    # the counters of this host do not count the energy of a remote server
    (problem,) = problems({"servers": [REMOTE], **bounded})
    assert "server 'cpu1': the server has no GPU, and is remote (remove this key)" in problem


def test_a_grid_of_what_is_not_there_is_one_problem():
    change = alone({"instances": [1, 2]}, servers=["cpu2"])
    change["scenarios"][0]["tenants"] = [{"model": "squeeze"}]
    text = problems(change)
    assert not any("grid" in problem for problem in text)
