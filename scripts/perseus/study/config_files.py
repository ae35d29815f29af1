"""Find duplicate keys in configuration files, and merge a configuration into the default
configuration."""

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
