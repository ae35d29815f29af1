"""Figures: one job each.

inputs:   the tables and the raw results
outputs:  results/<study>/figures/<figure>.{svg,png}
steps:    read, draw, write
"""

# The other figures are drawn from the tables alone.
RAW_OF_FIGURE = {
    "latency_by_rate": ["windows.parquet"],
    "latency_ecdf": ["requests.parquet", "windows.parquet", "record.json"],
    "utilisation": ["monitor.parquet", "windows.parquet", "record.json"],
}


rule figure:
    """One figure, as SVG for print and PNG for the screen."""
    input:
        tables=expand(f"{RESULTS}/tables/{{table}}.parquet", table=plan.TABLES),
        raw=lambda wildcards: [
            f"{RESULTS}/raw/{cell.id}/{name}"
            for cell in plan.peak_cells(STUDY)
            for name in RAW_OF_FIGURE.get(wildcards.figure, [])
        ],
        code=code("figure"),
    output:
        svg=f"{RESULTS}/figures/{{figure}}.svg",
        png=report(
            f"{RESULTS}/figures/{{figure}}.png",
            category="Figures",
            labels={"figure": "{figure}"},
            caption="../report/figure.rst",
        ),
    log:
        f"{LOGS}/figures/{{figure}}.log",
    conda:
        "../envs/perseus.yaml"
    params:
        slice=plan.figure_slice(STUDY),
    message:
        "Drawing {wildcards.figure}"
    script:
        "../scripts/figure.py"
