"""Validate the keys of a configuration: their names, the types of their values, and the bounds.

This module replaces each invalid value by a stand-in (a valid value), so that later checks can find
more problems in the same run.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import ValidationError

from perseus.study.base import NAME
from perseus.study.definition import Definition
from perseus.study.experiments import KINDS, settings_of
from perseus.study.hints import closest, did_you_mean, meant_or_known
from perseus.study.model import MODEL_OF_SERVER
from perseus.study.problems import Place, path
from perseus.study.remote import ADDRESS, HOST
from perseus.study.server import IMAGE
from perseus.study.stand_ins import stands_in

Json = Any
ROUNDS = 5

PATTERNS = {
    NAME: "a name (use letters, digits, '-' and '_', at most 64, beginning with a letter or digit)",
    IMAGE: "an image (use letters, digits and ./_:@+- only, not beginning with '-')",
    ADDRESS: "valid here (use host:port)",
    HOST: "valid here (use a name or an IP address; ports belong to grpc: and http:)",
    MODEL_OF_SERVER: "the name of a model (use letters, digits, '_', '.' and '-')",
}


def validated(raw: Json) -> tuple[Definition | None, list[str], list[Place]]:
    """Return the definition of a study, the problems, and the places of stand-ins.

    A stand-in is a valid value that replaces an invalid value. Later checks can then run, and the
    user sees all problems at once. The stand-in is a similar allowed value, an example value from
    the schema, or the default value of the key. In a list of servers, the stand-in is a name that
    no server has. If stand-ins cannot make the configuration valid, the definition is None.
    """
    if not isinstance(raw, Mapping):
        return None, [f"the configuration: must be a mapping (key: value), not {_short(raw)}"], []
    problems, stand_ins = dict[str, None](), list[Place]()
    for place, key in _not_text((), raw):
        problems |= {f"{path(place)}, {_quoted(key)}": None}
    raw = _of_text(raw)
    value = copy.deepcopy(raw)
    for place in _left_empty((), raw, raw):
        problems |= {f"{path(place)}: must have a value, or be left out": None}
    for _ in range(ROUNDS):
        try:
            return Definition.model_validate(value), list(problems), stand_ins
        except ValidationError as error:
            # Report no error at a stand-in of an earlier round, because the user did not write the
            # stand-in.
            found = [(place_of(e["loc"], value), e) for e in error.errors()]
            for place, each in sorted(found, key=lambda pair: [*map(str, pair[0])]):
                if not (stands_in(place, stand_ins) or _repeats_one(each, place, raw, stand_ins)):
                    problems |= dict.fromkeys(_explain(place, each, value))
            for place, each in found:
                if (changed := _repair(value, place, each["type"])) is not None:
                    stand_ins.append(changed)
    return None, list(problems), stand_ins


def _repeats_one(error: Json, place: Place, raw: Json, stand_ins: Sequence[Place]) -> bool:
    """Return whether a list contains a duplicate item only because of a stand-in."""
    if error["type"] != "twice" or not any(each[: len(place)] == place for each in stand_ins):
        return False
    return [repr(item) for item in _at(raw, place)].count(error["ctx"]["value"]) < 2


def place_of(loc: Sequence[str | int], raw: Json) -> Place:
    """Convert the place of a pydantic error (`loc`) into a place in the configuration `raw`.

    A `loc` can contain two parts that are not keys in the configuration: the kind of an experiment,
    and the branch of a union. The function removes these parts.
    """
    place: list[str | int] = []
    at: Json = raw
    for before, part in zip(("", *loc), loc, strict=False):
        is_experiment = isinstance(before, int) and place[-2:-1] == ["experiments"]
        if is_experiment and isinstance(at, Mapping) and part == at.get("kind"):
            continue  # omit the kind, but not a key with the name of a kind
        if isinstance(part, str) and not isinstance(at, Mapping):
            break  # this part is the branch of a union
        place.append(part)
        at = _inside(at, part)
    return tuple(place)


def _inside(value: Json, part: str | int) -> Json:
    if isinstance(value, Mapping):
        return value.get(part)
    return value[part] if isinstance(value, list) and isinstance(part, int) else None


def _at(raw: Json, place: Place) -> Json:
    for part in place:
        raw = _inside(raw, part)
    return raw


class DefinitionSchema:
    """JSON schema of the configuration of a study. The methods find the part of the schema that
    describes a given place in a configuration."""

    def __init__(self, schema: dict[str, Json]) -> None:
        self._root = schema

    def may_be_null(self, place: Place, raw: Json) -> bool:
        return {"type": "null"} in self._part(place, raw).get("anyOf", [])

    def at(self, place: Place, raw: Json) -> dict[str, Json]:
        """Return the part of the schema that describes a place in the configuration `raw`; empty if
        the schema has no such key."""
        part = self._part(place, raw)
        resolved = self._resolved(part, _at(raw, place))
        # A description beside a reference describes the key, not the referenced part.
        own = {key: value for key, value in part.items() if key not in ("$ref", "anyOf")}
        return part if resolved is part else resolved | own

    def _part(self, place: Place, raw: Json) -> dict[str, Json]:
        """Return the part of the schema for a place. The part may be a reference (`$ref`)."""
        part = self._root
        for i, step in enumerate(place):
            part = self._resolved(part, _at(raw, place[:i]))
            if isinstance(step, int):
                part = part.get("items", {})
            else:  # all keys that the user may name freely have the same part
                of_any = part.get("additionalProperties") or {}
                part = part.get("properties", {}).get(step, of_any)
        return part

    def _resolved(self, part: dict[str, Json], value: Json) -> dict[str, Json]:
        """Return the part of the schema to which `part` refers, or `part` itself. If `part`
        describes an experiment, return the schema of the kind of experiment that `value` names."""
        if "$ref" in part:
            return self._root["$defs"][part["$ref"].rpartition("/")[2]]
        if "discriminator" in part:
            kinds = part["discriminator"]["mapping"]
            kind = value.get("kind") if isinstance(value, Mapping) else None
            known = isinstance(kind, str) and kind in kinds
            return self._resolved({"$ref": kinds[kind]}, value) if known else {}
        choices = [each for each in part.get("anyOf", []) if each.get("type") != "null"]
        if isinstance(value, Mapping) and len(choices) > 1:  # a mapping has a reference
            choices = [each for each in choices if "$ref" in each]
        if len(choices) == 1:  # `part` has one type, or one type and null
            return self._resolved(choices[0], value)
        return part


@cache
def _schema() -> DefinitionSchema:
    """Return the JSON schema of the configuration of a study.

    The function takes longer than reading a study, so Perseus calls it only if a configuration is
    invalid.
    """
    return DefinitionSchema(Definition.model_json_schema())


# Messages about invalid values


def _explain(place: Place, error: Any, raw: Json) -> Iterator[str]:
    where, value, kind = path(place), _at(raw, place), error["type"]
    part, context = _schema().at(place, raw), error.get("ctx", {})
    match kind:
        case "extra_forbidden" | "invalid_key":
            yield f"{where}: {_unknown(place, raw)}"
        case "missing":
            yield f"{where}: is missing ({part.get('description', '')})"
        case "union_tag_not_found":
            yield f"{where}.kind: is missing (one of {', '.join(KINDS)})"
        case "union_tag_invalid":
            hint = did_you_mean(str(value["kind"]), KINDS) or f" (one of {', '.join(KINDS)})"
            yield f"{where}.kind: {value['kind']!r} is not known{hint}"
        case "string_pattern_mismatch" if place[-2:-1] == ("remote",) and "://" in value:
            yield f"{where}: {value!r} {_of_url(str(place[-1]), value)}"
        case "string_pattern_mismatch":
            wanted = PATTERNS.get(context["pattern"])
            wanted = wanted or f"valid here ({part.get('description', '')})"
            yield f"{where}: {value!r} is not {wanted}"
        case _ if len(part.get("anyOf", [])) > 1:  # all branches of a union give the same line
            yield f"{where}: {_short(value)} is not valid ({part['description']})"
        case "literal_error":
            choices = [str(choice) for choice in part.get("enum", [part.get("const")])]
            hint = did_you_mean(str(value), choices) or f" (one of {', '.join(choices)})"
            yield f"{where}: {value!r} is not known{hint}"
        case "greater_than" | "greater_than_equal" | "less_than" | "less_than_equal":
            sign = (">" if "greater" in kind else "<") + ("=" if "equal" in kind else "")
            yield f"{where}: must be {sign} {_number(next(iter(context.values())))}, not {value}"
        case "finite_number" if math.isinf(value) and (bound := _bound(value > 0, part)):
            yield f"{where}: must be {bound}, not {value}"
        case "finite_number":
            yield f"{where}: must be a number, not {value}"
        case "too_short" if not _is_short(value, part):
            return  # another error reports an invalid item or key
        case "too_short" | "too_long":
            bound, least = ("at least", "min") if kind == "too_short" else ("at most", "max")
            count = context[f"{least}_length"]
            yield f"{where}: must have {bound} {count} item{'' if count == 1 else 's'}"
        case "string_too_short":
            yield f"{where}: must not be empty"
        case "default_factory_not_called":
            return  # the value is invalid because another key is missing
        case "twice":
            yield f"{where}: {error['msg']}"
        case _:
            yield f"{where}: must be {_wanted(kind, part)}, not {_short(value)}"


def _of_url(key: str, value: str) -> str:
    """Return the end of the message about a URL in a key that needs a host name or an address."""
    if key == "metrics":
        return "is not the URL of a metrics page (use http://host:port/path)"
    address = value.partition("://")[2].lstrip("/").partition("/")[0]
    wanted = address.rpartition(":")[0] or address if key == "host" else address
    return f"has a URL scheme (write {wanted or 'the name'!r}, and set `tls:` for TLS)"


def _unknown(place: Place, raw: Json) -> str:
    """Return the end of the message about an unknown key. If other kinds of experiments have this
    key, the message names these kinds."""
    key, parent = str(place[-1]), _schema().at(place[:-1], raw)
    if len(place) > 2 and place[-3] == "experiments":
        owners = [kind for kind in KINDS if key in settings_of(kind).model_fields]
        if owners:
            return f"applies only to experiments of kind {' and '.join(owners)}"
    known = list(parent.get("properties", {}))
    if key == "precision" and "preset" in known:  # the old name of the preset
        return (
            "unknown key (did you mean 'preset'? precision is the numeric precision of a model or"
            " tenant)"
        )
    return f"unknown key{meant_or_known(key, known)}"


def _not_text(place: Place, value: Json) -> Iterator[tuple[Place, Json]]:
    """Yield each key that YAML does not read as text, such as 1 or true, with the place of the
    mapping that contains the key."""
    items = value.items() if isinstance(value, Mapping) else ()
    for key, part in items if items else enumerate(value if isinstance(value, list) else ()):
        if items and not isinstance(key, str):
            yield place, key
        else:
            yield from _not_text((*place, key), part)


def _of_text(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {key: _of_text(part) for key, part in value.items() if isinstance(key, str)}
    return [_of_text(part) for part in value] if isinstance(value, list) else value


def _quoted(key: Json) -> str:
    if isinstance(key, bool):
        words = "yes, on and true" if key else "no, off and false"
        hint = f"YAML reads {words} as a boolean: write the key in quotes"
        return f"key {key}: must be a string ({hint})"
    text = "~" if key is None else str(key)
    return f"key {text}: must be a string (write {text!r} in quotes)"


def _left_empty(place: Place, value: Json, raw: Json) -> Iterator[Place]:
    """Yield the place of each optional key that the user wrote without a value."""
    items = value.items() if isinstance(value, Mapping) else ()
    for key, part in items if items else enumerate(value if isinstance(value, list) else ()):
        inside = (*place, key)
        if part is None and _schema().may_be_null(inside, raw):
            yield inside
        yield from _left_empty(inside, part, raw)


def _wanted(kind: str, part: Mapping[str, Json]) -> str:
    words = {
        "int_type": "a whole number",
        "float_type": "a number",
        "string_type": "a string",
        "bool_type": "a boolean",
        "dict_type": "a mapping (key: value)",
        "tuple_type": "a list",
        "model_type": "a mapping (key: value)",
        "model_attributes_type": "a mapping (key: value)",
    }
    return words.get(kind) or f"something else ({part.get('description', kind)})"


def _bound(upper: bool, part: Mapping[str, Json]) -> str:
    signs = {"maximum": "<=", "exclusiveMaximum": "<"}
    signs = signs if upper else {"minimum": ">=", "exclusiveMinimum": ">"}
    return next((f"{signs[key]} {_number(part[key])}" for key in signs if key in part), "")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def _short(value: Json) -> str:
    text = repr(value) if value is not None else "empty"
    return text if len(text) <= 60 else f"{text[:57]}..."


# Stand-ins for invalid values, so that the remaining checks can run


def _repair(raw: Json, place: Place, kind: str) -> Place | None:
    """Replace an invalid value by a stand-in, and return the place of the stand-in. If the function
    replaces nothing, return None."""
    if kind == "default_factory_not_called" or not place:
        return None
    if kind == "too_short" and not _is_short(_at(raw, place), _schema().at(place, raw)):
        return None  # stand-ins for the items make the list long enough
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        place = (*place, "kind")
    if kind == "twice" and place[-1] == "servers":
        listed = _at(raw, place)  # replace only the duplicate item, not the whole list
        place = (*place, next(i for i, each in enumerate(listed) if each in listed[:i]))
    *outer, key = place
    parent = _at(raw, tuple(outer))
    if isinstance(key, int):
        is_text = _schema().at(place, raw).get("type") == "string"
        if isinstance(parent, list) and is_text and outer[-1] == "servers":
            parent[key] = f"stand-in-{key}"  # a name that no server has
            return place
        examples = _schema().at(tuple(outer), raw).get("examples")
        if isinstance(parent, list) and key < len(parent) and examples:
            parent[key] = copy.deepcopy(examples[0][0])
            return place
        return _repair(raw, tuple(outer), kind)
    if not isinstance(parent, dict):
        return None
    part = _schema().at(place, raw)
    choices = KINDS if key == "kind" else part.get("enum", [])
    if (meant := closest(str(parent.get(key)), choices)) or key == "kind":
        parent[key] = meant or KINDS[0]
        if key == "kind" and not meant:
            return tuple(outer)  # no key of an unknown kind can be checked
    elif "examples" in part:
        parent[key] = copy.deepcopy(part["examples"][0])
    else:
        parent.pop(key, None)
    return place


def _is_short(value: Json, part: Mapping[str, Json]) -> bool:
    return isinstance(value, list) and len(value) < part.get("minItems", 1)
