"""Tests that no job runs after an edit of files, texts and settings that the study does not use."""

import ast
import csv

from dag.edits.edited_study import CODE, RAW_RESULTS, reconfigured


def test_nothing_edited(edited):
    assert edited.stale() == set()


def test_every_file_touched(edited):
    for path in edited.root.rglob("*"):
        inside = path.relative_to(edited.root).parts[0]
        if path.is_file() and inside in {
            "Snakefile",
            "rules",
            "scripts",
            "config",
            "weights",
            "photos",
            "envs",
        }:
            path.touch()
    assert edited.stale() == set()


def test_order_of_keys_and_spelling_of_numbers(edited):
    def turn(study):
        study["models"][0]["sla"] = {"latency_ms": 100.0, "percentile": 95.0}
        study["models"][1]["weights"] = "random"  # the default
        study["scenarios"][0] = dict(reversed(study["scenarios"][0].items()))
        study["measurement"] = study.pop("measurement")
        for key in ("study", "seed", "models"):
            study[key] = study.pop(key)

    reconfigured(edited, turn)
    assert edited.stale() == set()


def test_edit_and_revert(edited):
    edits = {
        "config/config.yaml": "seed: 2",
        "config/prices.csv": "# edited",
        "scripts/perseus/traffic/client.py": CODE,
        "scripts/measure.py": CODE,
    }
    texts = {place: (edited.root / place).read_text() for place in edits}
    for place, text in texts.items():
        (edited.root / place).write_text(f"{text.replace('seed: 1', '')}\n{edits[place]}\n")
    assert edited.stale() != set()
    for place, text in texts.items():
        (edited.root / place).write_text(text)
    assert edited.stale() == set()


def test_a_price_of_another_machine(edited):
    edited.edit("config/prices.csv", ",0.526,0.215800,", ",0.527,0.215800,")  # g4dn.xlarge
    assert edited.stale() == set()


def test_columns_of_the_price_list_in_another_order(edited):
    path = edited.root / "config" / "prices.csv"
    with path.open(newline="") as file:
        rows = [row[::-1] for row in csv.reader(file)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    assert edited.stale() == set()


def test_another_study_leaves_this_one_alone(edited):
    other = ["--configfile", "config/studies/smoke.yaml"]
    assert all(edited.jobs(*other).values())
    assert edited.stale() == set()


class Rewritten(ast.NodeTransformer):
    def visit_Expr(self, node):
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value.value = "Said in other words."
        return node


def test_comments_docstrings_and_formatting_of_all_code(edited):
    for path in (edited.root / "scripts").rglob("*.py"):
        tree = Rewritten().visit(ast.parse(path.read_text()))
        path.write_text(ast.unparse(tree) + "\n# what was commented, no longer is\n")
    assert edited.stale() == set()


def test_code_that_only_tells(edited):
    progress = (edited.root / "scripts/perseus/measurement/progress").glob("*.py")
    told = [f"measurement/progress/{path.stem}" for path in progress]
    for module in (*told, "host/job", "study/hints"):
        edited.append(f"scripts/perseus/{module}.py", CODE)
    assert edited.stale() == set()


def test_another_package_whose_version_is_told(edited):
    edited.edit("scripts/perseus/host/machine.py", '"grpcio",', '"flax", "grpcio",')
    assert edited.stale() == set()


def test_entries_of_registries_that_the_study_does_not_use(edited):
    for module, old, new in (
        ("presets", "ratio=1.15", "ratio=1.1"),
        (
            "runtimes",
            '"openvino": Runtime(',
            '"new": Runtime("New", ONNX, {}, True, True),\n    "openvino": Runtime(',
        ),
        ("launchers", '"docker": Launcher(', '"new": Launcher(),\n    "docker": Launcher('),
    ):
        path = edited.root / "scripts" / "perseus" / "study" / f"{module}.py"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    assert edited.stale() == set()


def test_the_meaning_of_a_column(edited):
    edited.edit(
        RAW_RESULTS,
        '"median latency, measured from the intended send time"',
        '"median of the latency"',
    )
    assert edited.stale() == set()
