"""The dry run of each feature of the configuration plans the expected jobs."""

import re

import pytest
import yaml
from workflow_files import ROOT

from perseus.host.cpu_instructions import has_bf16

SQUEEZE, MOBILENET = {"model": "squeezenet1_1"}, {"model": "mobilenet_v3_small"}
CPU1 = {"name": "cpu1", "cores": 1, "price": {"instance": "n1-standard-1", "region": "us-central1"}}
CPU2 = {"name": "cpu2", "cores": 2, "price": {"instance": "n1-standard-2", "region": "us-central1"}}
ALONE = {"cpu1.squeezenet1_1.peak.r1", "cpu1.mobilenet_v3_small.peak.r1"}


STUDIES = sorted(path.stem for path in (ROOT / "config" / "studies").glob("*.yaml"))
STUDIES.remove("scale")  # takes a minute to plan: make bench BENCH=planning


def shared(*tenants, servers=("cpu1",), **experiment):
    """Return a change of the default study to one shared scenario."""
    experiment = {"kind": "peak", **(experiment or {"mixes": [[1] * len(tenants)]})}
    scenario = {"name": "shared", "servers": list(servers), "tenants": list(tenants)}
    return {"scenarios": [{**scenario, "experiments": [experiment]}]}


BF16_TOO = ("", "~precision-bf16") if has_bf16() else ("",)
"""Ends of scenario names in a grid, including bf16 only if the CPU has bf16 instructions."""


def gridded(*tenants, design="full", **vary):
    """Return the change of `shared`, with a grid."""
    study = shared(*tenants)
    study["scenarios"][0]["grid"] = {"vary": vary, "design": design}
    return study


SERVED = {
    "models": [
        {"name": "mine", "served_model": "encoder", "sla": {"latency_ms": 100}},
        {"name": "other", "served_model": "ranker", "shape": {"a": [8]}, "sla": {"latency_ms": 9}},
    ],
    "servers": [{**CPU1, "name": "far", "launcher": "remote", "remote": {"host": "10.0.0.7"}}],
    **shared({"model": "mine"}, {"model": "other"}, servers=["far"]),
}


@pytest.fixture
def cells(empty, tmp_path):
    """Return a function that returns the planned cells of a change of the default study."""

    def plan(change):
        path = tmp_path / "study.yaml"
        path.write_text(yaml.safe_dump(change))
        jobs = empty.jobs("--configfile", str(path))
        assert all(jobs.values())
        return {job[1] for job in jobs if job[0] == "measure"}

    return plan


VARIANTS = {
    "a mix": (shared(SQUEEZE, MOBILENET), ALONE | {"cpu1.shared.mix-1-1.r1"}),
    "hold lines": (
        shared(SQUEEZE, MOBILENET, hold="squeezenet1_1", percents_of_peak=[25, 75]),
        ALONE | {"cpu1.shared.hold-squeezenet1_1-25.r1", "cpu1.shared.hold-squeezenet1_1-75.r1"},
    ),
    "dedicated only": (
        {
            "models": [{"name": "squeezenet1_1", "sla": {"latency_ms": 100}}],
            "scenarios": [{"name": "squeezenet1_1", "servers": ["cpu1"], "tenants": [SQUEEZE]}],
        },
        {"cpu1.squeezenet1_1.peak.r1"},
    ),
    "two servers": (
        {"servers": [CPU1, CPU2], **shared(SQUEEZE, MOBILENET, servers=["cpu1", "cpu2"])},
        {f"{server}.{scenario}.r1" for server in ("cpu1", "cpu2")
         for scenario in ("squeezenet1_1.peak", "mobilenet_v3_small.peak", "shared.mix-1-1")},
    ),
    "openvino in bf16": (
        {
            "servers": [{**CPU1, "runtime": "openvino"}],
            "models": [{"name": "squeezenet1_1", "precision": "bf16", "sla": {"latency_ms": 100}},
                       {"name": "mobilenet_v3_small", "sla": {"latency_ms": 50}}],
            **shared(SQUEEZE, MOBILENET),
        },
        ALONE | {"cpu1.shared.mix-1-1.r1"},
    ),
    "batching, instances, priorities": (
        shared(
            {**SQUEEZE, "priority": 1, "instances": 2, "max_batch_size": 16,
             "dynamic_batching": {"max_queue_delay_us": 500, "preferred_batch_sizes": [4, 8]}},
            {**MOBILENET, "priority": 2, "intra_op_threads": 1},
        ),
        ALONE | {"cpu1.shared.mix-1-1.r1"},
    ),
    "three repeats": (
        {"measurement": {"repeats": 3}, **shared(SQUEEZE, MOBILENET)},
        {f"{cell[:-1]}{repeat}" for cell in ALONE | {"cpu1.shared.mix-1-1.r1"}
         for repeat in (1, 2, 3)},
    ),
    "three tenants": (
        {
            "models": [{"name": name, "sla": {"latency_ms": 100}}
                       for name in ("squeezenet1_1", "mobilenet_v3_small", "vgg11")],
            **shared(SQUEEZE, MOBILENET, {"model": "vgg11"}, mixes=[[1, 2, 0]]),
        },
        ALONE | {"cpu1.vgg11.peak.r1", "cpu1.shared.mix-1-2-0.r1"},
    ),
    "one model twice": (
        {
            "models": [{"name": "squeezenet1_1", "sla": {"latency_ms": 100}}],
            **shared({**SQUEEZE, "name": "a"}, {**SQUEEZE, "name": "b", "instances": 2}),
        },
        {"cpu1.a.peak.r1", "cpu1.b.peak.r1", "cpu1.shared.mix-1-1.r1"},
    ),
    "starts of a server": (
        shared(SQUEEZE, MOBILENET, kind="startup", starts=3, page_cache=["warm", "cold"]),
        ALONE | {"cpu1.shared.startup.r1"},
    ),
    "the same again on restarted servers": (
        shared(SQUEEZE, MOBILENET, kind="aa", restarts=2),
        ALONE | {"cpu1.shared.aa.r1"},
    ),
    "a frontier of three mixes": (
        shared(SQUEEZE, MOBILENET, kind="frontier", points=3),
        ALONE | {f"cpu1.shared.frontier-{point}.r1" for point in (1, 2, 3)},
    ),
    "a frontier that measures only what is not predicted": (
        shared(SQUEEZE, MOBILENET, kind="frontier", points=2, predict=True, error_percent=8),
        ALONE | {f"cpu1.shared.frontier-{point}.r1" for point in (1, 2)},
    ),
    "every tenant beside every other": (
        shared(SQUEEZE, MOBILENET, kind="slowdown"),
        ALONE | {"cpu1.shared.slowdown-30.r1"},
    ),
    "every tenant beside every other at the same rate": (
        shared(SQUEEZE, MOBILENET, kind="slowdown", rate_rps=12.5),
        ALONE | {"cpu1.shared.slowdown-12_5rps.r1"},
    ),
    "a tenant beside others that stay": (
        shared(SQUEEZE, MOBILENET, kind="background", search="squeezenet1_1",
               percents_of_peak=[25, 75]),
        ALONE | {f"cpu1.shared.background-squeezenet1_1-{n}.r1" for n in (25, 75)},
    ),
    "a tenant beside others that stay at absolute rates": (
        {
            "models": [{"name": name, "sla": {"latency_ms": 100}}
                       for name in ("squeezenet1_1", "mobilenet_v3_small", "vgg11")],
            **shared(SQUEEZE, MOBILENET, {"model": "vgg11"}, kind="background",
                     search="mobilenet_v3_small", rates_rps=[2.5, [20, 1]]),
        },
        ALONE | {"cpu1.vgg11.peak.r1"}
        | {f"cpu1.shared.background-mobilenet_v3_small-at-{rates}rps.r1"
           for rates in ("2_5", "20-1")},
    ),
    "bursts at stated rates": (
        shared(SQUEEZE, MOBILENET, kind="replay", process="mmpp", rates_rps=[5, 10]),
        ALONE | {"cpu1.shared.replay-mmpp.r1"},
    ),
    "bursts of a tenant alone at a share of its peak": (
        {
            "models": [{"name": "squeezenet1_1", "sla": {"latency_ms": 100}}],
            "scenarios": [{
                "name": "squeezenet1_1", "servers": ["cpu1"], "tenants": [SQUEEZE],
                "experiments": [
                    {"kind": "replay", "process": "gamma", "percents_of_peak": [50]},
                    {"kind": "replay", "process": "gamma", "percents_of_peak": [80], "name": "80"},
                ],
            }],
        },
        {f"cpu1.squeezenet1_1.{run}.r1" for run in ("peak", "replay-gamma", "replay-80")},
    ),
    "a preset of one scenario's own": (
        {
            "scenarios": [
                *shared(SQUEEZE, MOBILENET)["scenarios"],
                *({**each, "name": "sure", "preset": "smoke"}
                  for each in shared(SQUEEZE, MOBILENET)["scenarios"]),
            ],
        },
        ALONE | {"cpu1.shared.mix-1-1.r1", "cpu1.sure.mix-1-1.r1"}
        | {cell.replace(".peak.", ".peak-smoke.") for cell in ALONE},
    ),
    "models that a server has": (
        SERVED,
        {"far.mine.peak.r1", "far.other.peak.r1", "far.shared.mix-1-1.r1"},
    ),
    "an hour at shares of the dedicated peaks": (
        shared(SQUEEZE, MOBILENET, kind="soak", percents_of_peak=[40, 30]),
        ALONE | {"cpu1.shared.soak-40-30.r1"},
    ),
    "an hour at given rates": (
        shared(SQUEEZE, MOBILENET, kind="soak", rates_rps=[12.5, 30]),
        ALONE | {"cpu1.shared.soak-12_5-30rps.r1"},
    ),
    "a grid, of which bf16 needs another runtime and no machine has the cores": (
        gridded(SQUEEZE, MOBILENET, runtime=["onnxruntime", "openvino"], precision=["fp32", "bf16"],
                cores=[1, 100_000]),
        ALONE | {"cpu1.shared.mix-1-1.r1"} | {
            f"cpu1~runtime-openvino.{scenario}.r1" for more in BF16_TOO
            for scenario in (f"squeezenet1_1{more}.peak", f"mobilenet_v3_small{more}.peak",
                             f"shared{more}.mix-1-1")},
    ),
    "a grid, one at a time": (
        gridded(SQUEEZE, MOBILENET, design="one_at_a_time", instances=[1, 2],
                max_queue_delay_us=["none", 0]),
        {f"cpu1.{scenario}.r1" for more in ("", "~instances-2", "~delay_us-0")
         for scenario in (f"squeezenet1_1{more}.peak", f"mobilenet_v3_small{more}.peak",
                          f"shared{more}.mix-1-1")},
    ),
    "pictures, preprocessed by the client and by the server": (
        shared({**SQUEEZE, "name": "by_client", "preprocessing": "client"},
               {**SQUEEZE, "name": "by_server", "preprocessing": "server"},
               {**MOBILENET, "preprocessing": "server"}),
        {f"cpu1.{cell}.r1" for cell in ("by_client.peak", "by_server.peak",
         "mobilenet_v3_small.peak", "shared.mix-1-1-1")},
    ),
    "pictures to a tenant that is called like the network of another": (
        shared({**SQUEEZE, "name": "a", "preprocessing": "server"},
               {**MOBILENET, "name": "a_network", "preprocessing": "server"}),
        {"cpu1.a.peak.r1", "cpu1.a_network.peak.r1", "cpu1.shared.mix-1-1.r1"},
    ),
    "gamma arrivals": (
        {"measurement": {"arrivals": {"process": "gamma", "cv": 3}}, **shared(SQUEEZE, MOBILENET)},
        ALONE | {"cpu1.shared.mix-1-1.r1"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
def test_a_feature_measures_what_it_should(cells, name):
    change, expected = VARIANTS[name]
    assert cells(change) == expected


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_that_is_shipped_can_be_planned(empty, study):
    """The test compares only rules, because the graph names no models of conversions."""
    arguments = ("--dag", "dot", "--configfile", f"config/studies/{study}.yaml")
    code, output, errors = empty.plan(*arguments)
    assert code == 0, output + errors
    steps = set(re.findall(r'label = "(\w+)', output))
    assert steps >= {"export", "repository", "measure", "tables", "report"}


def test_a_part_of_the_catalogue_is_measured_with_the_command_in_its_comment(empty):
    path = "config/studies/catalogue.yaml"
    (models,) = re.findall(r"`--config '(.*)'`", (ROOT / path).read_text())
    settings = ("--config", models, "measurement={repeats: 2}")
    code, output, errors = empty.plan("--dag", "dot", "--configfile", path, *settings)
    assert code == 0, output + errors
    cells = re.findall(r'label = "measure\\ncell: (.*?)"', output)
    assert {cell[-3:] for cell in cells} == {".r1", ".r2"}
    assert all("resnet" in cell for cell in cells)


def test_models_that_a_server_has_need_no_other_job_before_they_are_measured(empty, tmp_path):
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(SERVED))
    jobs = empty.jobs("--configfile", str(tmp_path / "study.yaml"))
    tables = {"predictions", "tables", "check_tables"}
    assert {job[0] for job in jobs} == {"measure", *tables, "figure", "report"}


def test_an_export_is_shared_by_all_scenarios(empty):
    jobs = list(empty.jobs())
    exports = [job for job in jobs if job[0] == "export"]
    assert sorted(exports) == [("export", "mobilenet_v3_small"), ("export", "squeezenet1_1")]
    assert len([job for job in jobs if job[0] == "repository"]) == 3


def test_pictures_are_a_step_of_their_own_for_those_who_are_sent_them(empty, tmp_path):
    """One job computes the responses to image files for all repositories."""
    path = tmp_path / "study.yaml"
    by_server = {**SQUEEZE, "name": "by_server", "preprocessing": "server"}
    change = shared({**SQUEEZE, "name": "by_client", "preprocessing": "client"}, by_server)
    models = [{"name": "squeezenet1_1", "sla": {"latency_ms": 100}}]
    path.write_text(yaml.safe_dump({"models": models, **change}))
    jobs = set(empty.jobs("--configfile", str(path)))
    assert {job for job in jobs if job[0] in ("pictures", "repository")} == {
        ("pictures", "squeezenet1_1"),
        ("repository", "cpu1.by_client"),
        ("repository", "cpu1.by_server"),
        ("repository", "cpu1.shared"),
    }


def test_a_plan_needs_a_demand_and_makes_no_report(empty, tmp_path):
    without = empty.plan("plan")
    assert without[0] == 1
    assert "has no demand to plan for" in without[1] + without[2]
    study = tmp_path / "asked.yaml"
    study.write_text("demand: {models: [{name: squeezenet1_1, rps: 40}]}")
    code, output, errors = empty.plan("plan", "--configfile", str(study))
    assert code == 0, output + errors
    counts = dict(re.findall(r"^([a-z_]+) +(\d+)$", output + errors, re.MULTILINE))
    assert (counts["tables"], counts["figure"], counts["plan"]) == ("1", "1", "1")
    assert (counts["predictions"], counts["check_tables"]) == ("1", "1")
    assert "report" not in counts


def test_the_last_words_name_a_report_where_it_was_asked_for(edited):
    demand = "{models: [{name: resnet18, rps: 40}, {name: mobilenet_v3_large, rps: 9}]}"
    edited.append("config/config.yaml", f"demand: {demand}")
    text = edited.run("--cores", "1", "plan")
    assert "Tables: results/edits/tables/" in text and "The report of study" not in text
    assert "The report of study 'edits': results/edits/report.html" in edited.run("--cores", "1")


def test_reasons_are_summed_up_and_told_of_each_job_on_request(empty):
    _, output, errors = empty.plan("all")
    assert "output files have to be generated" in output + errors
    assert "eason: " not in output + errors
    _, output, errors = empty.plan("all", "--quiet", "host")
    assert "eason: " in output + errors
