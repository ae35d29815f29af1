"""Exit with an error if a comparison of two studies shows a worse result in the new study."""

from pathlib import Path

import pandas as pd

from perseus.host.job import job
from perseus.results.compare.gate import WorseError, gate

with job(snakemake.log[0], WorseError):
    gate(pd.read_parquet(snakemake.input.table), Path(snakemake.input.summary))
