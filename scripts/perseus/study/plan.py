"""What a study consists of: its cells, the files of each step, and the slice of the configuration
that each job depends on. Pure functions of the study.

Snakemake re-runs a job when its slice changes, so a slice holds what can change the job's output
and nothing else, as one dictionary of plain values with sorted keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from perseus.peak import durations as budget
from perseus.study.entities import Cell, Model, Scenario, Server, Study, Tenant, is_weights_file
from perseus.study.presets import PRESETS
from perseus.study.sla import Sla

Slice = dict[str, Any]
FIGURES = (
    "peaks",
    "frontier",
    "costs",
    "latency_by_rate",
    "latency_ecdf",
    "utilisation",
    "ceilings",
)
TABLES = ("peaks", "tenants", "costs", "savings", "ceilings", "concurrency")
RAW = ("requests.parquet", "windows.parquet", "monitor.parquet", "record.json", "server.log")


def cells(study: Study) -> tuple[Cell, ...]:
    """All cells, dedicated scenarios first."""
    return tuple(study.cells.values())


def peak_cells(study: Study) -> tuple[Cell, ...]:
    """The cells that search a peak."""
    return tuple(cell for cell in cells(study) if cell.line.kind != "concurrency")


def figures(study: Study) -> tuple[str, ...]:
    """The figures that a study has something for."""
    swept = any(cell.line.kind == "concurrency" for cell in cells(study))
    return (*FIGURES, "concurrency") if swept else FIGURES


def cell(study: Study, cell_id: str) -> Cell:
    return study.cells[cell_id]


def scenario(study: Study, scenario_id: str) -> Scenario:
    return next(s for s in study.scenarios if s.id == scenario_id)


def servers(study: Study) -> dict[str, Server]:
    """The servers that scenarios use, by name."""
    return {scenario.server.name: scenario.server for scenario in study.scenarios}


def model(study: Study, name: str) -> Model:
    return next(m for m in study.models if m.name == name)


def tenant(study: Study, scenario_id: str, name: str) -> Tenant:
    return next(t for t in scenario(study, scenario_id).tenants if t.name == name)


def model_of(study: Study, server_name: str, tenant_name: str) -> str:
    """The model of a tenant, which has a dedicated scenario of its name on its servers."""
    return tenant(study, f"{server_name}.{tenant_name}", tenant_name).model


def dedicated_cells(study: Study, of: Cell) -> tuple[Cell, ...]:
    """The cells that measured a tenant of the shared cell `of` alone on the same server."""
    if of.line.kind in ("dedicated", "concurrency"):
        return ()
    return tuple(
        Cell(alone, line, repeat)
        for alone in study.scenarios
        if len(alone.tenants) == 1
        and alone.server == of.scenario.server
        and alone.tenants[0] in of.scenario.tenants
        for line in alone.lines
        if line.kind == "dedicated"
        for repeat in range(1, study.repeats + 1)
    )


# What a cell needs of Snakemake

ALL_THREADS = 100_000
"""More than any machine has: Snakemake lowers it to all the cores that it was given."""


def threads(of: Cell) -> int:
    """All cores for a server on this host; a remote server's client has its own."""
    remote = of.scenario.server.remote
    return remote.client_cores if remote else ALL_THREADS


def slots(study: Study) -> list[str]:
    """What only one measurement at a time may use: this host, and each host of remote servers."""
    remotes = [server.remote for server in servers(study).values() if server.remote]
    return ["local_server", *sorted({remote.slot for remote in remotes})]


def slot(of: Cell) -> str:
    remote = of.scenario.server.remote
    return remote.slot if remote else "local_server"


# Costs


def load_s(study: Study) -> tuple[float, float]:
    """Seconds of load that measuring all cells takes: about, and at most.

    Of slow models: a window of a fast one has enough requests sooner.
    """
    preset = PRESETS[study.precision].settings
    about_s, most_s = 0.0, 0.0
    for each in cells(study):
        models = [model(study, tenant.model) for tenant in each.scenario.tenants]
        slas = [Sla(m.sla_percentile, m.sla_ms) for m in models]
        if each.line.kind == "concurrency":
            swept_s = len(each.line.concurrencies) * budget.loop_s(preset, slas)
            about_s, most_s = about_s + swept_s, most_s + swept_s
        else:
            about_s += budget.expected_s(preset, slas, [SLOW_RPS] * len(slas))
            most_s += budget.longest_s(preset, slas)
    return about_s, most_s


SLOW_RPS = 0.01
"""Too slow to end any window early."""

# Files


def raw_files(study: Study, of: Cell) -> list[str]:
    return [f"results/{study.name}/raw/{of.id}/{name}" for name in RAW]


def records(study: Study, of: Sequence[Cell]) -> list[str]:
    return [f"results/{study.name}/raw/{c.id}/record.json" for c in of]


def repository_files(study: Study, of: Scenario) -> list[str]:
    root = f"model_repository/{study.name}/{of.id}"
    names = ("config.pbtxt", f"1/model.{served_kind(of.server)}")
    return [f"{root}/{tenant.name}/{name}" for tenant in of.tenants for name in names]


def served_kind(of: Server) -> str:
    """The ending of the model files that a server's runtime loads."""
    return {"pytorch": "pt2", "tensorrt": "plan"}.get(of.runtime, "onnx")


def server_names(study: Study, kind: str) -> list[str]:
    """The servers whose runtime loads files of this kind."""
    return sorted(name for name, each in servers(study).items() if served_kind(each) == kind)


def served_file(study: Study, scenario_id: str, tenant_name: str) -> str:
    """The file that the repository has a copy of."""
    of, served = scenario(study, scenario_id), tenant(study, scenario_id, tenant_name)
    if of.server.runtime == "tensorrt":
        return f"results/{study.name}/plans/{of.server.name}/{tenant_name}/model.plan"
    if of.server.runtime == "pytorch":
        return f"results/{study.name}/models/{served.model}/model.pt2"
    return onnx_file(study, served.model)


def onnx_file(study: Study, name: str) -> str:
    """The ONNX file of a model in the precision that it is served in; bf16 is the runtime's."""
    precision = model(study, name).precision
    converted = f".{precision}" if precision in ("fp16", "int8") else ""
    return f"results/{study.name}/models/{name}/model{converted}.onnx"


def checks(study: Study, of: Server) -> list[str]:
    """The records of the export of all models that a server serves."""
    names = {t.model for s in study.scenarios if s.server == of for t in s.tenants}
    return [f"results/{study.name}/models/{name}/check.json" for name in sorted(names)]


def references(study: Study, of: Scenario) -> list[str]:
    return [f"results/{study.name}/models/{tenant.model}/reference.npz" for tenant in of.tenants]


def backend_files(of: Server) -> list[str]:
    """Our own backend that serves the runtime; TensorRT's plans are served by Triton's."""
    return [] if of.runtime == "tensorrt" else [f"scripts/backends/{of.runtime}/model.py"]


def weights_files(of: Model) -> list[str]:
    return [of.weights] if is_weights_file(of.weights) else []


def trace_files(study: Study) -> list[str]:
    return [study.arrivals_trace] if study.arrivals_trace else []


# Slices of the configuration


def export_slice(study: Study, of: Model) -> Slice:
    """An SLA or a precision does not change what is exported."""
    return plain(
        {
            "architecture": of.architecture,
            "weights": of.weights,
            "input_size": of.input_size,
            "images": of.images,
            "seed": study.seed,
        }
    )


def repository_slice(study: Study, scenario_id: str, tenant_name: str) -> Slice:
    of, served = scenario(study, scenario_id), tenant(study, scenario_id, tenant_name)
    settings = asdict(served) | {
        "runtime": of.server.runtime,
        "precision": model(study, served.model).precision,
        "gpus": of.server.served_gpus,
    }
    del settings["request_batch_size"]  # how it is asked, not how it is served
    return plain({"tenant": settings, "siblings": sorted(t.name for t in of.tenants)})


def tensorrt_slice(study: Study, server_name: str, tenant_name: str) -> Slice:
    """What a plan of TensorRT depends on besides the ONNX file."""
    server = servers(study)[server_name]
    served = tenant(study, f"{server_name}.{tenant_name}", tenant_name)
    return plain(
        {
            "server": server_name,
            "gpus": server.gpus,
            "precision": model(study, served.model).precision,
            "tenant": {
                "max_batch_size": served.max_batch_size,
                "request_batch_size": served.request_batch_size,
                "dynamic_batching": served.max_queue_delay_us is not None,
                "preferred_batch_sizes": served.preferred_batch_sizes,
            },
        }
    )


def measure_slice(study: Study, of: Cell) -> Slice:
    server = of.scenario.server
    return plain(
        {
            "study": study.name,
            "cell": of.id,
            "scenario": of.scenario.id,
            "repeat": of.repeat,
            "seed": study.seed,
            "line": of.line,
            "server": {
                "name": server.name,
                "device": server.device,
                "launcher": server.launcher,
                "image": server.image,
                "runtime": server.runtime,
                "cores": server.cores,
                "gpus": server.gpus_here,
                "remote": server.remote,
            },
            "tenants": [_measured_tenant(study, tenant) for tenant in of.scenario.tenants],
            "precision": study.precision,
            "settings": PRESETS[study.precision].settings,
            "arrivals": {"process": study.arrivals, "cv": study.arrivals_cv},
            "client": study.client,
            "trace": study.arrivals_trace,
        }
    )


def _measured_tenant(study: Study, tenant: Tenant) -> Slice:
    served = model(study, tenant.model)
    return {
        "name": tenant.name,
        "model": tenant.model,
        "max_batch_size": tenant.max_batch_size,
        "request_batch_size": tenant.request_batch_size,
        "dynamic_batching": tenant.max_queue_delay_us is not None,
        "precision": served.precision,
        "priority": tenant.priority,
        "sla_percentile": served.sla_percentile,
        "sla_ms": served.sla_ms,
    }


def ceiling_slice(study: Study, server: Server) -> Slice:
    """What the client's ceiling depends on besides the shapes of the requests.

    It is found on a server of our own, whatever the launcher and the runtime.
    """
    tenants = [t for s in study.scenarios if s.server == server for t in s.tenants]
    remote = server.remote
    return plain(
        {
            "server": server.name,
            # Beside a remote server the client has so many cores, and the null model the others.
            "cores": None if remote else server.cores,
            "client_cores": remote.client_cores if remote else None,
            "client": study.client,
            "seed": study.seed,
            "requests": sorted({(t.model, t.request_batch_size) for t in tenants}),
        }
    )


def tables_slice(study: Study) -> Slice:
    return plain(
        {
            "study": study.name,
            "seed": study.seed,
            "pricing": study.pricing,
            "prices": {name: server.price for name, server in servers(study).items()},
        }
    )


def figure_slice(study: Study) -> Slice:
    return plain({"pricing": study.pricing[0], **dict(study.figure_style)})


def plain(value: Any) -> Any:
    """`value` as dictionaries with sorted keys, lists, strings and numbers.

    Snakemake compares the `repr` of what it is given; a float stays a float, so 100 and 100.0 are
    made equal when the configuration is read.
    """
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {key: plain(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
