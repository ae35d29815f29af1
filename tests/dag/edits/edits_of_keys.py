"""Edits of the keys of a study, and the jobs that run again after each edit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dag.edits.edited_study import (
    ALL_CELLS,
    CEILING,
    MIX,
    MOBILENET,
    RESNET,
    RESNET_PEAK,
    of_variant,
    repositories,
)

from perseus.host.cpu_instructions import has_bf16

Key = str
Value = Any
Edits = Mapping[Key, Value]
Job = tuple[str, ...]

FIGURES: Job = ("every figure, and the page",)
PRICED: Job = ("the tables with prices, and all after them",)
AFTER: Job = ("all after the measurements of peaks",)
TOLD = {("report",)}  # the report shows the configuration as it is written
PLANNED = {PRICED, ("figure", "fleets")}
EXPORTED = {("export", RESNET), CEILING}
SERVED = repositories(RESNET) | {RESNET_PEAK, MIX, AFTER}
ALL_MEASURED = ALL_CELLS | {CEILING, AFTER}
PEAK = {"kind": "peak", "mixes": [[3, 1]]}
COMPARED = {("figure", "grid"), AFTER}
CHOSEN = {("figure", "grid"), PRICED}


@dataclass(frozen=True)
class Group:
    """Edits of one study. `study` has the keys of the finished study. Each row has a further edit,
    and the jobs that run after the edit."""

    study: Edits
    rows: tuple[tuple[Edits, set[Job]], ...]
    arguments: tuple[str, ...] = ()


def rows(*edits: Edits, run: set[Job]) -> tuple[tuple[Edits, set[Job]], ...]:
    return tuple((edit, run) for edit in edits)


def experiment(kind: str, cell: str, settings: Mapping[str, Value], **edits: Value) -> Group:
    """Return a group of edits for one kind of experiment. After each edit, the jobs measure the
    cell of the experiment again, and draw its figure again."""
    run = {("measure", f"cpu1.shared.{cell}.r1"), ("figure", kind), PRICED}
    place = f"scenarios.experiments[{kind}]"
    return Group(
        {"scenarios.experiments": [PEAK, {"kind": kind, **settings}]},
        rows(*({f"{place}.{key}": value} for key, value in edits.items()), run=run),
    )


def replay(name: str, settings: Mapping[str, Value], **edits: Value) -> Group:
    return experiment("replay", f"replay-{name}", {"name": name, **settings}, **edits)


def varied(key: str, values: list[Value], suffix: str) -> tuple[Edits, set[Job]]:
    """Return an edit that adds a grid with one more setting, and the jobs that this edit starts."""
    return {f"scenarios.grid.vary.{key}": values}, of_variant(suffix) | COMPARED


def of_server(name: str) -> set[Job]:
    """Return the jobs of a server: repositories, cells, client ceiling, and the jobs after them."""
    of_cpu1 = repositories(RESNET, MOBILENET) | ALL_CELLS
    scenarios = {(rule, of.replace("cpu1.", f"{name}.")) for rule, of in of_cpu1}
    return scenarios | {("ceiling", name), AFTER}


REPLAY = "scenarios.experiments[replay]"
TENANT = "scenarios.tenants"
BOUNDS = "scenarios.grid.at_most"
BATCHING = {"max_queue_delay_us": 9, "preferred_batch_sizes": [4]}
SERVER = {"name": "cpu1", "cores": 1}
SERVER["price"] = {"instance": "n1-standard-1", "region": "us-central1"}
OWN = {"name": RESNET, "onnx": "weights/own.onnx", "sla": {"latency_ms": 100}}
PRECISIONS = varied("precision", ["fp32", "bf16"], "~precision-bf16")
if not has_bf16():  # this CPU cannot compute in bf16, so the study leaves the cells out
    PRECISIONS = (PRECISIONS[0], CHOSEN)
BURSTS = {"process": "mmpp", "rates_rps": [5]}
TIMES = {"file": "times.csv"}
TRACE = {"process": "trace", "traces": [TIMES], "duration_s": 20}
AZURE = {**TRACE, "traces": ["azure.csv"]}
READ = {"file": "azure.csv", "column": "time_s", "unit": "s", "where": {"user": "a"}}
"""A trace with every key that a trace may have."""

UNREAD = {
    "startup": {"starts": 2},
    "aa": {"restarts": 2},
    "concurrency": {"concurrencies": [1]},
    "replay": BURSTS,
}
"""Experiments that do not use the arrivals of the study. The experiment `startup` does not use the
number of client processes either."""
DRAWN = {("figure", kind) for kind in UNREAD}
STARTED = {("measure", "cpu1.shared.startup.r1")}
LOADED = {("measure", f"cpu1.shared.{run}.r1") for run in ("aa", "concurrency", "replay-mmpp")}
REPLAYED = {("measure", "cpu1.shared.replay-some.r1"), ("figure", "replay"), PRICED}
LEVELS = {"name": RESNET, "low_rps": 5, "typical_rps": 10, "peak_rps": 20}
SPOT = {"largest_share": 0.5, "revocations_per_hour": 0.1}
MACHINE = {"instance": "n1-standard-4", "region": "us-central1", "share": 0.5}
RATES = {"usd_per_vcpu_hour": 0.03, "usd_per_gib_hour": 0.004}
PRICINGS = ("on_demand", "spot", "committed")
OWN_RATES = {"vcpus": 2, "memory_gib": 4, **dict.fromkeys(PRICINGS, RATES)}
GPU = {"instance": "n1-standard-4", "region": "us-central1", "accelerator": "T4", "share": 1}

GROUPS = {
    "models and tenants": Group(
        {"models.weights": "random", f"{TENANT}.dynamic_batching": BATCHING},
        (
            ({"models.sla.percentile": 90}, {RESNET_PEAK, MIX, AFTER}),
            *rows(
                {"models.architecture": "resnet34"},
                {"models.images": "photos"},
                {"models.request": "uint8"},
                {"models.weights": "weights/resnet18.pt"},
                run=SERVED | EXPORTED,
            ),
            *rows(
                {f"{TENANT}.dynamic_batching.max_queue_delay_us": 200},
                {f"{TENANT}.dynamic_batching.preferred_batch_sizes": [2]},
                {f"{TENANT}.intra_op_threads": 2},
                run=SERVED,
            ),
            (
                {f"{TENANT}.name": "renamed"},
                {
                    ("repository", "cpu1.renamed"),
                    ("repository", "cpu1.shared"),
                    ("measure", "cpu1.renamed.peak.r1"),
                    MIX,
                    AFTER,
                },
            ),
        ),
    ),
    "an ONNX file": Group(
        {"models": [OWN, {"name": MOBILENET, "sla": {"latency_ms": 50}}]},
        rows(
            {"models.inputs": "samples.npz"},
            {"models.values.low": 0, "models.values.high": 9},
            {"models.images": "photos", "models.layout": "nchw"},
            {"models.images": "photos", "models.scale": 0.5},
            {"models.images": "photos", "models.mean": [1, 2, 3]},
            {"models.images": "photos", "models.std": 2},
            {"models.deterministic": False},
            run=SERVED | {("own_onnx", RESNET), CEILING},
        ),
    ),
    "servers": Group(
        {"servers": [SERVER, {**SERVER, "name": "cpu2"}]},
        (
            ({"scenarios.servers": ["cpu1", "cpu2"]}, of_server("cpu2") | {("figure", "servers")}),
            ({"servers.name": "renamed", "scenarios.servers": ["renamed"]}, of_server("renamed")),
        ),
    ),
    "runtime and arithmetic": Group(
        {"servers.runtime": "openvino"},
        (
            ({"models.precision": "int8"}, SERVED | {("convert", "int8")}),
            (
                {"servers.runtime": "onnxruntime"},
                repositories(RESNET, MOBILENET) | ALL_CELLS | {AFTER},
            ),
            PRECISIONS,
        ),
    ),
    "remote server": Group(
        {
            "servers.launcher": "remote",
            "servers.price": {**MACHINE, "share": 1},
            "servers.remote.host": "127.0.0.1",
            "servers.remote.tls": "system",
            "servers.remote.headers": [{"name": "a", "env": "A"}],
        },
        (
            *rows(
                {"servers.remote.host": "10.0.0.8"},
                {"servers.remote.grpc": "127.0.0.1:9001"},
                {"servers.remote.http": "127.0.0.1:9000"},
                {"servers.remote.metrics": "http://127.0.0.1:9002/metrics"},
                {"servers.remote.tls": "none"},
                {"servers.remote.other_models": "allow"},
                {"servers.remote.headers.name": "b"},
                {"servers.remote.headers.env": "B"},
                {"servers.remote.headers.prefix": "Bearer "},
                run=ALL_CELLS | {AFTER},
            ),
            ({"servers.remote.client_cores": 2}, ALL_MEASURED),
            ({"servers.cores": 2}, repositories(RESNET, MOBILENET) | ALL_CELLS | {AFTER}),
        ),
    ),
    "gpu server": Group(
        {
            "servers.device": "gpu",
            "servers.gpus": [0],
            "servers.launcher": "docker",
            "servers.image": "triton:1",
            "servers.cores": 4,
            "servers.price": GPU,
            "scenarios.grid.vary.intra_op_threads": [4],  # the scenario already has this value
        },
        (
            ({"servers.gpus": [1]}, ALL_CELLS | COMPARED),
            ({"servers.price.accelerator": "P100"}, CHOSEN),
            ({f"{BOUNDS}.joules_per_inference": 1}, CHOSEN),
        ),
        arguments=("--jobs", "4", "--cores", "4", "--no-hooks"),  # the hooks look for GPUs
    ),
    "prices": Group(
        {"servers.price": MACHINE, "costs.pricing": PRICINGS},
        (
            *rows(
                {"servers.price.instance": "n1-standard-8"},
                {"servers.price.region": "asia-east1"},
                {"servers.price.share": 0.25},
                {"servers.price.custom": OWN_RATES},
                {"servers.other_prices": [{**MACHINE, "region": "asia-east1"}]},
                run={PRICED},
            ),
            ({"servers.price.zone": "us-central1-a"}, TOLD),
        ),
    ),
    "own rates": Group(
        {"servers.price": {**MACHINE, "custom": OWN_RATES}, "costs.pricing": PRICINGS},
        rows(
            {"servers.price.custom.vcpus": 3},
            {"servers.price.custom.memory_gib": 8},
            {"servers.price.custom.source": "our contract"},
            *({f"servers.price.custom.{p}.{rate}": 0.05} for p in PRICINGS for rate in RATES),
            run={PRICED},
        ),
    ),
    "grids, figures and records of runs": Group(
        {},
        (
            varied("max_queue_delay_us", ["none", 500], "~delay_us-500"),
            varied("intra_op_threads", [1, 2], "~threads-2"),
            varied("max_batch_size", [8, 4], "~batch-4"),
            *rows(
                {"figures.font_pt": 8},
                {"figures.font": "serif"},
                {"figures.dpi": 150},
                {"figures.width_mm": 120},
                run={FIGURES},
            ),
            ({"track.mlflow": "http://127.0.0.1:5000"}, {("track",)}),
        ),
    ),
    "preferred batches of a grid": Group(
        {TENANT: [{"model": model, "dynamic_batching": BATCHING} for model in (RESNET, MOBILENET)]},
        (varied("preferred_batch_sizes", [[4], [2]], "~preferred-2"),),
    ),
    "design and bounds of a grid": Group(
        {"scenarios.grid": {"vary": {"instances": [1, 2], "max_batch_size": [8, 4]}}},
        rows(
            {f"{BOUNDS}.p95_ms": 40},
            {f"{BOUNDS}.relative_error": 0.1},
            run=CHOSEN,
        )
        + rows({"scenarios.grid.design": "one_at_a_time"}, run=COMPARED),
    ),
    "measurement": Group(
        {"measurement": {"preset": "quick", "repeats": 1, "arrivals": {"process": "gamma"}}},
        (
            ({"measurement.preset": "standard"}, ALL_CELLS | {AFTER}),
            ({"measurement.ratio_within": 0.02}, {MIX, AFTER}),
            *rows(
                {"measurement.arrivals.process": "poisson"},
                {"measurement.arrivals.cv": 3},
                {"measurement.client.protocol": "http"},
                {"measurement.client.processes": 2},
                run=ALL_MEASURED,
            ),
        ),
    ),
    "measurement of kinds that do not read all of it": Group(
        {
            "scenarios.experiments": [PEAK, *({"kind": kind, **UNREAD[kind]} for kind in UNREAD)],
            "measurement.arrivals": {"process": "gamma"},
        },
        (
            ({"measurement.arrivals.cv": 3}, ALL_MEASURED | DRAWN),
            ({"measurement.client.processes": 2}, ALL_MEASURED | DRAWN | LOADED),
            ({"measurement.client.protocol": "http"}, ALL_MEASURED | DRAWN | LOADED | STARTED),
        ),
    ),
    "demand": Group(
        {
            "demand.models": [LEVELS, {"name": MOBILENET, "trace": "times.csv"}],
            "demand.spot": SPOT,
        },
        (
            *rows(
                {"demand.models": [{"name": RESNET, "rps": 20}]},
                {"demand.models.low_rps": 4},
                {"demand.models.typical_rps": 9},
                {"demand.models.peak_rps": 30},
                {"demand.percentiles": [5, 10, 99]},
                {"demand.interval_s": 30},
                {"demand.min_servers": 2},
                {"demand.spot.largest_share": 0.4},
                {"demand.spot.revocations_per_hour": 0.2},
                run=PLANNED,
            ),
            ({"demand.servers": ["cpu1"]}, TOLD),
        ),
    ),
    "demand of a trace": Group(
        {"demand.models": [{"name": RESNET, "trace": TIMES}]},
        (
            *rows(
                {"demand.models.trace.file": "azure.csv"},
                {"demand.models.trace.where": READ["where"]},
                run=PLANNED,
            ),
            *rows(
                {"demand.models.trace.column": "time_s"},
                {"demand.models.trace.unit": "s"},
                run=TOLD,
            ),
        ),
    ),
    "arrivals of a trace": Group(
        {"measurement.arrivals": {"process": "trace", "trace": TIMES}},
        rows(
            *({f"measurement.arrivals.trace.{key}": of} for key, of in READ.items()),
            run=ALL_MEASURED,
        ),
    ),
    "a tenant at a constant rate": Group(
        {
            "scenarios.experiments": [
                {"kind": "peak", "hold": RESNET, "percents_of_peak": [20]},
            ]
        },
        (
            (
                {"scenarios.experiments[peak].percents_of_peak": [20, 40]},
                {("measure", f"cpu1.shared.hold-{RESNET}-40.r1"), AFTER},
            ),
            (
                {"scenarios.experiments[peak].hold": MOBILENET},
                {("measure", f"cpu1.shared.hold-{MOBILENET}-20.r1"), AFTER},
            ),
        ),
    ),
    "frontier": Group(
        {
            "scenarios.experiments": [
                PEAK,
                {"kind": "frontier", "points": 1, "predict": True},
            ]
        },
        (
            (
                {"scenarios.experiments[frontier].error_percent": 5},
                {("measure", "cpu1.shared.frontier-1.r1"), AFTER},
            ),
        ),
    ),
    "startup": experiment("startup", "startup", {}, starts=4, page_cache=["warm", "cold"]),
    "aa": experiment("aa", "aa", {}, windows=8, restarts=3, concurrency=2),
    "concurrency": experiment(
        "concurrency", "concurrency", {"concurrencies": [1]}, concurrencies=[1, 2]
    ),
    "slowdown": experiment("slowdown", "slowdown-5rps", {"rate_rps": 5}, rounds=4),
    "soak": experiment("soak", "soak-5-6rps", {"rates_rps": [5, 6]}, duration_s=900),
    "bursts": replay(
        "some",
        BURSTS,
        process="poisson",
        burst_factor=8,
        burst_share=0.2,
        burst_s=2,
        duration_s=60,
        rates_rps=[6],
    ),
    "gamma": replay("some", {**BURSTS, "process": "gamma"}, cv=3),
    "trace": replay(
        "some",
        TRACE,
        begins_s=[5],
        time_scale=0.5,
        **{f"traces.{key}": value for key, value in READ.items()},
    ),
    "recordings": Group(
        {"scenarios.experiments": [PEAK, {"kind": "replay", "name": "some", **AZURE}]},
        (
            ({f"{REPLAY}.traces": ["burstgpt.csv"]}, REPLAYED),
            (
                {f"{REPLAY}.name": "other"},
                {("measure", "cpu1.shared.replay-other.r1"), ("figure", "replay"), PRICED},
            ),
        ),
    ),
}

ELSEWHERE = {
    "another_study_leaves_this_one_alone": ["study"],
    "the_seed_is_in_all_that_is_drawn": ["seed"],
    "a_model_added_with_a_scenario": ["models.name", "scenarios.name", f"{TENANT}.model"],
    "the_sla_of_a_model": ["models.sla.latency_ms"],
    "the_input_size_of_a_model": ["models.input_size"],
    "the_name_of_a_served_model_and_its_shape": ["models.served_model", "models.shape"],
    "an_onnx_file_of_ones_own_in_place_of_an_architecture_and_what_stands_in_it": ["models.onnx"],
    "the_launcher_and_the_image_of_a_server": ["servers.launcher", "servers.image"],
    "a_plan_is_built_anew_for_another_image": ["servers.device"],
    "the_instances_of_a_tenant": [f"{TENANT}.instances"],
    "how_a_tenant_is_served_and_asked": [
        f"{TENANT}.priority",
        f"{TENANT}.max_batch_size",
        f"{TENANT}.request_batch_size",
    ],
    "the_precision_of_a_tenant": [f"{TENANT}.precision"],
    "a_client_that_preprocesses": [f"{TENANT}.preprocessing"],
    "the_preset_of_one_scenario": ["scenarios.preset"],
    "a_catalogue_of_more_networks_and_another_sla": [
        "models.architectures",
        "scenarios.experiments[catalogue].kind",
        "scenarios.experiments[catalogue].times_unloaded",
        "scenarios.experiments[catalogue].in_process_s",
    ],
    "a_mix_added": ["scenarios.experiments[peak].mixes"],
    "a_frontier_added_and_one_more_point": [
        "scenarios.experiments[frontier].points",
        "scenarios.experiments[frontier].predict",
    ],
    "pairs_asked_for_then_other_rates_then_more_rounds": [
        "scenarios.experiments[slowdown].percent_of_peak"
    ],
    "a_dedicated_peak_found_again_moves_rates_that_are_shares_of_it": [
        "scenarios.experiments[slowdown].rate_rps"
    ],
    "a_tenant_searched_beside_others_that_stay_and_at_other_rates": [
        f"scenarios.experiments[background].{key}"
        for key in ("search", "percents_of_peak", "rates_rps")
    ],
    "a_soak_at_shares_of_peaks_is_measured_again_with_them_and_at_given_rates_is_not": [
        "scenarios.experiments[soak].percents_of_peak",
        "scenarios.experiments[soak].rates_rps",
    ],
    "rates_of_bursts_that_follow_the_peaks": [f"{REPLAY}.percents_of_peak"],
    "a_grid_added_a_value_more_and_one_less": ["scenarios.grid.vary.instances"],
    "a_runtime_of_a_grid_needs_no_other_ceiling_of_the_client": ["scenarios.grid.vary.runtime"],
    "cores_of_a_grid_have_a_ceiling_of_their_own_where_this_machine_has_them": [
        "scenarios.grid.vary.cores"
    ],
    "the_way_of_the_requests": ["measurement.client.shared_memory"],
    "a_repeat_added": ["measurement.repeats"],
    "a_demand_a_higher_one_and_the_file_of_its_trace": [
        "demand.headroom",
        "demand.models.name",
        "demand.models.rps",
    ],
    "how_results_are_priced": [
        f"costs.{key}"
        for key in (
            "pricing",
            "prices",
            "currency",
            "usd_per_currency_unit",
            "priced_on",
            "committed_discount",
            "usd_per_kwh",
        )
    ],
}
"""The keys that another test in this folder edits, by the name of the test."""
