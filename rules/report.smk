"""Report: one page that answers the question first.

inputs:   tables, that they were checked, figures, the raw results of all cells
outputs:  results/<study>/report.html
steps:    state the conclusions with their uncertainty, then the evidence, the host and the method
"""


rule report:
    """One HTML file with all figures inside, so that it can be sent by mail."""
    input:
        tables=expand(f"{RESULTS}/tables/{{table}}.parquet", table=TABLES),
        checked=files.checked_tables(STUDY),
        figures=expand(f"{RESULTS}/figures/{{figure}}.svg", figure=figures_of(STUDY.kinds)),
        measured=files.measured(STUDY),
    output:
        report(f"{RESULTS}/report.html", category="Report", labels={"page": "report"}),
    log:
        f"{LOGS}/report.log",
    conda:
        "../envs/perseus.yaml"
    params:
        task=lambda w: planning.report_task(STUDY, list(STUDY.trace_messages(Path.cwd()))).plain(),
        code=provenance.report_code(SOURCES),
    message:
        "Writing the report"
    script:
        "../scripts/report.py"
