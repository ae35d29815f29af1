"""Compare the results of two studies, for a reader or as a gate in continuous integration.

inputs:   two folders or archives of results; no rule of this workflow makes them
outputs:  results/compare/<base>-<new>/{comparison.{html,parquet,csv,svg,png},summary.md}
steps:    read both results, pair the values of each quantity, compare each difference with the
          noise of the host

snakemake --cores 1 compare --config base=results/default new=default.tar.gz [out=folder]
"""

# The compared results are not inputs of the rule: Snakemake would search for rules that make the
# results. The task contains digests of the compared files, so that the job runs again if a file
# changes.
COMPARED = None
if ASKED:
    from perseus.results.compare.asked import CompareError, compare_task

    try:
        COMPARED = compare_task(ASKED)
    except CompareError as error:
        raise WorkflowError(str(error)) from None

COMPARISON = COMPARED.out if COMPARED else "results/compare/base-new"
# Without `--config base=… new=…`, Snakemake reports this text as the name of a missing input file.
MISSING = "name what to compare: --config base=results/default new=default.tar.gz"


rule compare:
    """Compare two results: each value is better, worse, not different or not comparable."""
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
    """Compare two results, and fail if a value got worse. The comparison is written even then."""
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
