"""Log the results to an MLflow tracking store, for studies with `track: {mlflow: URI}`.

inputs:   report, tables, figures
outputs:  results/<study>/tracked.json, with the ids of the MLflow experiment and run
steps:    log configuration, peaks, sharing ratios, costs, fleets and files as one run
"""


rule track:
    """Log the results as one run of the MLflow experiment perseus/<study>."""
    input:
        tables=expand(f"{RESULTS}/tables/{{table}}.parquet", table=TABLES),
        artifacts=[
            f"{RESULTS}/report.html",
            expand(f"{RESULTS}/tables/{{table}}.csv", table=TABLES),
            FIGURE_FILES,
        ],
    output:
        f"{RESULTS}/tracked.json",
    log:
        f"{LOGS}/track.log",
    localrule: True
    conda:
        "../envs/perseus.yaml"
    params:
        task=TRACK_TASK.plain() if TRACK_TASK else None,
        code=SOURCES.fingerprint(["track.py"]),
    message:
        "Logging the results to MLflow"
    script:
        "../scripts/track.py"
