"""Run one job on the raw results of a study, in the same way as the script of its rule.

python -m benchmarks.aggregation_job <folder> <predictions, tables or report>
python -m benchmarks.aggregation_job <folder> figure <name of the figure>

Prints as JSON the seconds since the start of this process, its peak memory, and the bytes that it
read.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil


def main(folder: Path, job: str, *figure: str) -> None:
    cells = sorted((folder / "raw").iterdir())
    if job == "predictions":
        make_predictions(folder, cells)
    elif job == "tables":
        make_tables(folder, cells)
    elif job == "report":
        write_report(folder, cells)
    else:
        draw_figure(folder, cells, *figure)


# Each function imports only what the script of its rule imports, because imports take time, too.


def make_predictions(folder: Path, cells: Sequence[Path]) -> None:
    from perseus.results import tables
    from perseus.results.predictions import Predictions
    from perseus.study.tasks.predictions import PredictionsTask

    task = PredictionsTask.model_validate_json((folder / "predictions.json").read_text())
    made = tables.make_predictions(Predictions.read(task, cells, []))
    tables.write(made, folder / "tables")


def make_tables(folder: Path, cells: Sequence[Path]) -> None:
    from perseus.results import tables
    from perseus.results.study_results import StudyResults
    from perseus.study.tasks.tables import TablesTask

    task = TablesTask.model_validate_json((folder / "tables.json").read_text())
    tables.write(tables.make(StudyResults.read(task, cells, [])), folder / "tables")


def write_report(folder: Path, cells: Sequence[Path]) -> None:
    from perseus.report import page
    from perseus.study.tasks.report import ReportTask

    task = ReportTask.model_validate_json((folder / "report.json").read_text())
    drawn = sorted((folder / "figures").glob("*.svg"))
    records = [cell / "record.json" for cell in cells]
    page.write(made_tables(folder), drawn, records, task, folder / "report.html")


def draw_figure(folder: Path, cells: Sequence[Path], name: str) -> None:
    from perseus.report import drawing
    from perseus.report.figures import FIGURES
    from perseus.study.tasks.figure import FigureTask

    task = FigureTask.model_validate_json((folder / "figure.json").read_text())
    files = [folder / f"figures/{name}.{kind}" for kind in ("svg", "png", "csv")]
    drawing.draw(name, made_tables(folder), cells if FIGURES[name].reads_raw else [], task, *files)


def made_tables(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in (folder / "tables").glob("*.parquet")}


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
    (read,) = re.findall(r"^rchar: (\d+)$", Path("/proc/self/io").read_text(), re.MULTILINE)
    # ru_maxrss of getrusage would include the memory of the parent process before fork and exec.
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
