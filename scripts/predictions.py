"""Predict the sharing ratios of a study, and write the predictions as tables in Parquet and CSV.

If a sharing ratio is above 1, full shared servers cost less than full dedicated servers.
"""

from pathlib import Path

from perseus.host.job import job
from perseus.results import tables
from perseus.results.measured import folders
from perseus.results.predictions import Predictions
from perseus.study.tasks.predictions import PredictionsTask

with job(snakemake.log[0]):
    predictions = Predictions.read(
        PredictionsTask.model_validate(snakemake.params.task),
        folders(snakemake.input.measured),
        [Path(path) for path in snakemake.input.checks],
    )
    tables.write(tables.make_predictions(predictions), Path(snakemake.output[0]).parent)
