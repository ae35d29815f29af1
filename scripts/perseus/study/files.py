"""Where the files of a study lie, from the working directory on."""

from __future__ import annotations

from collections.abc import Iterable

from perseus.study.cells import Cell, Scenario, Study
from perseus.study.experiments import run_of
from perseus.study.experiments.base import ExperimentRun
from perseus.study.raw_files import RECORD
from perseus.study.runtimes import ONNX, PLAN, PROGRAM, RUNTIMES
from perseus.study.server import Server
from perseus.study.setting import of_ceiling
from perseus.study.tenant import Tenant

CONVERTED = ("fp16", "int8")
"""Precisions that a network has of itself; the others are the runtime's."""


def results(study: Study) -> str:
    return f"results/{study.name}"


def model_repository(study: Study) -> str:
    return f"model_repository/{study.name}"


def logs(study: Study) -> str:
    return f"logs/{study.name}"


def raw(study: Study, cells: Iterable[Cell]) -> list[str]:
    """The folder of raw results of each cell, which is its output."""
    return [f"{results(study)}/raw/{cell.id}" for cell in cells]


def records(study: Study, cells: Iterable[Cell]) -> list[str]:
    """The record of each cell, which lies in its folder and is no output of its own."""
    return [f"{folder}/{RECORD}" for folder in raw(study, cells)]


def output_with(study: Study, path: str) -> str:
    """The output that a file belongs to: itself, or the folder that is one, of a cell's raw results
    or of a scenario's repository."""
    for within in (f"{results(study)}/raw/", f"{model_repository(study)}/"):
        if path.startswith(within):
            return within + path.removeprefix(within).split("/", 1)[0]
    return path


def raw_of_kind(study: Study, kind: str) -> list[str]:
    """The folders of all cells with that kind of experiment: those of one list."""
    return raw(study, (cell for cell in study.cells.values() if cell.run.kind == kind))


def measured(study: Study, kind: str | None = None) -> list[str]:
    """The lists of what was measured: of all cells, or of those with that kind of experiment, or
    derived."""
    run = ExperimentRun if kind is None else run_of(kind)
    runs = (cell.run for cell in study.cells.values())
    kinds = dict.fromkeys(each.kind for each in runs if isinstance(each, run))
    return [f"{results(study)}/measured/{each}.json" for each in kinds]


def dedicated(study: Study, of: Cell) -> list[str]:
    """What was found of its tenants alone: the folder of each, or, where there are repeats, a file
    with the records of all: else most edges of a large study would be these."""
    if len(study.repeats(of.preset)) == 1:
        return raw(study, study.dedicated_cells(of))
    return [repeats(study, peak) for peak in study.dedicated_peaks(of)]


def repeats(study: Study, repeated: str) -> str:
    """The records of all its repeats."""
    return f"{results(study)}/repeats/{repeated}.json"


def cell_inputs(study: Study, of: Cell) -> dict[str, list[str]]:
    """All that a cell is measured from, by what it is to the job; without what it has none of."""
    found = {
        "repository": repository(study, of.scenario),
        "dedicated": dedicated(study, of),
        "earlier": raw(study, study.earlier_cells(of)),
        **_of_copies(study, of),
        "trace": trace(study) if of.run.takes_arrivals else [],
        "files": experiment_files(of),
        "samples": _served_samples(study, of.scenario),
        "image": image(of.scenario.server),
    }
    return {what: names for what, names in found.items() if names}


def _served_samples(study: Study, of: Scenario) -> list[str]:
    """Examples for models that the server has; those for others went into their references."""
    return [
        file
        for tenant in of.tenants
        if study.is_served(tenant)
        for file in samples(study, tenant.model)
    ]


def _of_copies(study: Study, of: Cell) -> dict[str, list[str]]:
    """What tells what its models cost each other in the caches, where its mix may be predicted:
    what copies of them did together and alone, and how much memory they touch."""
    cells = study.copies_cells(of)
    if not cells:
        return {}
    alone = dict.fromkeys(file for cell in cells for file in dedicated(study, cell))
    own = dedicated(study, of)
    return {
        "copies": raw(study, cells),
        "copies_dedicated": [file for file in alone if file not in own],
        "checks": _checks(study, study.brought(of.scenario)),
    }


def checked_tables(study: Study) -> str:
    """What was found to hold of its tables."""
    return f"{results(study)}/tables/checked.json"


def ceilings(study: Study) -> list[str]:
    """The client's, beside servers that models are brought to: of others no size is known."""
    names = [name for name in study.ceilings if checks(study, name)]
    return [f"{results(study)}/ceilings/{name}.json" for name in names]


def repository(study: Study, of: Scenario) -> list[str]:
    """The folder of its repository, with what torch answers; none where nothing is brought."""
    return [f"{model_repository(study)}/{of.id}"] if study.brought(of) else []


def repositories(study: Study) -> list[str]:
    """The folders of all."""
    return [folder for of in study.scenarios.values() for folder in repository(study, of)]


def repository_inputs(study: Study, of: Scenario) -> dict[str, list[str]]:
    """What it is made of, by what it is to the job: a file for each tenant that is brought."""
    brought = study.brought(of)
    return {
        "models": [served(study, of.id, tenant.name) for tenant in brought],
        "checks": [check(study, tenant.model) for tenant in brought],
        "references": references(study, of),
    }


def served(study: Study, scenario_id: str, tenant_name: str) -> str:
    """The file that the repository has a copy of."""
    scenario = study.scenarios[scenario_id]
    tenant = scenario.tenant(tenant_name)
    return {
        ONNX: onnx(study, scenario_id, tenant_name),
        PROGRAM: f"{results(study)}/models/{tenant.model}/{PROGRAM}",
        PLAN: f"{results(study)}/plans/{scenario.server.name}/{tenant.name}/{PLAN}",
    }[RUNTIMES[scenario.server.runtime].model_file]


def onnx(study: Study, scenario_id: str, tenant_name: str) -> str:
    """The ONNX file of a tenant's model in the precision that it is served in."""
    tenant = study.scenarios[scenario_id].tenant(tenant_name)
    precision = study.precision(tenant)
    converted = f".{precision}" if precision in CONVERTED else ""
    return f"{results(study)}/models/{tenant.model}/model{converted}.onnx"


def check(study: Study, model: str) -> str:
    """The record of a model's export."""
    return f"{results(study)}/models/{model}/check.json"


def all_checks(study: Study) -> list[str]:
    """Those of all models that are brought to a server."""
    return _checks(study, [t for of in study.scenarios.values() for t in study.brought(of)])


def surveyed_checks(study: Study) -> list[str]:
    """Those of the models that a survey measures, whose table says what networks do."""
    surveyed = [of for of in study.scenarios.values() if any(run.is_survey for run in of.runs)]
    return _checks(study, [tenant for of in surveyed for tenant in study.brought(of)])


def _checks(study: Study, of: Iterable[Tenant]) -> list[str]:
    """Those of the models of these tenants, each once."""
    return [check(study, model) for model in dict.fromkeys(tenant.model for tenant in of)]


def checks(study: Study, ceiling: str) -> list[str]:
    """Those of all models whose requests a ceiling of the client is of."""
    names = {
        tenant.model
        for scenario in study.scenarios.values()
        if of_ceiling(scenario.server.name) == ceiling and not scenario.is_survey
        for tenant in study.brought(scenario)
    }
    return [check(study, name) for name in sorted(names)]


def pictures(study: Study, model: str) -> str:
    """Pictures as files, with torch's answers to them."""
    return f"{results(study)}/models/{model}/pictures.npz"


def references(study: Study, of: Scenario) -> list[str]:
    """torch's answers, of each tenant's model that is brought to the server."""
    return [
        pictures(study, tenant.model)
        if tenant.preprocessing
        else f"{results(study)}/models/{tenant.model}/reference.npz"
        for tenant in study.brought(of)
    ]


# That the configuration names


def weights(study: Study, model: str) -> list[str]:
    """The file of a model's weights, if they are one."""
    file = study.models[model].weights_file
    return [file] if file else []


def samples(study: Study, model: str) -> list[str]:
    """The file of examples of one's own, if there is one."""
    file = study.models[model].inputs
    return [file] if file else []


def trace(study: Study) -> list[str]:
    """The file of a trace of arrivals, if there is one."""
    source = study.definition.measurement.arrivals.trace
    return [source.file] if source else []


def experiment_files(of: Cell) -> list[str]:
    """Those that a cell's experiment reads, in its order."""
    return list(of.run.files)


def image(server: Server) -> list[str]:
    """The file of a server's container, if it is one: it may be built anew under its name."""
    return [server.image_file] if server.image_file else []
