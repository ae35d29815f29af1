"""Compare: two results on one axis, and a gate for continuous integration.

inputs:   none that is made here: two folders or archives of results, anywhere, which nothing measures
outputs:  results/compare/<base>-<new>/{comparison.{html,parquet,csv,svg,png},summary.md}
steps:    read both, pair what both measured, judge each difference against the noise of the host

snakemake compare --config base=results/default new=default.tar.gz [out=folder]
"""

# What is compared is not declared as input: a rule would be found that makes it. Digests of what is
# read stand in the task instead.
COMPARED = None
if ASKED:
    from perseus.results.compare.asked import CompareError, compare_task

    try:
        COMPARED = compare_task(ASKED)
    except CompareError as error:
        raise WorkflowError(str(error)) from None

COMPARISON = COMPARED.out if COMPARED else "results/compare/base-new"
# Without them, Snakemake says that this file is missing.
MISSING = "name what to compare: --config base=results/default new=default.tar.gz"


rule compare:
    """What got better, worse, or neither."""
    input:
        [] if COMPARED else MISSING,
    output:
        table=f"{COMPARISON}/comparison.parquet",
        csv=f"{COMPARISON}/comparison.csv",
        svg=f"{COMPARISON}/comparison.svg",
        png=f"{COMPARISON}/comparison.png",
        summary=f"{COMPARISON}/summary.md",
        page=f"{COMPARISON}/comparison.html",
    log:
        "logs/compare/compare.log",
    conda:
        "../envs/perseus.yaml"
    params:
        task=COMPARED.plain() if COMPARED else {},
        style=planning.figure_task(STUDY).plain(),
        code=provenance.compare_code(SOURCES),
    message:
        "Comparing two results"
    script:
        "../scripts/compare.py"


if COMPARED:
    make_truncated_files_again(list(rules.compare.output))


rule compare_gate:
    """The same; and the run fails if something got worse. What was written stays."""
    input:
        table=rules.compare.output.table,
        summary=rules.compare.output.summary,
    log:
        "logs/compare/gate.log",
    conda:
        "../envs/perseus.yaml"
    message:
        "Checking for values that got worse"
    script:
        "../scripts/compare_gate.py"
