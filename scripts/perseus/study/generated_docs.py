"""Generate config/schema.json and config/README.md from the classes that define the keys of a
configuration. `make config/schema.json config/README.md` runs this module."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from pydantic.json_schema import GenerateJsonSchema

from perseus.study.definition import Definition

Schema = Mapping[str, Any]
HEAD = """\
# Configuration

<!-- `make config/README.md` generates this file from scripts/perseus/study; edit the source. -->

`config.yaml` is the default study. To change keys, write them into a file of your own, and name the
file in the command:

```
snakemake --cores 4 all --configfile config/studies/paper.yaml
```

If your file leaves a key out, Perseus uses the value of the default study. A list in your file
replaces the whole list of the default study: if your file has `models:`, write all models of your
study. Before any job runs, Perseus reports every mistake in your file with its place. After an
edit, `snakemake -n` shows which jobs run again. Many editors complete and check the keys of your
file if its first line is `# yaml-language-server: $schema=schema.json`. In this line, write the
path of `config/schema.json` relative to your file.
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
    "Price servers": """\
servers:
  - name: cpu1
    cores: 1
    price: {instance: n1-standard-4, region: us-central1, share: 0.25}   # 1 of 4 vCPUs
    other_prices:   # for the table other_costs
      - {instance: n1-standard-4, region: europe-west4, share: 0.25}
      - {instance: c5.large, region: us-east-1, share: 1}   # no other server uses the second vCPU
costs:
  pricing: [on_demand, spot, committed]
  committed_discount: 0.37   # saves 37 % of the on-demand price
  usd_per_kwh: 0.3           # price of electricity; hardware counters measure the energy
""",
    "Measure models that a server has": """\
models:
  - {name: encoder, served_model: text_encoder, shape: {tokens: [128]}, sla: {latency_ms: 50}}
  - {name: ranker, served_model: ranker, sla: {latency_ms: 20}}
servers:
  - name: ours
    launcher: remote
    remote: {host: 127.0.0.1}
    cores: 4
    price: {instance: n1-standard-4, region: us-central1}
scenarios:
  - name: both
    servers: [ours]
    tenants: [{model: encoder}, {model: ranker}]
    experiments: [{kind: peak, mixes: [[1, 1]]}]
    preset: standard   # all other scenarios have the preset of `measurement`
""",
    "Ask what to buy": """\
demand:
  models:
    - {name: squeezenet1_1, rps: 40}
    - {name: mobilenet_v3_small, low_rps: 5, typical_rps: 30, peak_rps: 90}
  headroom: 0.1      # leaves 10 % of the capacity of each server free
  min_servers: 2     # at least two servers for each model, such as one in each of two zones
  spot: {largest_share: 0.5, revocations_per_hour: 0.05}
""",
    "Find the best settings": """\
scenarios:
  - name: shared
    servers: [cpu1]
    tenants: [{model: squeezenet1_1}, {model: mobilenet_v3_small}]
    experiments: [{kind: peak, mixes: [[1, 1]]}]
    grid:
      vary: {runtime: [onnxruntime, openvino], precision: [fp32, bf16], instances: [1, 2]}
      at_most: {p95_ms: 50, relative_error: 0.5}   # largest error of the responses in bf16
""",
}


class _Generator(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a study, with a description of every key."""
    made = Definition.model_json_schema(schema_generator=_Generator)
    return {"$schema": GenerateJsonSchema.schema_dialect, **made}


def schema_json() -> str:
    """Return the text of config/schema.json.

    In this schema, no top-level key is required, because Perseus takes missing keys from
    config/config.yaml.
    """
    made = {key: part for key, part in schema().items() if key != "required"}
    return json.dumps(made, indent=1) + "\n"


def readme() -> str:
    """Return the text of config/README.md: examples, then one table for each section."""
    made = schema()
    parts = [HEAD]
    for title, example in EXAMPLES.items():
        parts.append(f"## {title}\n\n```yaml\n{example}```\n")
    parts.append("# All keys\n")
    sections = {key: each for key, each in made["properties"].items() if _object(each, made)}
    top = {key: each for key, each in made["properties"].items() if key not in sections}
    parts.append(_table(_rows({"properties": top, "required": made["required"]}, made)))
    for key, each in sections.items():
        parts.extend(_section(key, each, made))
    return "\n".join(parts)


def _resolved(part: Schema, root: Schema) -> Schema:
    """Return the part of the schema `root` to which `part` refers (`$ref`), or `part` itself.

    If `part` allows null and one other type, the result allows only the other type. A description
    in `part` replaces the description of the other part.
    """
    choices = [each for each in part.get("anyOf", []) if each.get("type") != "null"]
    inner = choices[0] if len(choices) == 1 else part
    if "$ref" in inner:
        inner = root["$defs"][inner["$ref"].rpartition("/")[2]]
    return {**inner, **{key: value for key, value in part.items() if key not in ("anyOf", "$ref")}}


def _objects(part: Schema, root: Schema) -> list[Schema]:
    """Return the schemas of the mappings that `part` describes; empty if `part` describes a single
    value.

    All entries of a list of mappings have one schema. In the list of experiments, each kind of
    experiment has its own schema.
    """
    part = _resolved(part, root)
    if part.get("type") == "array":
        return _objects(part["items"], root)
    choices = part.get("oneOf", part.get("anyOf", [part]))
    each = [_resolved(choice, root) for choice in choices]
    return [found for found in each if found.get("type") == "object"]


def _object(part: Schema, root: Schema) -> bool:
    return bool(_objects(part, root))


def _section(name: str, part: Schema, root: Schema) -> Iterator[str]:
    """Yield the heading, the text and the tables of a section of config/README.md. If the section
    contains lists of mappings, also yield one section for each of these lists."""
    part = _resolved(part, root)
    is_list = part.get("type") == "array"
    yield f"## {name}\n"
    yield f"{'A list. ' if is_list else ''}{_text(part)}\n"
    objects = _objects(part, root)
    for inner in objects:
        if len(objects) > 1:
            yield f"### kind: {inner['properties']['kind']['const']}\n"
        yield _table(_rows(inner, root))
    for inner in objects:
        for key, child in inner["properties"].items():
            child = _resolved(child, root)
            if child.get("type") == "array" and _object(child, root):
                yield from _section(f"{name}: {key}", child, root)


def _table(rows: Iterator[tuple[str, str, str, str]]) -> str:
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _rows(part: Schema, root: Schema, prefix: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Yield the rows of the table of a section: key, type, default, meaning.

    For a key in a nested mapping, the row names the mapping first: `sla.percentile`.
    """
    for key, child in part["properties"].items():
        child = _resolved(child, root)
        default = "required" if key in part.get("required", []) else _default(child)
        yield f"`{prefix}{key}`", _type(child, root), default, _text(child)
        if "anyOf" in child or "properties" in child:
            for inner in _objects(child, root):
                yield from _rows(inner, root, f"{prefix}{key}.")


def _default(part: Schema) -> str:
    value = part.get("default")
    return "" if value is None or isinstance(value, dict) else f"`{_yaml(value)}`"


def _yaml(value: Any) -> str:
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()


def _type(part: Schema, root: Schema) -> str:
    part = _resolved(part, root)
    if "enum" in part or "const" in part:
        return " or ".join(f"`{choice}`" for choice in part.get("enum", [part.get("const")]))
    if "anyOf" in part:
        return " or ".join(_type(each, root) for each in part["anyOf"])
    if part.get("type") == "array":
        items = _type(part["items"], root)
        return f"list of ({items})" if "anyOf" in part["items"] else f"list of {items}"
    if part.get("type") == "object" or "oneOf" in part:
        return "mapping"
    word = {"integer": "whole number", "string": "text"}.get(part["type"], part["type"])
    signs = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    bounds = [f"{sign} {part[key]}" for key, sign in signs.items() if key in part]
    return f"{word} {', '.join(bounds)}".strip()


def _text(part: Schema) -> str:
    return " ".join(part.get("description", "").split())


if __name__ == "__main__":
    print({"schema.json": schema_json, "README.md": readme}[sys.argv[1]](), end="")
