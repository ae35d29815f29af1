"""Predict the sharing ratios of mixes from measurements of each tenant alone.

inputs:   the raw results of all searches, the records of exports
outputs:  results/<study>/tables/{predictions,prediction_errors}.{parquet,csv}
steps:    simulate each mix, estimate the error of each prediction model
"""


rule predictions:
    """Make the tables of predictions, which do not depend on prices."""
    input:
        measured=files.measured(STUDY, "peak"),
        checks=files.all_checks(STUDY),
    output:
        expand(f"{RESULTS}/tables/{{table}}.parquet", table=PREDICTIONS),
        [
            report(f"{RESULTS}/tables/{name}.csv", category="Tables", labels={"table": name})
            for name in PREDICTIONS
        ],
    log:
        f"{LOGS}/predictions.log",
    conda:
        "../envs/perseus.yaml"
    params:
        task=planning.predictions_task(STUDY).plain(),
        code=provenance.tables_code(SOURCES, "predictions.py", PREDICTIONS),
    message:
        "Predicting sharing ratios"
    script:
        "../scripts/predictions.py"
