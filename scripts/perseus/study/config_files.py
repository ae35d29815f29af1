"""Find duplicate keys in configuration files, read the values of the command line, and merge a
configuration into the default configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

MERGE = "tag:yaml.org,2002:merge"
"""YAML tag of the key `<<`. The key `<<` inserts another mapping. A mapping may have the key `<<`
several times."""


def merged(default: Any, given: Any) -> Any:
    """Return the default configuration with the values of the configuration `given`. The function
    merges two mappings key by key. A list or a single value in `given` replaces the default
    value."""
    if not (isinstance(default, Mapping) and isinstance(given, Mapping)):
        return given
    return {**default, **{key: merged(default.get(key), part) for key, part in given.items()}}


def typed(value: Any, given: Any) -> Any:
    """Return the value `value` of a key of the configuration, with the types that YAML gives to its
    parts.

    `given` is the value of the same key on the command line (`--config`) or in a profile. Snakemake
    9.27.1 reads each part of a list or a mapping in `given` as a string. The function reads such a
    string again as YAML: "3" becomes the number 3.
    """
    if isinstance(value, Mapping) and isinstance(given, Mapping):
        return {
            key: _typed_part(part, given[key]) if key in given else part
            for key, part in value.items()
        }
    if isinstance(value, list) and value == given:
        return [_typed_part(part, part) for part in value]
    return value


def _typed_part(part: Any, given: Any) -> Any:
    if not isinstance(part, str) or part != given:
        return typed(part, given)
    loader = yaml.SafeLoader("")
    tag = loader.resolve(yaml.ScalarNode, part, (True, False))
    try:
        return loader.construct_object(yaml.ScalarNode(tag, part))
    except (ValueError, yaml.YAMLError):  # such as 2026-02-30, which is no date
        return part


def keys_of_profile(config: Mapping[str, Any], arguments: Sequence[str]) -> set[str]:
    """Return the configuration keys that a Snakemake profile sets in its section `config:`.

    `config` has the keys that Snakemake gets from sources other than configuration files.
    `arguments` is the command line. If the command line has `--config`, the result is empty:
    `--config` replaces the section `config:` of the profile.
    """
    given = any(each.startswith(("--config=", "-C")) or each == "--config" for each in arguments)
    return set() if given else set(config)


def naming_profile(problem: str, keys: set[str]) -> str:
    """Return the message `problem`. `keys` has the keys that a Snakemake profile sets. If the
    message is about one of `keys`, the function adds how to remove the key from the profile."""
    if re.split(r"[.:\[]", problem)[0] not in keys:
        return problem
    return (
        f"{problem} (a Snakemake profile, such as profiles/default or the profile in the variable"
        " SNAKEMAKE_PROFILE, sets this key in its section `config:`; remove the key there, or run"
        " with --profile none)"
    )


def doubled_keys(path: Path) -> Iterator[str]:
    """Yield the duplicate keys of a YAML or JSON file.

    Without this check, the YAML parser would silently use the last value of a duplicate key.
    """
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), yaml.SafeLoader)
    except yaml.YAMLError:  # a JSON file is not always valid YAML, for example if it has tabs
        return
    seen, open_nodes = set[int](), [root]
    while open_nodes:
        node = open_nodes.pop()
        if id(node) in seen:  # a YAML anchor may occur in several places, and even inside itself
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            open_nodes += node.value
        elif isinstance(node, yaml.MappingNode):
            open_nodes += [part for _, part in node.value]
            yield from _doubled(path, [key for key, _ in node.value])


def _doubled(path: Path, keys: Sequence[yaml.Node]) -> Iterator[str]:
    lines = dict[tuple[str, str], int]()
    for key in keys:
        if not isinstance(key, yaml.ScalarNode) or key.tag == MERGE:
            continue
        line, same = key.start_mark.line + 1, (key.tag, key.value)
        if same in lines:
            first = f"is already in line {lines[same]}"
            yield f"{path} line {line}: {key.value!r} {first} (remove one of the lines)"
        lines.setdefault(same, line)
