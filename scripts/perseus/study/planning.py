"""Make the task of each job: all settings that can change the output of the job, and no others.
Therefore, an edit of a setting repeats only the jobs that use the setting."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from perseus.study.cells import Cell, Study, search_alone
from perseus.study.demand import LEVELS, Demand
from perseus.study.measurement import ArrivalProcess, ClientSettings
from perseus.study.model import Model
from perseus.study.presets import PRESETS, SearchSettings
from perseus.study.runtimes import RUNTIMES
from perseus.study.server import Server
from perseus.study.setting import configured, describe, of_ceiling
from perseus.study.tasks.ceiling import CeilingTask, RequestOfModel
from perseus.study.tasks.check import CheckTask
from perseus.study.tasks.export import ExportTask
from perseus.study.tasks.figure import FigureTask
from perseus.study.tasks.labelled import LabelledTask
from perseus.study.tasks.measure import (
    MeasuredArrivals,
    MeasuredClient,
    MeasuredServer,
    MeasuredTenant,
    MeasureTask,
    ServedModel,
)
from perseus.study.tasks.network import NetworkTask
from perseus.study.tasks.own_examples import OwnExamples, Pixels, Values
from perseus.study.tasks.own_onnx import OwnOnnxTask
from perseus.study.tasks.predictions import PredictionsTask
from perseus.study.tasks.report import ReportedServer, ReportedTenant, ReportTask
from perseus.study.tasks.repository import RepositoryTask, ServedEnsemble, ServedTenant
from perseus.study.tasks.tables import (
    DemandLevel,
    FleetDemand,
    GridQuestion,
    GridSetting,
    TablesTask,
)
from perseus.study.tasks.tensorrt import TensorRtTask
from perseus.study.tasks.track import TrackTask
from perseus.study.tenant import Tenant
from perseus.study.variants import ScenarioGrid


def export_task(study: Study, model: str) -> ExportTask:
    of = study.models[model]
    return ExportTask(
        architecture=of.architecture,
        weights=of.weights,
        seed=study.definition.seed,
        input_size=of.input_size,
        images=study.images[model],
        request=of.request,
        is_surveyed=model in study.only_surveyed,
    )


def labelled_task(study: Study, model: str) -> LabelledTask:
    of, labelled = study.models[model], study.labelled[model]
    return LabelledTask(
        architecture=of.architecture,
        weights=of.weights,
        request=of.request,
        images=tuple(each.file for each in labelled),
        classes=tuple(each.label for each in labelled),
    )


def network_task(study: Study, model: str) -> NetworkTask:
    of = study.models[model]
    return NetworkTask(
        architecture=of.architecture,
        weights=of.weights,
        seed=study.definition.seed,
        input_size=of.input_size,
        examples=own_examples(of, study.images[model]),
    )


def own_onnx_task(study: Study, model: str) -> OwnOnnxTask:
    of = study.models[model]
    return OwnOnnxTask(
        seed=study.definition.seed,
        shape=of.shape,
        input_size=of.input_size,
        examples=own_examples(of, study.images[model]),
        deterministic=of.deterministic,
    )


def own_examples(of: Model, images: Sequence[str]) -> OwnExamples:
    """Return the source of a model's examples (contents of requests): a file of the user, images,
    or random numbers. `images` contains the paths of the model's image files."""
    return OwnExamples(
        inputs=of.inputs,
        images=tuple(images),
        pixels=Pixels(
            layout=of.layout,
            scale=of.scale,
            mean=of.mean if isinstance(of.mean, tuple) else (of.mean,),
            std=of.std if isinstance(of.std, tuple) else (of.std,),
        ),
        values=Values(low=of.values.low, high=of.values.high) if of.values else None,
    )


def repository_task(study: Study, scenario_id: str) -> RepositoryTask:
    scenario = study.scenarios[scenario_id]
    deployed = study.deployed(scenario)
    return RepositoryTask(
        tenants=tuple(_served_tenant(study, scenario.server, tenant) for tenant in deployed),
        is_survey=scenario.is_survey,
    )


def _served_tenant(study: Study, server: Server, tenant: Tenant) -> ServedTenant:
    batching, model = tenant.dynamic_batching, study.models[tenant.model]
    return ServedTenant(
        name=tenant.network,
        model=tenant.model,
        runtime=server.runtime,
        precision=study.precision(tenant),
        model_file=RUNTIMES[server.runtime].model_file,
        instances=tenant.instances,
        max_batch_size=tenant.max_batch_size,
        # A model that is not a classifier may have a fixed batch size, so its repository depends on
        # the number of images in a request.
        request_batch_size=1 if model.is_classifier else tenant.request_batch_size,
        max_queue_delay_us=batching.max_queue_delay_us if batching else None,
        preferred_batch_sizes=batching.preferred_batch_sizes if batching else (),
        priority=tenant.priority,
        intra_op_threads=tenant.intra_op_threads or server.cores,
        gpus=server.served_gpus,
        ensemble=_served_ensemble(server, tenant) if tenant.steps else None,
    )


def _served_ensemble(server: Server, tenant: Tenant) -> ServedEnsemble:
    preprocess, network = tenant.steps
    return ServedEnsemble(
        tenant=tenant.name,
        preprocess=preprocess,
        network=network,
        max_batch_size=tenant.max_batch_size,
        processes=server.cores,
    )


def tensorrt_task(study: Study, server_name: str, tenant_name: str) -> TensorRtTask:
    server = study.servers[server_name]
    tenant = study.scenarios[f"{server_name}.{tenant_name}"].tenant(tenant_name)
    batching = tenant.dynamic_batching
    return TensorRtTask(
        server=server_name,
        image=server.image,
        gpus=server.gpus or (),
        precision=study.precision(tenant),
        max_batch_size=tenant.max_batch_size,
        request_batch_size=tenant.request_batch_size,
        dynamic_batching=batching is not None,
        preferred_batch_sizes=batching.preferred_batch_sizes if batching else (),
    )


def measure_task(study: Study, of: Cell) -> MeasureTask:
    server, measurement = of.scenario.server, study.definition.measurement
    # The task leaves out settings that the experiment does not read: a change of such a setting
    # must not repeat the cell.
    arrivals = measurement.arrivals if of.run.takes_arrivals else ArrivalProcess()
    client = _client(measurement.client)
    return MeasureTask(
        study=study.name,
        cell=of.id,
        scenario=of.scenario.id,
        repeat=of.repeat,
        seed=study.definition.seed,
        run=of.run,
        server=MeasuredServer(
            name=server.name,
            device=server.device,
            launcher=server.launcher,
            image=server.image,
            runtime=server.runtime,
            cores=server.cores,
            gpus=server.gpus_here,
            remote=server.remote,
        ),
        tenants=tuple(_measured(study, of, tenant) for tenant in of.scenario.tenants),
        preset=of.preset,
        search=_search(study, of),
        arrivals=_arrivals(arrivals),
        trace=arrivals.trace,
        client=client if of.run.offers_load else client.model_copy(update={"processes": None}),
    )


def _search(study: Study, of: Cell) -> SearchSettings:
    """Return the search settings of the cell's preset. In a scenario with several tenants, a
    configured `ratio_within` replaces the value of the preset."""
    settings = PRESETS[of.preset].settings
    wanted = study.definition.measurement.ratio_within
    if wanted is None or len(of.scenario.tenants) < 2:
        return settings
    return replace(settings, ratio_within=wanted)


def _measured(study: Study, of: Cell, tenant: Tenant) -> MeasuredTenant:
    model = study.models[tenant.model]
    served = _served(model, study.images[tenant.model])
    return MeasuredTenant(
        name=tenant.name,
        model=tenant.model,
        served_model=served,
        max_batch_size=None if served else tenant.max_batch_size,
        request_batch_size=tenant.request_batch_size,
        dynamic_batching=None if served else tenant.dynamic_batching is not None,
        precision=None if served else study.precision(tenant),
        priority=tenant.priority,
        preprocessing=tenant.preprocessing,
        labelled_images=len(study.labelled[tenant.model]) if of.run.is_survey else 0,
        sla=model.sla,
    )


def _served(model: Model, images: Sequence[str]) -> ServedModel | None:
    if model.served_model is None:
        return None
    return ServedModel(
        name=model.served_model,
        shape=model.shape,
        deterministic=model.deterministic,
        examples=own_examples(model, images),
    )


def _arrivals(settings: ArrivalProcess) -> MeasuredArrivals:
    return MeasuredArrivals(process=settings.process, cv=settings.cv or 1.0)


def _client(settings: ClientSettings) -> MeasuredClient:
    return MeasuredClient(
        protocol=settings.protocol,
        shared_memory=settings.shared_memory,
        processes=None if settings.processes == "auto" else settings.processes,
    )


def ceiling_task(study: Study, ceiling: str) -> CeilingTask:
    server, measurement = study.ceilings[ceiling][0], study.definition.measurement
    requests = {
        (tenant.model, tenant.request_batch_size)
        for scenario in study.scenarios.values()
        if of_ceiling(scenario.server.name) == ceiling and not scenario.is_survey
        for tenant in scenario.tenants
        if not study.is_served(tenant)
        and tenant.preprocessing != "server"  # encoded images have fewer bytes than tensors
    }
    return CeilingTask(
        server=ceiling,
        cores=None if server.remote else server.cores,
        client_cores=server.remote.client_cores if server.remote else None,
        arrivals=_arrivals(measurement.arrivals),
        trace=measurement.arrivals.trace,
        client=_client(measurement.client),
        seed=study.definition.seed,
        requests=tuple(
            RequestOfModel(model=m, images=n, sla_ms=_coarse(study.models[m].sla.latency_ms))
            for m, n in sorted(requests)
        ),
    )


def _coarse(sla_ms: float) -> float:
    """Return the latency limit of an SLA, rounded down to 50, 100, 200, 500, 1000, ... ms, and at
    least 50 ms. Because of the rounding, a small edit of the SLA does not repeat the measurement of
    the client ceiling."""
    power = 10.0 ** math.floor(math.log10(sla_ms))
    return max(50.0, *(step * power for step in (1, 2, 5) if step * power <= sla_ms))


def tables_task(study: Study) -> TablesTask:
    return TablesTask(
        study=study.name,
        seed=study.definition.seed,
        pricing=study.definition.costs.pricing,
        prices={name: study.prices[name] for name in study.servers if name in study.prices},
        other_prices={name: study.other_prices[name] for name in study.servers},
        usd_per_kwh=study.definition.costs.usd_per_kwh,
        grids=tuple(question for grid in study.grids for question in _questions(study, grid)),
        demand=_fleet_demand(study, study.definition.demand) if study.definition.demand else None,
    )


def predictions_task(study: Study) -> PredictionsTask:
    return PredictionsTask(study=study.name, seed=study.definition.seed)


def check_task(study: Study) -> CheckTask:
    sizes = {
        scenario.id: {
            tenant.name: tenant.request_batch_size
            for tenant in scenario.tenants
            if tenant.request_batch_size > 1
        }
        for scenario in study.scenarios.values()
    }
    return CheckTask(images_per_request={name: of for name, of in sizes.items() if of})


def _fleet_demand(study: Study, demand: Demand) -> FleetDemand:
    """Return the demand with its three levels (low, typical, peak). If each model has the same rate
    at all levels, return only one level, called "demand"."""
    rates = study.demand_rps
    is_constant = all(len(set(three)) == 1 for three in rates.values())
    return FleetDemand(
        levels=tuple(
            DemandLevel(name=name, rps={model: three[i] for model, three in rates.items()})
            for i, name in enumerate(("demand",) if is_constant else LEVELS)
        ),
        headroom=demand.headroom,
        min_servers=demand.min_servers,
        servers=tuple(
            name
            for name in study.servers
            if demand.servers is None or configured(name) in demand.servers
        ),
        spot=demand.spot,
    )


def _questions(study: Study, of: ScenarioGrid) -> Iterator[GridQuestion]:
    """Yield the questions that a grid answers: which setting is best for each tenant alone, and
    which setting is best for all tenants on each load line.

    The function leaves out the second and later mixes of a frontier, because the weights of these
    mixes may differ between the settings of the grid.
    """
    names = tuple(tenant.name for tenant in of.scenario.tenants)
    preset = of.scenario.preset or study.definition.measurement.preset
    alone = search_alone(study.definition, preset).run.name
    for i, name in enumerate(names):
        yield _question(
            of, (name,), alone, [(v.scenario.tenants[i].name, alone) for v in of.variants]
        )
    lines = [[run.name for run in study.runs_of(each.scenario)] for each in of.variants]
    for i, run in enumerate(study.runs_of(of.scenario)):
        shared = zip(of.variants, lines, strict=True)
        if not run.needs_runs:
            yield _question(of, names, run.name, [(v.scenario.name, each[i]) for v, each in shared])


def _question(
    of: ScenarioGrid, tenants: tuple[str, ...], load_line: str, cells: Sequence[tuple[str, str]]
) -> GridQuestion:
    """Return one question of a grid. For each setting of the grid, `cells` contains the name of the
    scenario and the name of the load line that Perseus measures with this setting."""
    return GridQuestion(
        grid=of.scenario.name,
        tenants=tenants,
        load_line=load_line,
        at_most=of.grid.at_most.given,
        settings=tuple(
            GridSetting(
                values=dict(variant.setting),
                description=describe(variant.setting),
                server=variant.server.name,
                scenario=f"{variant.server.name}.{scenario}",
                load_line=line,
                why_not=variant.why_not,
            )
            for variant, (scenario, line) in zip(of.variants, cells, strict=True)
        ),
    )


def figure_task(study: Study) -> FigureTask:
    style = study.definition.figures
    return FigureTask(
        width_mm=style.width_mm,
        font=style.font,
        font_pt=style.font_pt,
        dpi=style.dpi,
        pricing=study.definition.costs.pricing[0],
    )


def track_task(study: Study) -> TrackTask | None:
    """Return the task that logs the study to an MLflow tracking store; None if the configuration
    names no store."""
    definition = study.definition
    if definition.track.mlflow is None:
        return None
    configuration = definition.model_dump(mode="json", exclude_defaults=True, exclude={"track"})
    return TrackTask(study=study.name, uri=definition.track.mlflow, configuration=configuration)


def report_task(study: Study, traces: Sequence[str] = ()) -> ReportTask:
    """Return the task that writes the report.

    If the study has grids, the task contains the tenants and servers of all settings that Perseus
    can measure. `traces` contains one text for each trace. This text says how Perseus read the
    trace.
    """
    tenants = [tenant for scenario in study.scenarios.values() for tenant in scenario.tenants]
    used = {tenant.model for tenant in tenants}
    return ReportTask(
        models=tuple(model for model in study.definition.models if model.name in used),
        tenants=tuple({tenant.name: ReportedTenant(**dict(tenant)) for tenant in tenants}.values()),
        servers=tuple(ReportedServer(**dict(server)) for server in study.servers.values()),
        measurement=study.definition.measurement,
        demand=study.definition.demand,
        traces=tuple(traces),
    )
