"""Configuration files: duplicate keys, and merging one file over another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

MERGE = "tag:yaml.org,2002:merge"
"""The key `<<`, which may occur once for each merged mapping."""


def merged(default: Any, given: Any) -> Any:
    """Return the given configuration over a default: mappings merge, other values replace."""
    if not (isinstance(default, Mapping) and isinstance(given, Mapping)):
        return given
    return {**default, **{key: merged(default.get(key), part) for key, part in given.items()}}


def keys_of_profile(config: Mapping[str, Any], arguments: Sequence[str]) -> set[str]:
    """Return the keys that a Snakemake profile sets by `config:`.

    They are those that Snakemake got besides configuration files. `arguments` are those of the
    command line, which replace the profile's.
    """
    given = any(each.startswith(("--config=", "-C")) or each == "--config" for each in arguments)
    return set() if given else set(config)


def naming_profile(problem: str, keys: set[str]) -> str:
    """Return the problem, with its origin if a profile sets the key."""
    if re.split(r"[.:\[]", problem)[0] not in keys:
        return problem
    return (
        f"{problem} (set by config: in a Snakemake profile, such as SNAKEMAKE_PROFILE or"
        " profiles/default: remove it there, or run with --profile none)"
    )


def doubled_keys(path: Path) -> Iterator[str]:
    """Yield duplicate keys of a YAML or JSON file, of which a parser would use the last one."""
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), yaml.SafeLoader)
    except yaml.YAMLError:  # JSON that is not YAML, such as a file with tabs
        return
    seen, open_nodes = set[int](), [root]
    while open_nodes:
        node = open_nodes.pop()
        if id(node) in seen:  # an anchor may occur in many places, also inside itself
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
            first = f"stands in line {lines[same]}, too"
            yield f"{path} line {line}: {key.value!r} {first} (keep one of them)"
        lines.setdefault(same, line)
