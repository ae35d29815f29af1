"""Check the settings of models that are already on a server (key `served_model:`), and their
servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from perseus.study.definition import Definition
from perseus.study.launchers import LAUNCHERS
from perseus.study.model import Model
from perseus.study.problems import Place, Problems, path
from perseus.study.scenario import ScenarioSettings
from perseus.study.server import Server
from perseus.study.tenant import Tenant

OF_THE_SERVER = (
    "precision",
    "instances",
    "max_batch_size",
    "dynamic_batching",
    "priority",
    "intra_op_threads",
)
"""Keys of a tenant that configure how the server executes its model. A tenant must not have these
keys if the server already has its model."""

Served = tuple[Place, Tenant, Model]
"""A tenant whose model the server already has, as three values: the place of the tenant in the
configuration, the tenant, and the model."""


def problems(study: Definition) -> Problems:
    models = {model.name: model for model in study.models}
    servers = {server.name: server for server in study.servers}
    for i, item in enumerate(study.scenarios):
        served = list(_served(("scenarios", i), item, models))
        here = [servers[name] for name in item.servers if name in servers]
        for at, tenant, model in served:
            yield from _tenant_problems(at, tenant, model, here)
        yield from _named_twice(served)
        if served:
            yield from _experiment_problems(("scenarios", i, "experiments"), item, served[0][1])
            yield from _grid_problems(("scenarios", i, "grid"), item, served[0][2])
    yield from _other_model_problems(study, models)


def _served(at: Place, item: ScenarioSettings, models: Mapping[str, Model]) -> Iterator[Served]:
    for j, tenant in enumerate(item.tenants):
        model = models.get(tenant.model)
        if model is not None and model.is_served:
            yield (*at, "tenants", j), tenant, model


def _tenant_problems(at: Place, tenant: Tenant, model: Model, servers: list[Server]) -> Problems:
    for server in servers:
        if not LAUNCHERS[server.launcher].elsewhere:
            yield (
                (*at, "model"),
                f"{model.name!r} has `served_model:`, but server {server.name!r} starts with"
                f" launcher {server.launcher!r} (use a server with `launcher: remote`, or `onnx:`"
                " in place of `served_model:`)",
            )
    for key in OF_THE_SERVER:
        if key in tenant.model_fields_set:
            yield (
                (*at, key),
                f"does not apply to {model.served_model!r}, a model that the server already has"
                " (remove this key)",
            )


def _named_twice(served: list[Served]) -> Problems:
    """Yield each tenant that uses the same model of the server as an earlier tenant of the
    scenario. The server's statistics do not distinguish such tenants."""
    first: dict[str | None, Place] = {}
    for at, _, model in served:
        if first.setdefault(model.served_model, at) != at:
            yield (
                (*at, "model"),
                f"{model.served_model!r} is also the model of {path(first[model.served_model])},"
                " but the statistics of the server do not distinguish two tenants with the same"
                " model (remove one of the two tenants)",
            )


def _experiment_problems(at: Place, item: ScenarioSettings, served: Tenant) -> Problems:
    for i, experiment in enumerate(item.experiments):
        if experiment.starts_servers:
            yield (
                (*at, i),
                f"{experiment.kind!r} restarts the server, but Perseus cannot restart the server of"
                f" {served.name!r} (remove the experiment)",
            )


def _grid_problems(at: Place, item: ScenarioSettings, model: Model) -> Problems:
    if item.grid is not None:
        yield (
            at,
            f"cannot vary the settings of {model.served_model!r}, a model that the server already"
            " has (remove `grid:`)",
        )


def _other_model_problems(study: Definition, models: Mapping[str, Model]) -> Problems:
    """Yield each remote server on which the study uses both a model that the server already has and
    a model that Perseus loads. Such a server needs `other_models: allow`."""
    for i, server in enumerate(study.servers):
        if server.remote is None or server.remote.other_models == "allow":
            continue
        tenants = [
            tenant.model
            for item in study.scenarios
            if server.name in item.servers
            for tenant in item.tenants
            if tenant.model in models
        ]
        served = [name for name in tenants if models[name].is_served]
        deployed = [name for name in tenants if not models[name].is_served]
        if served and deployed:
            yield (
                ("servers", i, "remote", "other_models"),
                f"must be `allow`, since Perseus loads {deployed[0]!r} beside {served[0]!r}, which"
                " the server already has (or use another server for one of the two models)",
            )
