"""What the parts of a configuration say about each other: every problem, its place and a hint."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perseus.study.devices import device_problems, precision_problems
from perseus.study.entities import LoadLineSpec, Price
from perseus.study.named_files import images_problems, trace_problems, weights_problems
from perseus.study.remote_config import priority_problems, remote_problems
from perseus.study.schema_problems import did_you_mean

Json = Any
Items = Sequence[tuple[str, dict[str, Json]]]  # (place, item) of a list of the configuration
LOCAL_LAUNCHERS = {"embedded", "apptainer"}  # whose servers share the memory of this host
CONTAINER_LAUNCHERS = {"docker", "podman", "apptainer"}  # whose servers come from an image


class ConfigError(ValueError):
    """The configuration cannot be used; `problems` has one line for each reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = "\n".join(f"  - {problem}" for problem in problems)
        super().__init__(f"The configuration has {count}:\n{lines}")


def meaning_problems(full: Json, root: Path, prices: Sequence[Price]) -> Iterator[str]:
    """Works on whatever is well-formed, so that one run shows problems of both kinds.

    `full` is the configuration with its defaults, `root` the folder that its paths start from.
    """
    models, servers, scenarios = (_named(full, key) for key in ("models", "servers", "scenarios"))
    for items in (models, servers, scenarios):
        yield from _duplicates(items)
    yield from _model_problems(models, root)
    yield from _price_problems(servers, prices)
    yield from _image_problems(servers)
    yield from device_problems(servers)
    yield from remote_problems(servers, root)
    yield from _client_problems(full, servers)
    yield from _unused(models, scenarios)
    yield from _tenant_conflicts(scenarios)
    yield from _scenario_names(scenarios)
    for at, scenario in scenarios:
        yield from _tenant_problems(at, scenario, _by_name(models), _by_name(servers))
        yield from _experiment_problems(at, scenario)
    yield from _arrivals_problems(full, root)


def _named(full: Json, key: str) -> Items:
    """(place, item) of the items of a list of the configuration that have a name."""
    items = full.get(key) if isinstance(full, Mapping) else None
    return [
        (f"{key}[{i}]", item)
        for i, item in enumerate(items if isinstance(items, list) else [])
        if isinstance(item, dict) and isinstance(item.get("name"), str)
    ]


def _by_name(items: Items) -> dict[str, dict[str, Json]]:
    return {item["name"]: item for _, item in items}


def _tenants(at: str, scenario: Mapping[str, Json]) -> Items:
    """(place, tenant) of the tenants of a scenario that have a model; the name is filled in."""
    tenants = scenario.get("tenants")
    return [
        (f"{at}.tenants[{i}]", {"name": tenant["model"], **tenant})
        for i, tenant in enumerate(tenants if isinstance(tenants, list) else [])
        if isinstance(tenant, dict)
        and isinstance(tenant.get("model"), str)
        and isinstance(tenant.get("name", ""), str)
    ]


def _strings(value: Json) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _numbers(value: Json) -> list[int]:
    return [item for item in value if isinstance(item, int)] if isinstance(value, list) else []


def _duplicates(items: Items) -> Iterator[str]:
    first: dict[str, str] = {}
    for at, item in items:
        if item["name"] in first:
            yield f"{at}.name: {item['name']!r} is already the name of {first[item['name']]}"
        first.setdefault(item["name"], at)


def _model_problems(models: Items, root: Path) -> Iterator[str]:
    known = sorted(architectures())
    for at, model in models:
        key = "architecture" if "architecture" in model else "name"
        architecture = model[key]
        if known and isinstance(architecture, str) and architecture not in known:
            hint = did_you_mean(architecture, known)
            hint = hint or " (set architecture: to the name of a torchvision model)"
            yield f"{at}.{key}: {architecture!r} is not a torchvision classification model{hint}"
        yield from weights_problems(at, model, root)
        yield from images_problems(at, model, root)


def architectures() -> set[str]:
    """The names of torchvision's classification models, read without importing torch.

    Empty when torchvision is not installed here.
    """
    spec = importlib.util.find_spec("torchvision")
    if spec is None or not spec.submodule_search_locations:
        return set()
    found: set[str] = set()
    for path in Path(spec.submodule_search_locations[0], "models").glob("*.py"):
        text = path.read_text()
        found.update(re.findall(r"@register_model\(\).*?\ndef (\w+)\(", text, re.DOTALL))
    return found


def _price_problems(servers: Items, prices: Sequence[Price]) -> Iterator[str]:
    for at, server in servers:
        price = server.get("price")
        if not isinstance(price, dict) or not {"instance", "region"} <= price.keys():
            continue
        instance, region = str(price["instance"]), str(price["region"])
        regions = [row.region for row in prices if row.instance == instance]
        if not regions:
            hint = did_you_mean(instance, [row.instance for row in prices])
            hint = hint or " (add a row, or take an InstanceType that is there)"
            yield f"{at}.price.instance: {instance!r} is not in config/prices.csv{hint}"
        elif region not in regions:
            known = ", ".join(regions)
            yield f"{at}.price.region: {instance!r} has no price in {region!r} (known: {known})"


def _image_problems(servers: Items) -> Iterator[str]:
    for at, server in servers:
        launcher = str(server.get("launcher"))
        if launcher in CONTAINER_LAUNCHERS and "image" not in server:
            yield (
                f"{at}.image: is missing: launcher {launcher!r} starts a container of it (such as"
                " nvcr.io/nvidia/tritonserver:24.10-py3)"
            )
        if "image" in server and launcher in ("embedded", "remote"):
            known = ", ".join(sorted(CONTAINER_LAUNCHERS))
            yield f"{at}.image: is of the launchers {known} only, and launcher is {launcher!r}"
        scheme, _, rest = str(server.get("image")).rpartition("://")
        if launcher in ("docker", "podman") and scheme:
            yield f"{at}.image: {launcher} takes names without '://' (say {rest!r})"
        if launcher == "apptainer" and scheme not in ("", "docker", "oras", "library"):
            yield f"{at}.image: apptainer's are a path, docker://, oras:// or library://"


def _client_problems(full: Json, servers: Items) -> Iterator[str]:
    measurement = full.get("measurement") if isinstance(full, Mapping) else None
    client = measurement.get("client") if isinstance(measurement, Mapping) else None
    if not isinstance(client, Mapping) or client.get("shared_memory") is not True:
        return
    for at, server in servers:
        if isinstance(server.get("launcher"), str) and server["launcher"] not in LOCAL_LAUNCHERS:
            yield (
                f"measurement.client.shared_memory: the server of {at}, launcher"
                f" {server['launcher']!r}, is not on this host or does not share its memory (set it"
                " to false)"
            )


def _unused(models: Items, scenarios: Items) -> Iterator[str]:
    served = {tenant["model"] for at, item in scenarios for _, tenant in _tenants(at, item)}
    for at, model in models:
        if scenarios and model["name"] not in served:
            yield f"{at}: no scenario serves {model['name']!r} (add it to a scenario's tenants)"


def _tenant_conflicts(scenarios: Items) -> Iterator[str]:
    """A tenant's name stands for one set of settings: its dedicated peak is measured under it."""
    used: dict[str, tuple[str, Json]] = {}
    for at, scenario in scenarios:
        for place, tenant in _tenants(at, scenario):
            first, other = used.setdefault(tenant["name"], (place, tenant))
            if other != tenant:
                yield (
                    f"{place}: {tenant['name']!r} has other settings than {first}"
                    " (give it a name: of its own)"
                )


def _scenario_names(scenarios: Items) -> Iterator[str]:
    """A dedicated scenario is named after its tenant, so no shared one on its server may be."""
    dedicated: dict[tuple[str, str], str] = {}
    for at, scenario in scenarios:
        for place, tenant in _tenants(at, scenario):
            for server in _strings(scenario.get("servers")):
                dedicated.setdefault((server, tenant["name"]), place)
    for at, scenario in scenarios:
        name, tenants = scenario["name"], _tenants(at, scenario)
        if len(tenants) == 1 and name != tenants[0][1]["name"]:
            yield (
                f"{at}.name: {name!r} has one tenant, {tenants[0][1]['name']!r}, and is named"
                " after it (use that name, or give the tenant this name:)"
            )
        for server in _strings(scenario.get("servers")) if len(tenants) > 1 else ():
            if (server, name) in dedicated:
                yield (
                    f"{at}.name: {name!r} is the name of {dedicated[server, name]}, which is"
                    f" also measured alone on {server!r} (choose another name)"
                )
                break


def _tenant_problems(
    at: str,
    scenario: Mapping[str, Json],
    models: Mapping[str, dict[str, Json]],
    servers: Mapping[str, dict[str, Json]],
) -> Iterator[str]:
    tenants, names = _tenants(at, scenario), _strings(scenario.get("servers"))
    for i, name in enumerate(names):
        if name not in servers:
            hint = did_you_mean(name, list(servers)) or f" (known: {', '.join(servers)})"
            yield f"{at}.servers[{i}]: {name!r} is not in servers{hint}"
    for place, tenant in tenants:
        model = tenant["model"]
        if model not in models:
            hint = did_you_mean(model, list(models)) or f" (known: {', '.join(models)})"
            yield f"{place}.model: {model!r} is not in models{hint}"
        else:
            for server in (servers[name] for name in names if name in servers):
                yield from precision_problems(place, models[model], server)
                yield from priority_problems(place, tenant, server)
        batching, largest = tenant.get("dynamic_batching"), tenant.get("max_batch_size")
        sizes = batching.get("preferred_batch_sizes") if isinstance(batching, dict) else None
        asked = tenant.get("request_batch_size")
        if isinstance(largest, int) and isinstance(asked, int) and asked > largest:
            yield (f"{place}.request_batch_size: must be <= max_batch_size, which is {largest}")
        if isinstance(largest, int) and any(size > largest for size in _numbers(sizes)):
            place = f"{place}.dynamic_batching.preferred_batch_sizes"
            yield f"{place}: must be <= max_batch_size, which is {largest}"
    for name, count in Counter(tenant["name"] for _, tenant in tenants).items():
        if count > 1:
            hint = "give each tenant a name: of its own"
            yield f"{at}.tenants: {name!r} appears {count} times ({hint})"


def _experiment_problems(at: str, scenario: Mapping[str, Json]) -> Iterator[str]:
    tenants = [tenant["name"] for _, tenant in _tenants(at, scenario)]
    experiments = scenario.get("experiments")
    if experiments is None and len(tenants) > 1:
        yield f"{at}.experiments: is missing (a shared scenario needs mixes: or hold:)"
    seen: set[str] = set()
    for i, experiment in enumerate(experiments if isinstance(experiments, list) else []):
        place = f"{at}.experiments[{i}]"
        if not isinstance(experiment, dict):
            continue
        lines = {"mixes", "hold"} & experiment.keys()
        if experiment.get("kind") == "concurrency":
            yield from _concurrency_problems(place, experiment)
            lines = {"concurrency"}
        elif "concurrencies" in experiment:
            yield f"{place}.concurrencies: is of kind: concurrency only"
        if len(tenants) > 1 and not lines:
            yield f"{place}: a shared scenario needs mixes: or hold:"
        if len(tenants) == 1 and {"mixes", "hold"} & lines:
            yield f"{place}: mixes: and hold: need at least two tenants"
        if len(lines) == 2:
            yield f"{place}: has both mixes: and hold: (make them two experiments)"
        if ("hold" in experiment) != ("percents_of_peak" in experiment):
            yield f"{place}: hold: and percents_of_peak: go together"
        hold = experiment.get("hold")
        if isinstance(hold, str) and hold not in tenants:
            hint = did_you_mean(hold, tenants) or f" (known: {', '.join(tenants)})"
            yield f"{place}.hold: {hold!r} is not a tenant of this scenario{hint}"
        yield from _mix_problems(place, experiment.get("mixes"), len(tenants))
        for name in _line_names(experiment):
            if name in seen:
                yield f"{place}: the load line {name!r} is listed twice"
            seen.add(name)


def _concurrency_problems(place: str, experiment: Mapping[str, Json]) -> Iterator[str]:
    if "concurrencies" not in experiment:
        yield f"{place}.concurrencies: is missing (a list such as [1, 4, 16])"
    for key in sorted({"mixes", "hold", "percents_of_peak"} & experiment.keys()):
        yield f"{place}.{key}: is of kind: peak only"


def _mix_problems(place: str, mixes: Json, tenants: int) -> Iterator[str]:
    for j, mix in enumerate(mixes if isinstance(mixes, list) else []):
        if isinstance(mix, list) and len(mix) != tenants:
            yield f"{place}.mixes[{j}]: has {len(mix)} numbers for {tenants} tenants"
        elif isinstance(mix, list) and not any(mix):
            yield f"{place}.mixes[{j}]: at least one number must be above 0"


def _arrivals_problems(full: Json, root: Path) -> Iterator[str]:
    measurement = full.get("measurement") if isinstance(full, Mapping) else None
    arrivals = measurement.get("arrivals") if isinstance(measurement, Mapping) else None
    if not isinstance(arrivals, Mapping):
        return
    at, process = "measurement.arrivals", arrivals.get("process")
    for key, only in (("cv", "gamma"), ("trace", "trace")):
        if key in arrivals and process != only:
            yield f"{at}.{key}: is of process: {only} only, and process is {process!r}"
    if process == "trace" and "trace" not in arrivals:
        yield f"{at}.trace: is missing (a file with one arrival time in seconds per line)"
    yield from trace_problems(at, arrivals, root)


def _line_names(experiment: Mapping[str, Json]) -> Iterator[str]:
    mixes = experiment.get("mixes")
    for mix in mixes if isinstance(mixes, list) else []:
        weights = _numbers(mix)
        if weights:
            yield LoadLineSpec.mix(weights).name
    for percent in _numbers(experiment.get("percents_of_peak")):
        yield LoadLineSpec.hold(str(experiment.get("hold")), percent).name
    if experiment.get("kind") == "concurrency":
        yield LoadLineSpec.concurrency([]).name
