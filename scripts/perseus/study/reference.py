"""config/README.md, made from config/schema.yaml: `make config/README.md`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

Schema = Mapping[str, Any]
HEAD = """\
# Configuration

<!-- Made from schema.yaml by `make config/README.md`; edit that file. -->

`config.yaml` is the default study. Another file changes it, key by key:

```
snakemake --cores 4 all --configfile config/studies/paper.yaml
```

Mappings merge, lists replace: a file that names `models:` names all of them. Every mistake is
reported before anything runs, each with its place. `snakemake -n` shows what an edit would run
again.
"""
EXAMPLES = {
    "Add a model": """\
models:
  - {name: squeezenet1_1, sla: {percentile: 95, latency_ms: 120}}
  - {name: mobilenet_v3_small, sla: {percentile: 95, latency_ms: 60}}
  - {name: resnet50, sla: {percentile: 95, latency_ms: 300}}   # new
scenarios:
  - name: shared
    servers: [cpu1]
    tenants: [{model: squeezenet1_1}, {model: mobilenet_v3_small}, {model: resnet50}]
    experiments: [{kind: peak, mixes: [[1, 1, 1]]}]
""",
    "Change an SLA": """\
models:
  - {name: squeezenet1_1, sla: {percentile: 99, latency_ms: 200}}   # p99 <= 200 ms
  - {name: mobilenet_v3_small, sla: {percentile: 95, latency_ms: 60}}
""",
    "Compare two servers": """\
servers:
  - name: cpu1
    cores: 1
    price: {instance: n1-standard-1, region: us-central1}
  - name: cpu2
    cores: 2
    runtime: openvino
    price: {instance: n1-standard-2, region: us-central1}
scenarios:
  - name: shared
    servers: [cpu1, cpu2]
    tenants: [{model: squeezenet1_1}, {model: mobilenet_v3_small}]
    experiments: [{kind: peak, mixes: [[1, 1]]}]
""",
}


def readme(schema: Schema) -> str:
    """The text of config/README.md: examples, then one table for each section of `schema`."""
    parts = [HEAD]
    for title, example in EXAMPLES.items():
        parts.append(f"## {title}\n\n```yaml\n{example}```\n")
    parts.append("# All keys\n")
    top = {key: part for key, part in schema["properties"].items() if not _is_section(part)}
    parts.append(_table(_rows({"properties": top, "required": schema["required"]})))
    for key, part in schema["properties"].items():
        if _is_section(part):
            parts.extend(_section(key, part))
    return "\n".join(parts)


def _is_section(part: Schema) -> bool:
    return part.get("type") == "object" or part.get("items", {}).get("type") == "object"


def _section(name: str, part: Schema) -> Iterator[str]:
    """A heading and a table, then the same for each list of mappings inside."""
    is_list = part["type"] == "array"
    inner = part["items"] if is_list else part
    yield f"## {name}\n"
    yield f"{'A list. ' if is_list else ''}{_text(part)}\n"
    yield _table(_rows(inner))
    for key, child in inner["properties"].items():
        if child.get("items", {}).get("type") == "object":
            yield from _section(f"{name}: {key}", child)


def _table(rows: Iterator[tuple[str, str, str, str]]) -> str:
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _rows(schema: Schema, prefix: str = "") -> Iterator[tuple[str, str, str, str]]:
    """(key, type, default, meaning); the keys of a mapping follow it with dots."""
    for key, part in schema["properties"].items():
        name = f"`{prefix}{key}`"
        default = "required" if key in schema.get("required", []) else _default(part)
        yield name, _type(part), default, _text(part)
        if part.get("type") == "object":
            yield from _rows(part, f"{prefix}{key}.")


def _default(part: Schema) -> str:
    value = part.get("default")
    return "" if value in (None, {}) else f"`{_yaml(value)}`"


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()


def _type(part: Schema) -> str:
    if "$ref" in part:
        return part["$ref"].rpartition("/")[2]
    if "enum" in part:
        return " or ".join(f"`{choice}`" for choice in part["enum"])
    if "anyOf" in part:
        return " or ".join(map(_type, part["anyOf"]))
    if part["type"] == "array":
        return f"list of {_type(part['items'])}"
    if part["type"] == "object":
        return "mapping"
    word = {"integer": "whole number", "string": "text"}.get(part["type"], part["type"])
    signs = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    bounds = [f"{sign} {part[key]}" for key, sign in signs.items() if key in part]
    return f"{word} {', '.join(bounds)}".strip()


def _text(part: Schema) -> str:
    return " ".join(part.get("description", "").split())


if __name__ == "__main__":
    root = Path(__file__).parents[3]
    print(readme(yaml.safe_load((root / "config" / "schema.yaml").read_text())), end="")
