"""Compare the results of two studies."""

import sys
from pathlib import Path

from perseus.host.job import job
from perseus.report.comparison import files, text
from perseus.results.check import ContradictionError, check_comparison
from perseus.results.compare.source import CompareError, read_source
from perseus.results.compare.table import compare
from perseus.study.tasks.compare import CompareTask
from perseus.study.tasks.figure import FigureTask

with job(snakemake.log[0], CompareError, ContradictionError):
    task = CompareTask.model_validate(snakemake.params.task)
    found = compare(read_source(Path(task.base)), read_source(Path(task.new)))
    check_comparison(found.table)
    style = FigureTask.model_validate(snakemake.params.style)
    files.write(found, style, Path(snakemake.output.summary).parent)
    print(*text.terminal(found), sep="\n", file=sys.stderr)
