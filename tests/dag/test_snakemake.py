"""Features of Snakemake that users expect of a workflow: its report, conda and a shared cache."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import zipfile
from pathlib import Path

import browser
import pytest
import yaml
from workflow_copy import MAKE_OUTPUTS, Workflow
from workflow_files import ROOT

CACHED = ("--cores", "2", "--cache")
EXPORTS = {"export": 2}
"""The number of jobs of the default study that export something, per rule."""

COUNTED = """
with open({runs!r}, "a") as file:
    file.write(snakemake.rule + "\\n")
for path in output_files:
    perseus.host.files.seal(path)
"""


# A cache


@pytest.fixture
def counted(empty, tmp_path, monkeypatch):
    """Return a function that makes the same workflow each time. Each job of the workflow adds a
    line to the file `runs`."""
    monkeypatch.setenv("SNAKEMAKE_OUTPUT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()

    def make(name: str) -> Workflow:
        workflow = empty.copy(tmp_path / name)
        for step in ("export", "repository", "measure"):
            workflow.fake(step, MAKE_OUTPUTS + COUNTED.format(runs=str(tmp_path / "runs")))
        return workflow

    return make


def runs(tmp_path: Path) -> dict[str, int]:
    """Return how often each rule has run since the last call."""
    messages = (tmp_path / "runs").read_text().splitlines()
    (tmp_path / "runs").unlink()
    return {rule: messages.count(rule) for rule in sorted(set(messages))}


def test_another_workflow_takes_exports_from_the_cache_and_measures_itself(counted, tmp_path):
    first, second = counted("first"), counted("second")
    first.run("measurements", *CACHED)
    everything = runs(tmp_path)
    assert {rule: everything[rule] for rule in EXPORTS} == EXPORTS
    second.run("measurements", *CACHED)
    assert runs(tmp_path) == {k: n for k, n in everything.items() if k not in EXPORTS}
    models = [w.root / "results/default/models/squeezenet1_1/model.onnx" for w in (first, second)]
    assert models[0].resolve() == models[1].resolve() != models[1]
    assert models[1].read_text()
    measured = [path for w in (first, second) for path in (w.root / "results").rglob("raw/*/*")]
    assert measured and not any(path.is_symlink() for path in measured)


def test_a_model_with_another_seed_is_another_entry_of_the_cache(counted, tmp_path):
    first, second = counted("first"), counted("second")
    target = "results/default/models/squeezenet1_1/model.onnx"
    first.run(target, *CACHED)
    second.run(target, *CACHED, "--config", "seed=5")
    assert runs(tmp_path) == {"export": 2}


def test_both_precisions_of_a_model_are_entries_of_their_own(counted, tmp_path):
    """Snakemake's hash of a job does not contain the wildcards."""
    workflow = counted("first")
    workflow.fake("convert", MAKE_OUTPUTS)
    models = [f"results/default/models/squeezenet1_1/model.{p}.onnx" for p in ("fp16", "int8")]
    workflow.run(*models, *CACHED)
    fp16, int8 = ((workflow.root / model).resolve() for model in models)
    assert fp16 != int8 and fp16.parent == int8.parent == tmp_path / "cache"


def cut_in_the_cache(tmp_path: Path, name: str) -> Path:
    (path,) = (tmp_path / "cache").glob(f"*_{name}")
    os.truncate(path, path.stat().st_size // 2)
    return path


CELL = "results/default/raw/cpu1.squeezenet1_1.peak.r1"


@pytest.mark.parametrize("name", ["model.onnx", "check.json"])
def test_what_lost_its_end_in_the_cache_is_not_taken(counted, tmp_path, name):
    first, second = counted("first"), counted("second")
    first.run(CELL, *CACHED)
    everything = runs(tmp_path)
    cached = cut_in_the_cache(tmp_path, name)
    assert f"{cached} was truncated after it was written" in second.plan(CELL, *CACHED)[2]
    second.run(CELL, *CACHED)
    assert runs(tmp_path) == everything
    exported = second.root / "results/default/models/squeezenet1_1" / name
    assert exported.resolve() == cached and cached.read_text().endswith("}")
    counted("third").run(CELL, *CACHED)
    assert "export" not in runs(tmp_path)


@pytest.mark.parametrize("arguments", [CACHED, CACHED[:2]], ids=["cache", "no cache"])
def test_what_lost_its_end_there_after_it_was_taken_is_made_again(counted, tmp_path, arguments):
    """Jobs that read the file also run again, because they may have read the truncated file."""
    workflow = counted("first")
    workflow.run(CELL, *CACHED)
    everything = runs(tmp_path)
    cut_in_the_cache(tmp_path, "model.onnx")
    for _ in range(2):  # a second dry run plans the same jobs
        _, output, errors = workflow.plan(CELL, *arguments)
        assert "models/squeezenet1_1/model.onnx was truncated after it was written" in errors
        assert set(re.findall(r"^(\w+) +1$", output + errors, re.MULTILINE)) == set(everything)
    workflow.run(CELL, *arguments)
    assert runs(tmp_path) == everything
    assert "Nothing to be done" in "".join(workflow.plan(CELL, *arguments)[1:])


def test_exports_alone_come_from_a_cache(empty):
    """The option --cache is only for exports. The workflow refuses every other rule, also a new
    rule."""
    rules = re.findall(r"^rule (\w+):", workflow_text(empty), re.MULTILINE)
    exports = {"export", "export_network", "own_onnx", "convert", "export_program"}
    exports |= {"pictures", "labelled"}
    assert exports < set(rules)
    code, output, errors = empty.plan("--cache", *rules)
    refused = re.search(r"--cache ([\w ]+): ", output + errors)
    assert code == 1 and refused and set(refused[1].split()) == set(rules) - exports


def workflow_text(workflow: Workflow) -> str:
    files = [workflow.root / "Snakefile", *(workflow.root / "rules").glob("*.smk")]
    return "\n".join(path.read_text() for path in files)


def test_a_run_without_a_cache_says_nothing_of_one(empty):
    code, output, errors = empty.plan()
    assert code == 0 and "eligible for caching" not in output + errors


# Conda


CONDA = """#!/bin/sh
case "$*" in
  "info --json") echo '{"conda_prefix": "/conda", "platform": "linux-64"}' ;;
  "--version") echo "conda 26.1.0" ;;
  "config --get channel_priority --json") echo '{"get": {"channel_priority": "strict"}}' ;;
  *) exit 1 ;;
esac
"""
"""A fake conda, which answers the questions of a dry run, but makes no environment."""


def test_the_environment_of_all_jobs_is_planned_by_conda(empty, tmp_path, monkeypatch):
    (tmp_path / "conda").write_text(CONDA)
    (tmp_path / "conda").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    workflow = empty.copy(tmp_path / "workflow")
    text = workflow.run("--dry-run", "--sdm", "conda")
    assert len(re.findall("Conda environment envs/perseus.yaml will be created", text)) == 1
    assert "measure " in text


def test_the_catalogue_says_what_the_workflow_has():
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert usage["software-stack-deployment"]["conda"] is True and usage["report"] is True
    assert usage["mandatory-flags"]["flags"].startswith("--cores")


# The report of Snakemake

LOOKED = """
<pre id="found"></pre>
<script>
const soon = () => new Promise((done) => setTimeout(done, 100));
async function look() {
  while (!app || !app.state) await soon();
  const found = { images: 0, categories: {} };
  for (const category of Object.keys(categories)) {
    app.setView({ navbarMode: "menu" });
    await soon();
    const links = [...document.querySelectorAll("#app a")];
    links.find((link) => link.textContent.trim() === category).click();
    await soon();
    const rows = [...document.querySelectorAll("#app tbody tr")];
    found.categories[category] = rows.map((row) => row.cells[0].textContent);
  }
  for (const result of Object.values(results).filter((each) => each.data_uri.endsWith(".png"))) {
    const image = new Image();
    const loaded = new Promise((done, failed) => { image.onload = done; image.onerror = failed; });
    image.src = result.data_uri;
    await loaded;
    found.images++;
  }
  document.getElementById("found").textContent = JSON.stringify(found);
}
addEventListener("load", () => look().catch((error) => console.error(error)));
</script>
"""
"""Opens the parts of Snakemake's report one by one, as a reader does."""


@pytest.fixture
def report(edited) -> Path:
    """Return the unpacked Snakemake report of a finished study with a real page and figures."""
    results = edited.root / "results/edits"
    shutil.copyfile(ROOT / "docs/example/report.html", results / "report.html")
    for figure in (results / "figures").glob("*.png"):
        shutil.copyfile(ROOT / "docs/images/peaks.png", figure)
    edited.run("--report", "report.zip")
    with zipfile.ZipFile(edited.root / "report.zip") as packed:
        packed.extractall(edited.root / "unpacked")
    return edited.root / "unpacked/report"


@browser.needs_chromium
def test_the_report_has_page_tables_and_figures_by_their_names(edited, report):
    looked = report / "looked.html"
    looked.write_text((report / "report.html").read_text() + LOOKED)
    done = browser.run("--virtual-time-budget=20000", "--dump-dom", looked.as_uri())
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line and "rror" in line]
    (message,) = re.findall(r'<pre id="found">(.+?)</pre>', done.stdout)
    found = json.loads(html.unescape(message))
    results = edited.root / "results/edits"
    assert {name: sorted(rows) for name, rows in found["categories"].items()} == {
        "Report": ["report"],
        "Figures": sorted(path.stem for path in (results / "figures").glob("*.png")),
        "Tables": sorted(path.stem for path in (results / "tables").glob("*.csv")),
    }
    assert found["images"] == len(found["categories"]["Figures"])
    (page,) = report.glob("data/raw/*/report.html")
    seen = browser.look(page.read_text(), (1100,))
    assert seen["console"] == [] and seen["1100"]["broken"] == 0 < seen["1100"]["images"]


# The scheduler


def test_snakemake_plans_once_for_each_finished_job(empty, tmp_path):
    """With a limit on jobs per second, Snakemake would plan several times per finished job."""
    workflow = empty.copy(tmp_path / "workflow")
    workflow.fake("measure", MAKE_OUTPUTS + "import time\ntime.sleep(1)\n")
    messages = "".join(workflow.messages("measurements", "--cores", "2", "--verbose"))
    finished = len(re.findall("Finished job", messages))
    assert finished > 5 and messages.count("Ready jobs:") <= finished + 2
