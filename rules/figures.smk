"""Draw the figures; each figure is one job.

inputs:   the tables; for some figures, also the raw results
outputs:  results/<study>/figures/<figure>.{svg,png,csv}
steps:    read the data, draw the figure, write its files
"""


rule figure:
    """Draw one figure as SVG for print and PNG for the screen, and write its data as CSV."""
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
