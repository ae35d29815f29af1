"""What is wrong with the form of a configuration: what its schema says, in words for people."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import jsonschema

Json = Any


def form_problems(raw: Json, schema: Mapping[str, Json]) -> Iterator[str]:
    """Unknown and missing keys, wrong types, values out of bounds."""
    validator = jsonschema.Draft202012Validator(schema)
    for error in sorted(validator.iter_errors(raw), key=lambda e: [*map(str, e.absolute_path)]):
        yield from _explain(error)
    yield from _not_numbers("", raw)


def _explain(error: jsonschema.ValidationError) -> Iterator[str]:
    where = reduce(_join, error.absolute_path, "")
    value: Json = error.instance
    schema: Json = error.schema
    wanted: Json = error.validator_value
    match error.validator:
        case "additionalProperties":
            known = list(schema["properties"])
            for key in sorted(set(value) - set(known), key=str):
                hint = did_you_mean(str(key), known) or f" (known: {', '.join(known)})"
                yield f"{_join(where, str(key))}: unknown key{hint}"
        case "required":
            for key in wanted:
                if key not in value:
                    meaning = schema["properties"][key].get("description", "")
                    yield f"{_join(where, key)}: is missing ({meaning})"
        case "pattern":
            kind = "an image" if where.endswith(".image") else "a name"
            kind = "what this can be" if ".remote." in where else kind
            yield f"{where}: {value!r} is not {kind} (use {schema['description']})"
        case "enum":
            choices = [str(choice) for choice in wanted]
            hint = did_you_mean(str(value), choices) or f" (one of {', '.join(choices)})"
            yield f"{where}: {value!r} is not known{hint}"
        case "exclusiveMinimum" | "minimum" | "exclusiveMaximum" | "maximum" as bound:
            sign = ">" if "Minimum" in bound or bound == "minimum" else "<"
            sign += "" if bound.startswith("exclusive") else "="
            yield f"{where}: must be {sign} {wanted}, not {value}"
        case "type":
            kind = {"object": "a mapping (key: value)", "array": "a list"}.get(
                wanted, f"a {wanted}"
            )
            kind = kind.replace("a integer", "a whole number")
            yield f"{where or 'the configuration'}: must be {kind}, not {_short(value)}"
        case "minItems":
            yield f"{where}: must have at least {wanted} item"
        case "anyOf":
            yield f"{where}: {_short(value)} does not fit ({schema['description']})"
        case _:
            yield f"{where}: {error.message}"


def _not_numbers(where: str, value: Json) -> Iterator[str]:
    """YAML's .nan lies within all bounds of a schema."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _not_numbers(_join(where, str(key)), part)
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from _not_numbers(_join(where, i), part)
    elif isinstance(value, float) and math.isnan(value):
        yield f"{where}: must be a number, not {value}"


def _join(where: str, part: str | int) -> str:
    if isinstance(part, int):
        return f"{where}[{part}]"
    return f"{where}.{part}" if where else part


def _short(value: Json) -> str:
    text = repr(value) if value is not None else "empty"
    return text if len(text) <= 60 else f"{text[:57]}..."


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """A hint at the known word that was probably meant; empty if none is close."""
    close = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
