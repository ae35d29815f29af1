"""Replace each model with the key `architectures` (a list of patterns) by several models: one for
each architecture that matches a pattern. Also replace each scenario with such a model by several
scenarios: one for each new model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perseus.study.architectures import default_weights, matching
from perseus.study.definition import Definition
from perseus.study.hints import meant_or_known
from perseus.study.model import Model
from perseus.study.problems import Problems
from perseus.study.scenario import ScenarioSettings
from perseus.study.setting import MARK
from perseus.study.tenant import Tenant


def with_each(study: Definition) -> Definition:
    """Return the definition in which each selected architecture has its own model and scenarios."""
    each = {model.name: _models(model) for model in study.models if model.architectures}
    if not each:
        return study
    made = {
        "models": tuple(model for _, model in _all_models(study)),
        "scenarios": tuple(new for item in study.scenarios for new in _scenarios(item, each)),
    }
    return study.model_copy(update=made)


def configured(study: Definition, problems: Problems) -> Problems:
    """Convert problems of the definition `with_each(study)` into problems of `study`.

    The user wrote `study`. In the places and the texts of the problems, the function writes the
    indices that models and scenarios have in `study`.
    """
    each = {model.name: _models(model) for model in study.models if model.architectures}
    origins = {
        "models": [i for i, _ in _all_models(study)],
        "scenarios": [i for i, item in enumerate(study.scenarios) for _ in _scenarios(item, each)],
    }
    texts = {f"{key}[{i}]": f"{key}[{at}]" for key in origins for i, at in enumerate(origins[key])}
    for place, text in problems:
        match place:
            case (str(section), int(i), *rest) if section in origins:
                place = (section, origins[section][i], *rest)
        yield place, re.sub(r"(?<![\w./'])\w+\[\d+\]", lambda of: texts.get(of[0], of[0]), text)


def problems(study: Definition) -> Problems:
    """Yield the problems of models with the key `architectures`, and of scenarios with such
    models."""
    many = {model.name for model in study.models if model.architectures}
    for i, model in enumerate(study.models):
        for pattern in _patterns(model):
            if not matching((pattern,)):
                hint = meant_or_known(pattern, list(default_weights()))
                yield ("models", i, "architectures"), f"no architecture matches {pattern!r}{hint}"
        if model.architectures and (model.onnx or model.is_served or model.weights_file):
            yield (
                ("models", i, "architectures"),
                "applies to models of torchvision only, but this model has `onnx:`, `served_model:`"
                " or a file as `weights:` (remove one of the keys)",
            )
        if model.architectures and "architecture" in model.model_fields_set:
            text = "`architectures:` also names networks (remove one of the two keys)"
            yield ("models", i, "architecture"), text
    several = {m.name for m in study.models if m.architectures and len(_models(m)) > 1}
    for i, item in enumerate(study.scenarios):
        for j, tenant in enumerate(item.tenants):
            if tenant.model in several and tenant.model not in tenant.name:
                yield (
                    ("scenarios", i, "tenants", j, "name"),
                    f"must contain {tenant.model!r}, which Perseus replaces by each architecture"
                    f" (such as {tenant.model}_{tenant.name})",
                )
        if len(item.tenants) > 1 and many & {tenant.model for tenant in item.tenants}:
            yield (
                ("scenarios", i, "tenants"),
                "the scenario has several tenants, but a model with `architectures:` must be the"
                " only tenant (move this tenant into a scenario of its own)",
            )


def _patterns(model: Model) -> tuple[str, ...]:
    named = model.architectures
    return named if isinstance(named, tuple) else ()


def _models(model: Model) -> list[Model]:
    assert model.architectures is not None
    return [
        model.model_copy(update={"name": name, "architecture": name, "architectures": None})
        for name in matching(model.architectures)
    ]


def _all_models(study: Definition) -> list[tuple[int, Model]]:
    """Return the models of `with_each(study)`, each with the index of its origin in `study`."""
    found = [(i, model) for i, model in enumerate(study.models) if not model.architectures]
    for i, given in enumerate(study.models):
        for model in _models(given) if given.architectures else ():
            if all(model != known for _, known in found):
                found.append((i, model))
    return sorted(found, key=lambda pair: pair[0])


def _scenarios(item: ScenarioSettings, each: dict[str, list[Model]]) -> Iterator[ScenarioSettings]:
    (first, *_) = item.tenants
    if first.model not in each:
        yield item
        return
    for model in each[first.model]:
        # If several scenarios have the same model, their tenants have equal names.
        name, tenant = f"{item.name}{MARK}{model.name}", _of(first, model)
        yield item.model_copy(update={"name": name, "tenants": (tenant,)})


def _of(tenant: Tenant, model: Model) -> Tenant:
    """Return the tenant with `model` in place of its own model. The name of `model` also replaces
    the name of the old model in the name of the tenant: the tenant `each_b8` of the model `each`
    becomes `resnet50_b8` for the model `resnet50`."""
    name = tenant.name.replace(tenant.model, model.name, 1)
    return tenant.model_copy(update={"model": model.name, "name": name})
