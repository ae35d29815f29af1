"""Find duplicate keys in configuration files, read the values of the command line, and merge a
configuration into the default configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

MERGE = "tag:yaml.org,2002:merge"
"""YAML tag of the key `<<`, which inserts another mapping. A mapping may contain this key several
times."""


def merged(default: Any, given: Any) -> Any:
    """Return the default configuration, with the values of `given` in place of its own values.

    The function merges mappings key by key. A list in `given` replaces the whole list of the
    default configuration.
    """
    if not (isinstance(default, Mapping) and isinstance(given, Mapping)):
        return given
    return {**default, **{key: merged(default.get(key), part) for key, part in given.items()}}


def typed(value: Any, given: Any) -> Any:
    """Return the value of a key, with numbers in place of texts such as "3" from the command line.

    Snakemake 9.27.1 turns each part of a list or a mapping on the command line (`--config`) or in a
    profile into a text. The function reads these texts as YAML to get the numbers and booleans.
    `value` is the value of the key in the merged configuration. `given` is the value of the same
    key on the command line or in the profile.
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

    `config` contains the keys that come from the profile or from the option `--config`, and
    `arguments` is the command line. If the command line contains `--config`, Snakemake ignores the
    section `config:` of the profile, so the result is empty.
    """
    given = any(each.startswith(("--config=", "-C")) or each == "--config" for each in arguments)
    return set() if given else set(config)


def naming_profile(problem: str, keys: set[str]) -> str:
    """Return the message `problem`. If the message is about a key in `keys`, the keys of a
    Snakemake profile, add how to remove the key from the profile."""
    if re.split(r"[.:\[]", problem)[0] not in keys:
        return problem
    return (
        f"{problem} (a Snakemake profile, such as profiles/default or the profile in the variable"
        " SNAKEMAKE_PROFILE, sets this key in its section `config:`; remove the key there, or run"
        " with --profile none)"
    )


def doubled_keys(path: Path) -> Iterator[str]:
    """Yield one message for each key that occurs twice in a mapping of a YAML or JSON file.

    The YAML parser reports no error for such a key, and silently uses the last value of the key.
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
