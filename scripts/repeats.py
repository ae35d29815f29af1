"""Put the records of the repeats of a dedicated peak into one file."""

import json
from pathlib import Path

from perseus.host.files import write_json
from perseus.host.job import job

with job(snakemake.log[0]):
    records = [json.loads(Path(record).read_bytes()) for record in snakemake.input]
    write_json(Path(snakemake.output[0]), records)
