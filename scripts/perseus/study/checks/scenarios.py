"""Check the section `scenarios`: the servers, tenants, experiments and names of the scenarios."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Final

from perseus.study.checks.files import brace_problems
from perseus.study.definition import Definition
from perseus.study.experiments import peak, startup
from perseus.study.hints import meant_or_known
from perseus.study.launchers import LAUNCHERS
from perseus.study.model import Model, Precision
from perseus.study.problems import Place, Problems, duplicates, path
from perseus.study.runtimes import PROGRAM, RUNTIMES
from perseus.study.scenario import ScenarioSettings
from perseus.study.server import Server
from perseus.study.tenant import Tenant

LONGEST_NAME: Final = 240
"""Largest number of characters of a cell's name. A file name can have at most 255 bytes, and some
file names consist of the name of a cell and a suffix."""


def problems(study: Definition, folder: Path) -> Problems:
    yield from duplicates("scenarios", [item.name for item in study.scenarios])
    yield from _tenant_conflicts(study)
    yield from _name_problems(study)
    yield from _repeated_lines(study)
    models = {model.name: model for model in study.models}
    servers = {server.name: server for server in study.servers}
    for i, item in enumerate(study.scenarios):
        at: Place = ("scenarios", i)
        for j, name in enumerate(item.servers):
            if name not in servers:
                hint = meant_or_known(name, list(servers))
                yield (*at, "servers", j), f"{name!r} is not in servers{hint}"
        here = [servers[name] for name in item.servers if name in servers]
        for j, tenant in enumerate(item.tenants):
            yield from tenant_problems((*at, "tenants", j), tenant, models, here)
        for name, count in Counter(tenant.name for tenant in item.tenants).items():
            if count > 1:
                hint = "give each tenant its own `name:`"
                yield (*at, "tenants"), f"{name!r} is the name of {count} tenants ({hint})"
        yield from _experiment_problems((*at, "experiments"), item, here, folder)


def _tenant_conflicts(study: Definition) -> Problems:
    """Yield each tenant that has the same name as an earlier tenant, but other settings.

    Perseus stores the results of a tenant under its name, so tenants with equal names must have
    equal settings.
    """
    used: dict[str, tuple[Place, Tenant]] = {}
    for i, item in enumerate(study.scenarios):
        for j, tenant in enumerate(item.tenants):
            at: Place = ("scenarios", i, "tenants", j)
            first, other = used.setdefault(tenant.name, (at, tenant))
            if other != tenant:
                yield (
                    at,
                    f"the settings of tenant {tenant.name!r} differ from {path(first)}, a tenant"
                    " with the same name (give one of the tenants another `name:`)",
                )


def _name_problems(study: Definition) -> Problems:
    """Yield each shared scenario whose name is also the name of a tenant on the same server.

    Perseus measures each tenant alone, and stores the results under the name of the tenant. A
    shared scenario with the same name would have the same result files.
    """
    dedicated: dict[tuple[str, str], Place] = {}
    for i, item in enumerate(study.scenarios):
        for j, tenant in enumerate(item.tenants):
            for server in item.servers:
                dedicated.setdefault((server, tenant.name), ("scenarios", i, "tenants", j))
    for i, item in enumerate(study.scenarios):
        at: Place = ("scenarios", i, "name")
        taken = [server for server in item.servers if (server, item.name) in dedicated]
        if len(item.tenants) > 1 and taken:
            yield (
                at,
                f"{item.name!r} is also the name of {path(dedicated[taken[0], item.name])}, a"
                f" tenant that Perseus also measures alone on {taken[0]!r} (choose another name)",
            )


def _repeated_lines(study: Definition) -> Problems:
    """Yield each experiment that would overwrite the results of an earlier experiment.

    Perseus joins all scenarios that have the same single tenant on the same server. In such
    scenarios, two experiments with the same name but different settings would have the same result
    files. Perseus does not join scenarios of several tenants.
    """
    known: dict[tuple[str, str, str], tuple[Place, object]] = {}
    alone = [(i, item) for i, item in enumerate(study.scenarios) if len(item.tenants) == 1]
    for i, item in alone:
        for j, experiment in enumerate(item.experiments):
            at: Place = ("scenarios", i, "experiments", j)
            for run, server in product(experiment.runs(), item.servers):
                preset = item.preset or study.measurement.preset
                key, settings = (server, item.result_name, run.name), (run, preset)
                first, other = known.setdefault(key, (at, settings))
                if other != settings:
                    yield (
                        at,
                        f"{run.name!r} of {item.result_name!r} alone on {server!r} differs from"
                        f" {path(first)}, but both experiments would have the same result files"
                        " (give one of the tenants another `name:`)",
                    )


def tenant_problems(
    at: Place, tenant: Tenant, models: Mapping[str, Model], servers: Sequence[Server]
) -> Problems:
    """Yield the problems of a tenant, such as a precision that one of the `servers` of its scenario
    does not support."""
    if tenant.model not in models:
        hint = meant_or_known(tenant.model, list(models))
        yield (*at, "model"), f"{tenant.model!r} is not in models{hint}"
    else:
        yield from _preprocessing_problems(
            (*at, "preprocessing"), tenant, models[tenant.model], servers
        )
        if models[tenant.model].is_served:
            return  # `checks.served_models` rejects settings that the server already has
    for server in servers if tenant.model in models else ():
        key = "model" if tenant.precision is None else "precision"
        precision = tenant.precision or models[tenant.model].precision
        yield from _precision_problems((*at, key), tenant.model, precision, server)
        if (
            RUNTIMES[server.runtime].model_file == PROGRAM
            and not models[tenant.model].is_classifier
        ):
            yield (
                (*at, "model"),
                f"{tenant.model!r} is {_kind(models[tenant.model])}, which runtime"
                f" {server.runtime!r} of server {server.name!r} cannot run (use another runtime)",
            )
        elif (
            RUNTIMES[server.runtime].model_file == PROGRAM
            and server.device == "gpu"
            and models[tenant.model].request == "uint8"
        ):
            yield (
                (*at, "model"),
                f"{tenant.model!r} has request 'uint8', which runtime {server.runtime!r} on the GPU"
                f" server {server.name!r} cannot run (use request 'float32' or another runtime)",
            )
        if tenant.priority is not None and LAUNCHERS[server.launcher].elsewhere:
            yield (
                (*at, "priority"),
                f"server {server.name!r} is remote, but priorities need a server that Perseus"
                " starts (remove this key)",
            )
        elif tenant.priority is not None and (tenant.intra_op_threads or 0) > server.cores:
            yield (
                (*at, "intra_op_threads"),
                f"must be <= {server.cores}, the cores of server {server.name!r}, since this tenant"
                " has a `priority:`",
            )
    if tenant.request_batch_size > tenant.max_batch_size:
        yield (
            (*at, "request_batch_size"),
            f"must be <= `max_batch_size`, which is {tenant.max_batch_size}",
        )
    batching = tenant.dynamic_batching
    if batching and tenant.max_batch_size == 1:
        yield (
            (*at, "dynamic_batching"),
            "dynamic batching joins several requests, but `max_batch_size` is 1 (increase"
            " `max_batch_size:`, or remove `dynamic_batching:`)",
        )
    if batching and any(size > tenant.max_batch_size for size in batching.preferred_batch_sizes):
        yield (
            (*at, "dynamic_batching", "preferred_batch_sizes"),
            f"must be <= `max_batch_size`, which is {tenant.max_batch_size}",
        )


def _preprocessing_problems(
    at: Place, tenant: Tenant, model: Model, servers: Sequence[Server]
) -> Problems:
    if tenant.preprocessing and not model.is_classifier:
        yield (
            at,
            f"{model.name!r} is {_kind(model)}, but Perseus knows the preprocessing only of"
            " classification models of torchvision (remove this key, or give the model another"
            " `architecture:`)",
        )
        return  # the other checks are for classification models
    if tenant.preprocessing != "server":
        return
    if tenant.priority is not None:
        yield (
            at,
            "the `priority:` of the tenant would not apply to the preprocessing on the server"
            " (remove one of the two keys)",
        )
    for server in servers:
        if LAUNCHERS[server.launcher].elsewhere:
            yield (
                at,
                f"server {server.name!r} is remote, and Perseus deploys no preprocessing there"
                " (use `preprocessing: client`, or a server that Perseus starts)",
            )


def _kind(model: Model) -> str:
    if model.is_of_library:
        return f"of {model.architecture}"
    return "a served_model" if model.is_served else "an ONNX file"


def _precision_problems(at: Place, model: str, precision: Precision, server: Server) -> Problems:
    device = server.device
    if precision in RUNTIMES[server.runtime].precisions.get(device, (precision,)):
        return  # another check reports the invalid runtime
    offers = [
        (on, name)
        for name, runtime in RUNTIMES.items()
        for on, known in runtime.precisions.items()
        if precision in known
    ]
    able = [name for on, name in offers if on == device]
    if able:
        yield (
            at,
            f"server {server.name!r} with runtime {server.runtime!r} cannot run {model!r} in"
            f" {precision} (the server needs runtime {' or '.join(able)})",
        )
    else:
        others = sorted({f"device {on} with runtime {name}" for on, name in offers})
        yield (
            at,
            f"server {server.name!r} with device {device!r} cannot run {model!r} in"
            f" {precision} (the server needs {' or '.join(others)})",
        )


def _experiment_problems(
    at: Place, item: ScenarioSettings, servers: Sequence[Server], folder: Path
) -> Problems:
    tenants = [tenant.name for tenant in item.tenants]
    if not item.experiments:  # the default is an experiment `peak`
        for _, text in peak.Settings(kind="peak").problems(tenants):
            yield at, f"is missing ({text})"
    seen: set[str] = set()
    for i, experiment in enumerate(item.experiments):
        for inside, text in experiment.problems(tenants):
            yield (*at, i, *inside), text
        for inside, text in experiment.file_problems(tenants, folder):
            yield (*at, i, *inside), text
        if isinstance(experiment, startup.Settings) and "cold" in experiment.page_cache:
            for server in servers:
                if LAUNCHERS[server.launcher].elsewhere:
                    yield (
                        (*at, i, "page_cache"),
                        f"server {server.name!r} is remote, and Perseus cannot remove files from"
                        " its page cache (remove `cold`)",
                    )
        for run in experiment.runs():
            for file in run.files:
                yield from brace_problems((*at, i), file)
            cells = [cell_name(server, item.result_name, run.name) for server in item.servers]
            yield from cell_name_problems((*at, i), cells, "shorten names, or round numbers")
            if run.name in seen:
                hint = " (give one a `name:`)" if "name" in type(experiment).model_fields else ""
                yield (*at, i), f"{run.name!r} is listed twice in this scenario{hint}"
            seen.add(run.name)


def cell_name(server: str, scenario: str, run: str) -> str:
    """Return the longest name that a cell of this run can have: the name of repeat 100."""
    return f"{server}.{scenario}.{run}.r100"


def cell_name_problems(at: Place, names: Sequence[str], hint: str) -> Problems:
    """Yield a problem if one of the names of cells in `names` is too long for a file name."""
    longest = max(names, key=len, default="")
    if len(longest) > LONGEST_NAME:
        yield (
            at,
            f"the folder of a result would have a name of {len(longest)} characters, more than"
            f" {LONGEST_NAME}: {longest[:60]}... ({hint})",
        )
