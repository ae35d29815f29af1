"""Read a study from its configuration: check it, fill in the defaults, build the entities."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from perseus.study.entities import (
    DEDICATED,
    ClientSpec,
    HeaderSpec,
    LoadLineSpec,
    Model,
    Price,
    Remote,
    Scenario,
    Server,
    Study,
    Tenant,
)
from perseus.study.image_files import image_files
from perseus.study.presets import PRESETS
from perseus.study.schema_problems import form_problems
from perseus.study.validation import ConfigError, meaning_problems

__all__ = ["ConfigError", "load_study", "read_prices", "read_schema"]

Json = Any


def load_study(raw: Mapping[str, Json], root: Path) -> Study:
    """The study that `raw` describes; paths in it are relative to `root`, the repository.

    Raises ConfigError with all problems found.
    """
    schema, prices = read_schema(root), read_prices(root / "config" / "prices.csv")
    full = with_defaults(raw, schema)
    problems = [*form_problems(raw, schema), *meaning_problems(full, root, prices)]
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))
    return _study(full, root, prices)


def read_schema(root: Path) -> dict[str, Json]:
    """The schema of a study, JSON Schema 2020-12 with a description of every key."""
    return yaml.safe_load((root / "config" / "schema.yaml").read_text())


def read_prices(path: Path) -> list[Price]:
    """The machines of the price table that have an on-demand price, in USD per hour.

    Raises ConfigError for a price that is not a number and for a missing column.
    """
    prices, problems = [], []
    with path.open(newline="") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            try:
                if row["InstanceType"] and row["Price"]:
                    prices.append(_price(row))
            except KeyError as error:
                raise ConfigError([f"config/prices.csv: has no column {error}"]) from None
            except ValueError as error:
                problems.append(f"config/prices.csv line {line}: {error} (USD per hour)")
    if problems:
        raise ConfigError(problems)
    return prices


def _price(row: Mapping[str, str]) -> Price:
    """Raises ValueError for a price that is not a number above 0."""
    return Price(
        instance=row["InstanceType"],
        region=row["Region"],
        on_demand_usd_per_hour=_above_zero(row["Price"]),
        spot_usd_per_hour=_above_zero(row["SpotPrice"]) if row["SpotPrice"] else None,
        source=row["Source"],
    )


def _above_zero(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError(f"a price must be above 0, not {text}")
    return value


def with_defaults(value: Json, schema: Mapping[str, Json]) -> Json:
    """A copy of `value` in which every absent key that has a default has it.

    Numbers get the type that the schema names, so that 100 and 100.0 are one configuration. What
    does not fit the schema stays as it is.
    """
    if isinstance(value, Mapping):
        filled = dict(value)
        for key, part in schema.get("properties", {}).items():
            if key in filled or "default" in part:
                filled[key] = with_defaults(filled.get(key, part.get("default")), part)
        return filled
    if isinstance(value, list):
        return [with_defaults(item, schema.get("items", {})) for item in value]
    if schema.get("type") == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if schema.get("type") == "number" and type(value) is int:
        return float(value)
    return value


def _study(full: Mapping[str, Json], root: Path, prices: Sequence[Price]) -> Study:
    servers = {item["name"]: _server(item, prices) for item in full["servers"]}
    measurement = full["measurement"]
    return Study(
        name=full["study"],
        seed=full["seed"],
        models=tuple(_model(item, root) for item in full["models"]),
        scenarios=tuple(_scenarios(full["scenarios"], servers)),
        precision=measurement["precision"],
        repeats=measurement.get("repeats", PRESETS[measurement["precision"]].repeats),
        arrivals=measurement["arrivals"]["process"],
        arrivals_cv=measurement["arrivals"].get("cv", 1.0),
        arrivals_trace=measurement["arrivals"].get("trace"),
        client=_client(measurement["client"]),
        pricing=tuple(full["costs"]["pricing"]),
        figure_style=tuple(sorted(full["figures"].items())),
    )


def _client(item: Mapping[str, Json]) -> ClientSpec:
    processes = item["processes"]
    return ClientSpec(
        protocol=item["protocol"],
        shared_memory=item["shared_memory"],
        processes=None if processes == "auto" else int(processes),
    )


def _model(item: Mapping[str, Json], root: Path) -> Model:
    folder = item.get("images")
    return Model(
        name=item["name"],
        architecture=item.get("architecture", item["name"]),
        weights=item["weights"],
        input_size=item.get("input_size"),
        images=tuple(f"{Path(folder, path.name)}" for path in image_files(root / folder))
        if folder
        else (),
        precision=item["precision"],
        sla_percentile=item["sla"]["percentile"],
        sla_ms=item["sla"]["latency_ms"],
    )


def _server(item: Mapping[str, Json], prices: Sequence[Price]) -> Server:
    wanted = (item["price"]["instance"], item["price"]["region"])
    return Server(
        name=item["name"],
        device=item["device"],
        launcher=item["launcher"],
        runtime=item["runtime"],
        cores=item["cores"],
        price=next(row for row in prices if (row.instance, row.region) == wanted),
        image=item.get("image"),
        gpus=tuple(item.get("gpus", ())),
        remote=_remote(item["remote"]) if "remote" in item else None,
    )


def _remote(item: Mapping[str, Json]) -> Remote:
    host = f"[{item['host']}]" if ":" in item["host"] else item["host"]
    return Remote(
        host=item["host"],
        grpc=item.get("grpc", f"{host}:8001"),
        http=item.get("http", f"{host}:8000"),
        metrics=item.get("metrics", f"http://{host}:8002/metrics"),
        tls=item["tls"],
        headers=tuple(HeaderSpec(**header) for header in item["headers"]),
        foreign_models=item["foreign_models"],
        client_cores=item["client_cores"],
    )


def _scenarios(
    items: Sequence[Mapping[str, Json]], servers: Mapping[str, Server]
) -> Iterator[Scenario]:
    """The scenarios on each of their servers, and before them the dedicated ones that they need."""
    dedicated: dict[tuple[str, str], Scenario] = {}
    shared: list[Scenario] = []
    for item in items:
        lines = tuple(line for exp in item.get("experiments", []) for line in _lines(exp))
        for server in (servers[name] for name in item["servers"]):
            tenants = tuple(_tenant(tenant, server) for tenant in item["tenants"])
            for tenant in tenants:
                alone = Scenario(tenant.name, server, (tenant,), (DEDICATED,))
                dedicated.setdefault((server.name, tenant.name), alone)
            if len(tenants) > 1:
                shared.append(Scenario(item["name"], server, tenants, lines))
            elif lines:
                key = (server.name, tenants[0].name)
                dedicated[key] = replace(dedicated[key], lines=(DEDICATED, *lines))
    yield from dedicated.values()
    yield from shared


def _tenant(item: Mapping[str, Json], server: Server) -> Tenant:
    batching = item.get("dynamic_batching")
    return Tenant(
        name=item.get("name", item["model"]),
        model=item["model"],
        instances=item["instances"],
        max_batch_size=item["max_batch_size"],
        request_batch_size=item["request_batch_size"],
        max_queue_delay_us=batching["max_queue_delay_us"] if batching is not None else None,
        preferred_batch_sizes=tuple(batching["preferred_batch_sizes"])
        if batching is not None
        else (),
        priority=item.get("priority"),
        intra_op_threads=item.get("intra_op_threads", server.cores),
    )


def _lines(experiment: Mapping[str, Json]) -> Iterator[LoadLineSpec]:
    for mix in experiment.get("mixes", []):
        yield LoadLineSpec.mix(mix)
    for percent in experiment.get("percents_of_peak", []):
        yield LoadLineSpec.hold(experiment["hold"], percent)
    if "concurrencies" in experiment:
        yield LoadLineSpec.concurrency(experiment["concurrencies"])
