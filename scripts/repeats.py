"""Write the records of all repeats of a dedicated peak into one file.

A dedicated peak is the largest rate at which a model on its own server keeps its SLA.
"""

import json
from pathlib import Path

from perseus.host.files import arrived, write_json
from perseus.host.job import job
from perseus.study.raw_files import RECORD

with job(snakemake.log[0]):
    records = [json.loads(arrived(Path(cell, RECORD)).read_bytes()) for cell in snakemake.input]
    write_json(Path(snakemake.output[0]), records)
