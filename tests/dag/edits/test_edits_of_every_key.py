"""Tests that an edit of a key of a study repeats the right jobs, for every key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from dag.edits.edited_study import reconfigured
from dag.edits.edits_of_keys import AFTER, ELSEWHERE, FIGURES, GROUPS, PRICED, Edits, Key, Value
from onnx_files import network

from perseus.study.definition import Definition


@pytest.mark.parametrize("name", GROUPS)
def test_an_edit_of_each_key_runs_what_it_must_and_nothing_else(
    edited, downstream, priced_jobs, figures, name
):
    group = GROUPS[name]
    write_traces(edited.root)
    write_network(edited.root)
    arguments = group.arguments or ("--cores", "2")
    put(edited, group.study)
    edited.run(*arguments, "all")
    finished = (edited.root / "config" / "config.yaml").read_text()
    meant = {AFTER: downstream, PRICED: priced_jobs, FIGURES: figures}
    wrong = []
    for edits, expected in group.rows:
        put(edited, edits)
        stale = edited.stale(*group.arguments)
        expected = set().union(*(meant.get(job, {job}) for job in expected))
        if stale != expected:
            wrong.append(f"{edits}: not {sorted(expected - stale)} but {sorted(stale - expected)}")
        (edited.root / "config" / "config.yaml").write_text(finished)
    assert not wrong, "\n".join(wrong)


def test_no_key_is_without_an_edit():
    rows = {key for group in GROUPS.values() for edits, _ in group.rows for key in edits}
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert [test for test in ELSEWHERE if f"def test_{test}(" not in tests] == []
    elsewhere = {key for keys in ELSEWHERE.values() for key in keys}
    assert keys_of(Definition.model_json_schema()) - rows - elsewhere == set()


def put(workflow, edits: Edits) -> None:
    reconfigured(workflow, lambda study: [put_one(study, *edit) for edit in edits.items()])


def put_one(study: dict[str, Any], key: Key, value: Value) -> None:
    """Set a key of a study. In a list, the function changes the first entry or, for a name such as
    `experiments[peak]`, the first entry of this kind."""
    node: Any = study
    *parents, (last, _) = re.findall(r"(\w+)(?:\[(\w+)\])?", key)
    for name, kind in parents:
        node = node.setdefault(name, {})
        if isinstance(node, list):
            node = next(each for each in node if kind in ("", each.get("kind")))
    node[last] = value


def keys_of(schema: Mapping[str, Any]) -> set[Key]:
    """Return all keys of the schema that take a value. Each kind of experiment has its own keys."""

    def keys(node: Mapping[str, Any], place: str) -> Iterator[Key]:
        if "$ref" in node:
            yield from keys(schema["$defs"][node["$ref"].rpartition("/")[2]], place)
        elif "properties" in node:
            kind = node["properties"].get("kind", {}).get("const")
            for key, value in node["properties"].items():
                of_kind = f"{place}[{kind}]" if kind else place
                yield from keys(value, f"{of_kind}.{key}" if place else key)
        else:
            choices = [*node.get("anyOf", ()), *node.get("oneOf", ()), node.get("items", {})]
            inside = {key for choice in choices if choice for key in keys(choice, place)}
            yield from inside - {place} or {place}

    # `price` and `other_prices` have the same keys. Another test adds and removes kinds:
    # test_an_experiment_of_each_kind_removed.
    found = {
        re.sub(r"^servers\.other_prices\b.*", "servers.other_prices", key)
        for key in keys(schema, "")
    }
    return {key for key in found if not key.endswith("].kind")}


def write_network(folder: Path) -> None:
    """Write an ONNX file and examples of its inputs."""
    onnx.save(network(), folder / "weights" / "own.onnx")
    np.savez(folder / "samples.npz", x=np.ones((5, 3, 32, 32), np.float32))


def write_traces(folder: Path) -> None:
    """Write one trace per format: one request per second from each of two functions or two models.

    In times.csv and burstgpt.csv, the rate rises to two requests per second after 100 s.
    """
    seconds = [*range(100), *(100 + half / 2 for half in range(200))]
    rows = "".join(f"{second},{'ab'[i % 2]}\n" for i, second in enumerate(seconds))
    (folder / "times.csv").write_text(f"time_s,user\n{rows}")
    head = f"HashOwner,HashApp,HashFunction,Trigger,{','.join(map(str, range(1, 5)))}"
    rows = "".join(f"o,a,{function},http,60,60,60,60\n" for function in ("f1", "f2"))
    (folder / "azure.csv").write_text(f"{head}\n{rows}")
    head = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
    rows = "".join(f"{s},{'GPT-4' if s % 2 else 'ChatGPT'},1,1,2,API\n" for s in seconds)
    (folder / "burstgpt.csv").write_text(f"{head}\n{rows}")
