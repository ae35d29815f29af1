"""One job over the raw results of a study, made as the script of its rule makes it.

python -m benchmarks.aggregation_job <folder> <tables, report or a figure>

Prints as JSON the seconds from the start of this process, its largest memory, and what it read.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import psutil

from perseus.host import parquet
from perseus.report import drawing, page
from perseus.report.figures import FIGURES
from perseus.results import tables
from perseus.results.study_results import StudyResults
from perseus.study.tasks.figure import FigureTask
from perseus.study.tasks.report import ReportTask
from perseus.study.tasks.tables import TablesTask


def main(folder: Path, job: str) -> None:
    cells = sorted((folder / "raw").iterdir())
    told = (folder / f"{job if job in ('tables', 'report') else 'figure'}.json").read_text()
    if job == "tables":
        make_tables(folder, cells, TablesTask.model_validate_json(told))
    elif job == "report":
        made = {path.stem: path for path in (folder / "tables").glob("*.parquet")}
        drawn = sorted((folder / "figures").glob("*.svg"))
        records = [cell / "record.json" for cell in cells]
        task = ReportTask.model_validate_json(told)
        page.write(made, drawn, records, task, folder / "report.html")
    else:
        made = {path.stem: path for path in (folder / "tables").glob("*.parquet")}
        files = [folder / f"figures/{job}.{kind}" for kind in ("svg", "png", "csv")]
        style = FigureTask.model_validate_json(told)
        drawing.draw(job, made, cells if FIGURES[job].raw else [], style, *files)


def make_tables(folder: Path, cells: list[Path], task: TablesTask) -> None:
    for name, made in tables.make(StudyResults.read(task, cells, [])).items():
        parquet.write(made, folder / f"tables/{name}.parquet", folder / f"tables/{name}.csv")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
    (read,) = re.findall(r"^rchar: (\d+)$", Path("/proc/self/io").read_text(), re.MULTILINE)
    # Not getrusage's ru_maxrss: across fork and exec that keeps the memory of whoever started this.
    status = Path("/proc/self/status").read_text()
    (most_kib,) = re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    print(
        json.dumps(
            {
                "took_s": time.time() - psutil.Process().create_time(),
                "rss_bytes": int(most_kib) * 1024,
                "read_bytes": int(read),
            }
        )
    )
