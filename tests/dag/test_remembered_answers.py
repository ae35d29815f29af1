"""Tests that Snakemake plans the same jobs with and without Perseus's cache of its functions."""

import pytest
from dag.test_anywhere import MODULE
from workflow_copy import MAKE_OUTPUTS, Workflow
from workflow_files import ROOT

REMEMBERED = "snakemake_cache.cache_functions(sys.modules)\n"

TELL = """
told = Path("told", "-".join([snakemake.rule, *snakemake.wildcards]))
told.parent.mkdir(exist_ok=True)
resources = {k: v for k, v in snakemake.resources.items() if k != "tmpdir"}
told.write_text(
    "\\n".join(
        map(repr, (dict(snakemake.params.items()), dict(snakemake.input.items()),
                   list(snakemake.input), list(snakemake.output), list(snakemake.log),
                   snakemake.threads, resources)))
)
"""
"""Writes the values that Snakemake gives a job into a file."""

OTHER = """
rule every:
    default_target: True
    input:
        expand("made/{kind}.txt", kind=["one", "two"]),
        "made/named.txt",


rule of_kind:
    output:
        "made/{kind}.txt",
    wildcard_constraints:
        kind="one|two",
    resources:
        attempts=lambda wildcards, attempt: attempt,
    script:
        "{wildcards.kind}.py"


rule named:
    output:
        "made/named.txt",
    params:
        kind="named",
    script:
        "{params.kind}.py"
"""


@pytest.fixture
def told(empty, tmp_path):
    """Return a function that runs the workflow and returns the values given to each fake job."""

    def run(name: str, *, without: bool) -> dict[str, str]:
        workflow = empty.copy(tmp_path / name)
        if without:
            workflow.edit("rules/common.smk", REMEMBERED, "")
        for step in (ROOT / "scripts").glob("*.py"):
            if step.stem not in ("again", "exporter"):
                workflow.fake(step.stem, MAKE_OUTPUTS + TELL)
        workflow.run("--cores", "2", "all", "pack")
        return {path.name: path.read_text() for path in (workflow.root / "told").iterdir()}

    return run


def test_jobs_are_given_the_same_with_and_without(told):
    with_it = told("with", without=False)
    assert with_it == told("without", without=True)
    assert len([name for name in with_it if name.startswith("measure-")]) == 5


def test_another_workflow_has_the_script_of_each_job(empty, tmp_path):
    """The script paths of the other workflow contain wildcards or params. Each job runs its own
    script, whether or not the other workflow uses Perseus as a module."""
    for head in (
        MODULE.format(head="", snakefile=empty.root / "Snakefile", config="", renamed=""),
        "",
    ):
        other = Workflow(tmp_path / ("module" if head else "alone"))
        other.root.mkdir()
        (other.root / "Snakefile").write_text(head + OTHER)
        for kind in ("one", "two", "named"):
            (other.root / f"{kind}.py").write_text(
                f"open(snakemake.output[0], 'w').write('{kind}')"
            )
        other.run("--cores", "2", "every")
        made = {path.stem: path.read_text() for path in (other.root / "made").iterdir()}
        assert made == {kind: kind for kind in ("one", "two", "named")}
