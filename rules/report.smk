"""Report: one page that answers the question first.

inputs:   tables, figures, records
outputs:  results/<study>/report.html
steps:    state the answer with its uncertainty, then the evidence, the host and the method
"""


rule report:
    """One HTML file that can be mailed: figures are inside."""
    input:
        tables=expand(f"{RESULTS}/tables/{{table}}.parquet", table=plan.TABLES),
        figures=expand(f"{RESULTS}/figures/{{figure}}.svg", figure=plan.figures(STUDY)),
        records=plan.records(STUDY, plan.cells(STUDY)),
        template="scripts/perseus/report/page.html",
        code=code("report"),
    output:
        f"{RESULTS}/report.html",
    log:
        f"{LOGS}/report.log",
    conda:
        "../envs/perseus.yaml"
    message:
        "Writing the report"
    script:
        "../scripts/report.py"
