"""Write the report: one page that begins with the answer.

inputs:   tables, the result of their check, figures, the raw results of all cells
outputs:  results/<study>/report.html
steps:    write the conclusions with their uncertainty, then the evidence, the host and the method
"""


rule report:
    """Write one HTML file that contains all figures, so that the file can be sent by mail."""
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
