"""Define the paths of all files of a study: the outputs and inputs of the Snakemake jobs. The paths
are relative to the working directory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from perseus.study.cells import Cell, Scenario, Study
from perseus.study.experiments import run_of
from perseus.study.experiments.base import ExperimentRun
from perseus.study.image_files import LABELS
from perseus.study.raw_files import RECORD
from perseus.study.runtimes import ONNX, PLAN, PROGRAM, RUNTIMES
from perseus.study.server import Server
from perseus.study.setting import of_ceiling
from perseus.study.tenant import Tenant

CONVERTED = ("fp16", "int8")
"""Numeric precisions for which Perseus converts the ONNX file of a network. For bf16, the runtime
itself converts the network."""


def results(study: Study) -> str:
    return f"results/{study.name}"


def model_repository(study: Study) -> str:
    return f"model_repository/{study.name}"


def logs(study: Study) -> str:
    return f"logs/{study.name}"


def raw(study: Study, cells: Iterable[Cell]) -> list[str]:
    """Return, for each cell, the folder to which its job writes the raw results."""
    return [f"{results(study)}/raw/{cell.id}" for cell in cells]


def records(study: Study, cells: Iterable[Cell]) -> list[str]:
    return [f"{folder}/{RECORD}" for folder in raw(study, cells)]


def output_with(study: Study, path: str) -> str:
    """Return the output of a Snakemake job, a file or a folder, to which the file `path` belongs.

    For a raw result, the output is the folder of the cell. For a file in a model repository, the
    output is the folder of the repository. For any other file, the output is the file itself.
    """
    for within in (f"{results(study)}/raw/", f"{model_repository(study)}/"):
        if path.startswith(within):
            return within + path.removeprefix(within).split("/", 1)[0]
    return path


def raw_of_kind(study: Study, kind: str) -> list[str]:
    """Return the folders with the raw results of all cells of one kind of experiment."""
    return raw(study, (cell for cell in study.cells.values() if cell.run.kind == kind))


def measured(study: Study, kind: str | None = None) -> list[str]:
    """Return the paths of the files that list the measured cells: one file for each kind of
    experiment. If `kind` is None, return the files of all kinds. For the kind `peak`, also return
    the files of `frontier` and `background`."""
    run = ExperimentRun if kind is None else run_of(kind)
    runs = (cell.run for cell in study.cells.values())
    kinds = dict.fromkeys(each.kind for each in runs if isinstance(each, run))
    return [f"{results(study)}/measured/{each}.json" for each in kinds]


def dedicated(study: Study, of: Cell) -> list[str]:
    """Return the files or folders with the dedicated peaks that the cell `of` needs.

    With one repeat, these are the folders with the raw results of the dedicated peaks. With several
    repeats, there is one file for each dedicated peak, with the records of all its repeats. Fewer
    inputs keep the job graph of a large study small.
    """
    if len(study.repeats(of.preset)) == 1:
        return raw(study, study.dedicated_cells(of))
    return [repeats(study, peak) for peak in study.dedicated_peaks(of)]


def repeats(study: Study, repeated: str) -> str:
    """Return the path of the file with the records of all repeats of a dedicated peak. `repeated`
    is the id of its cells without the repeat number."""
    return f"{results(study)}/repeats/{repeated}.json"


def cell_inputs(study: Study, of: Cell) -> dict[str, list[str]]:
    """Return the input files of the job that measures a cell. The keys are the names of the inputs
    in the Snakemake rule `measure`. The function leaves out inputs without files."""
    found = {
        "repository": repository(study, of.scenario),
        "dedicated": dedicated(study, of),
        "earlier": raw(study, study.earlier_cells(of)),
        **_of_copies(study, of),
        "trace": trace(study) if of.run.takes_arrivals else [],
        "files": experiment_files(of),
        "samples": _served_samples(study, of.scenario),
        "labelled": [
            labelled(study, tenant.model)
            for tenant in study.deployed(of.scenario)
            if of.run.is_survey and study.labelled[tenant.model]
        ],
        "image": image(of.scenario.server),
    }
    return {what: names for what, names in found.items() if names}


def own_files(study: Study, of: Cell) -> list[str]:
    """Return the files of the user that the job of a cell reads, except the image files of
    models."""
    served = [tenant.model for tenant in of.scenario.tenants if study.is_served(tenant)]
    return [
        *(trace(study) if of.run.takes_arrivals else []),
        *experiment_files(of),
        *(file for model in served for file in samples(study, model)),
        *image(of.scenario.server),
    ]


def _served_samples(study: Study, of: Scenario) -> list[str]:
    """Return the user's example files for the models that the server already has.

    For a model that Perseus loads into the server, the job reads the examples from the file with
    the reference responses.
    """
    return [
        file
        for tenant in of.tenants
        if study.is_served(tenant)
        for file in (*samples(study, tenant.model), *study.images[tenant.model])
    ]


def _of_copies(study: Study, of: Cell) -> dict[str, list[str]]:
    """Return the input files from which Perseus predicts the peak of a mix.

    There are three kinds of input files:

    - the results of cells with several copies of one model
    - the dedicated peaks of the copied models
    - the export records of the models, which state the bytes of memory that one inference uses
    """
    cells = study.copies_cells(of)
    if not cells:
        return {}
    alone = dict.fromkeys(file for cell in cells for file in dedicated(study, cell))
    own = dedicated(study, of)
    return {
        "copies": raw(study, cells),
        "copies_dedicated": [file for file in alone if file not in own],
        "checks": _checks(study, study.deployed(of.scenario)),
    }


def checked_tables(study: Study) -> str:
    return f"{results(study)}/tables/checked.json"


def ceilings(study: Study) -> list[str]:
    """Return the files with the measured client ceilings (the highest rates that the client can
    send).

    If a server already has all its models, Perseus does not know the sizes of the requests before
    the measurement, so it measures no client ceiling for this server.
    """
    names = [name for name in study.ceilings if checks(study, name)]
    return [f"{results(study)}/ceilings/{name}.json" for name in names]


def repository(study: Study, of: Scenario) -> list[str]:
    """Return the folder with the Triton repository and the reference responses of a scenario; empty
    if the server already has all models of the scenario."""
    return [f"{model_repository(study)}/{of.id}"] if study.deployed(of) else []


def repositories(study: Study) -> list[str]:
    return [folder for of in study.scenarios.values() for folder in repository(study, of)]


def repository_inputs(study: Study, of: Scenario) -> dict[str, list[str]]:
    """Return the input files of the job that writes a Triton repository. The keys are the names of
    the inputs in the Snakemake rule `repository`. Each input has one file for each tenant whose
    model Perseus loads into the server."""
    deployed = study.deployed(of)
    return {
        "models": [served(study, of.id, tenant.name) for tenant in deployed],
        "checks": [check(study, tenant.model) for tenant in deployed],
        "references": references(study, of),
    }


def served(study: Study, scenario_id: str, tenant_name: str) -> str:
    """Return the path of the model file of a tenant. A job copies this file into the model
    repository."""
    scenario = study.scenarios[scenario_id]
    tenant = scenario.tenant(tenant_name)
    return {
        ONNX: onnx(study, scenario_id, tenant_name),
        PROGRAM: f"{results(study)}/models/{tenant.model}/{PROGRAM}",
        PLAN: f"{results(study)}/plans/{scenario.server.name}/{tenant.name}/{PLAN}",
    }[RUNTIMES[scenario.server.runtime].model_file]


def plans(study: Study, of: Scenario) -> list[str]:
    """Return the paths of the TensorRT plans that the server of a scenario loads; empty for a
    server with another runtime."""
    paths = (served(study, of.id, tenant.name) for tenant in study.deployed(of))
    return [path for path in paths if Path(path).name == PLAN]


def onnx(study: Study, scenario_id: str, tenant_name: str) -> str:
    """Return the path of the ONNX file of a tenant's model, in the precision of the tenant."""
    tenant = study.scenarios[scenario_id].tenant(tenant_name)
    precision = study.precision(tenant)
    converted = f".{precision}" if precision in CONVERTED else ""
    return f"{results(study)}/models/{tenant.model}/model{converted}.onnx"


def check(study: Study, model: str) -> str:
    """Return the path of the export record of a model (check.json). The record contains the
    properties of the network."""
    return f"{results(study)}/models/{model}/check.json"


def all_checks(study: Study) -> list[str]:
    """Return the paths of the export records of all models that Perseus loads into servers."""
    return _checks(study, [t for of in study.scenarios.values() for t in study.deployed(of)])


def surveyed_checks(study: Study) -> list[str]:
    """Return the paths of the export records of all models in surveys. The table `catalogue` shows
    the properties in these records."""
    surveyed = [of for of in study.scenarios.values() if any(run.is_survey for run in of.runs)]
    return _checks(study, [tenant for of in surveyed for tenant in study.deployed(of)])


def _checks(study: Study, of: Iterable[Tenant]) -> list[str]:
    return [check(study, model) for model in dict.fromkeys(tenant.model for tenant in of)]


def checks(study: Study, ceiling: str) -> list[str]:
    """Return the paths of the export records for the measurement of a client ceiling.

    `ceiling` is the name of the measurement. The measurement reads the shapes of the requests from
    the export records.
    """
    names = {
        tenant.model
        for scenario in study.scenarios.values()
        if of_ceiling(scenario.server.name) == ceiling and not scenario.is_survey
        for tenant in study.deployed(scenario)
    }
    return [check(study, name) for name in sorted(names)]


def pictures(study: Study, model: str) -> str:
    """Return the path of the file with the example images of a model (as PNG or JPEG data), and
    with the responses that torch computes for them."""
    return f"{results(study)}/models/{model}/pictures.npz"


def labelled(study: Study, model: str) -> str:
    return f"{results(study)}/models/{model}/labelled.npz"


def reference(study: Study, model: str) -> str:
    """Return the path of the file with the examples of a model and their reference responses."""
    return f"{results(study)}/models/{model}/reference.npz"


def references(study: Study, of: Scenario) -> list[str]:
    """Return, for each tenant whose model Perseus loads into the server, the path of the file with
    the reference responses."""
    return [
        pictures(study, tenant.model) if tenant.preprocessing else reference(study, tenant.model)
        for tenant in study.deployed(of)
    ]


# Files that the configuration names


def labels(study: Study, model: str) -> list[str]:
    """Return the file with the correct classes of a model's images; empty without such a file."""
    folder = study.models[model].images
    return [str(Path(folder, LABELS))] if folder and study.labelled[model] else []


def weights(study: Study, model: str) -> list[str]:
    """Return the state_dict file of a model; empty if the configuration names no file."""
    file = study.models[model].weights_file
    return [file] if file else []


def samples(study: Study, model: str) -> list[str]:
    """Return the user's file with examples for a model; empty if the configuration names none."""
    file = study.models[model].inputs
    return [file] if file else []


def trace(study: Study) -> list[str]:
    """Return the trace file of the arrival process; empty if the configuration names none."""
    source = study.definition.measurement.arrivals.trace
    return [source.file] if source else []


def experiment_files(of: Cell) -> list[str]:
    return list(of.run.files)


def image(server: Server) -> list[str]:
    """Return the path of a server's container image; empty if the image is not a file. The image is
    an input of the job, so Snakemake repeats the job if the image changes."""
    return [server.image_file] if server.image_file else []
