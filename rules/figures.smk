"""Figures: one job each.

inputs:   the tables and the raw results
outputs:  results/<study>/figures/<figure>.{svg,png,csv}
steps:    read, draw, write
"""


rule figure:
    """One figure, as SVG for print and PNG for the screen, and its data as CSV."""
    input:
        tables=expand(f"{RESULTS}/tables/{{table}}.parquet", table=TABLES),
        measured=lambda w: measured_of_figure(w.figure),
    output:
        svg=f"{RESULTS}/figures/{{figure}}.svg",
        png=report(
            f"{RESULTS}/figures/{{figure}}.png",
            category="Figures",
            labels={"figure": "{figure}"},
            caption="../report/figure.rst",
        ),
        csv=f"{RESULTS}/figures/{{figure}}.csv",
    log:
        f"{LOGS}/figures/{{figure}}.log",
    conda:
        "../envs/perseus.yaml"
    params:
        task=planning.figure_task(STUDY).plain(),
        code=lambda w: provenance.figure_code(SOURCES, w.figure),
    message:
        "Drawing {wildcards.figure}"
    script:
        "../scripts/figure.py"
