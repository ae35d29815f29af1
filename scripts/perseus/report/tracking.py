"""Log a study to an MLflow tracking store: one run with its configuration, results and files.

Only this module imports MLflow. Perseus uses this module only for a study whose configuration has
`track: {mlflow: URI}`, so other studies work without MLflow.
"""

from __future__ import annotations

import os
import re
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pandas as pd

from perseus.host.version import VERSION
from perseus.results.scenario_names import with_scenario_names
from perseus.study.tasks.track import TrackTask

if TYPE_CHECKING:
    from mlflow import MlflowClient

INSTALL: Final = "pip install -r envs/mlflow.txt"
SETTINGS: Final = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}
"""Settings of MLflow that apply unless the user sets other values: no usage statistics, and short
timeouts."""

LOGGED: Final = {
    "peaks": ("mix", ("estimate_rps", "ci_low_rps", "ci_high_rps", "certified_rps")),
    "savings": ("mix", ("sharing_ratio", "saving", "ci_low", "ci_high", "probability_of_saving")),
    "costs": ("mix pricing", ("usd_per_hour", "usd_per_million_inferences")),
    "fleets": ("level strategy", ("servers", "usd_per_month", "saving")),
}
"""Columns that become metrics, by table. An entry is a pair. The first part names the columns that
distinguish the rows of a server, and the second part names the columns that become metrics."""

MAX_VALUES, MAX_CHARACTERS = 100, 6000
"""The API of MLflow accepts at most MAX_VALUES parameters or metrics in one request, and at most
MAX_CHARACTERS characters in the value of a parameter."""

MAX_NAME: Final = 250
"""MLflow accepts names with at most this many characters."""

NOT_IN_PARTS: Final = re.compile(r"[^\w\-. :]|^\.{0,2}$", re.ASCII)
"""Perseus replaces matches of this pattern in each part of a name by underscores. MLflow accepts a
name only if it is a normalised relative path, so no part may be empty, ".", or "..", or contain a
slash."""


Logged = TypeVar("Logged")


class TrackingError(Exception):
    """Error: Perseus cannot log to the MLflow store. The message says why, and what to do."""


def require_store(uri: str, study: str) -> None:
    """Raise TrackingError if MLflow is not installed, if the store does not answer, or if the
    experiment of the study is deleted."""
    name = experiment_name(study)
    try:
        found = _client(uri).get_experiment_by_name(name)
    except ModuleNotFoundError as error:
        raise TrackingError(f"track.mlflow: {error}. Install this package: {INSTALL}") from None
    except Exception as error:
        raise TrackingError(
            f"track.mlflow: the store {uri} does not answer: {_first_line(error)}. Start the"
            " store, or remove the key track"
        ) from error
    if found and found.lifecycle_stage == "deleted":
        raise TrackingError(
            f"track.mlflow: the experiment {name!r} of the store {uri} is deleted. Give the study"
            f" another name, or restore the experiment: MLFLOW_TRACKING_URI={uri} mlflow"
            f" experiments restore --experiment-id {found.experiment_id}"
        )


def experiment_name(study: str) -> str:
    return f"perseus/{study}"


def track(task: TrackTask, tables: Mapping[str, Path], files: Sequence[Path]) -> dict[str, str]:
    """Log one run to the store, and return the id of the experiment and the id of the run.

    `tables` maps the name of a table to its Parquet file. `files` become artifacts of the run, with
    paths relative to the folder of the study. The function raises TrackingError if the store does
    not accept the results.
    """
    frames = with_scenario_names(
        {name: pd.read_parquet(tables[name]) for name in ("peaks", *LOGGED)}
    )
    require_store(task.uri, task.study)
    client = _client(task.uri)
    try:
        return _log(client, task, frames, files)
    except Exception as error:
        raise TrackingError(
            f"track.mlflow: {task.uri} does not accept the results: {_first_line(error)}"
        ) from error


def _client(uri: str) -> MlflowClient:
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)


def _log(
    client: MlflowClient,
    task: TrackTask,
    frames: Mapping[str, pd.DataFrame],
    files: Sequence[Path],
) -> dict[str, str]:
    from mlflow.entities import Metric, Param

    name = experiment_name(task.study)
    found = client.get_experiment_by_name(name)
    experiment = found.experiment_id if found else client.create_experiment(name)
    now_ms = round(time.time() * 1000)
    started = time.strftime("%Y-%m-%d %H:%M:%S")
    tags = {"perseus.version": VERSION}
    run = client.create_run(experiment, now_ms, tags, run_name=started).info.run_id
    try:
        for params in _batches([Param(*each) for each in parameters(task.configuration)]):
            client.log_batch(run, params=params)
        for values in _batches([Metric(*each, now_ms, 0) for each in metrics(frames)]):
            client.log_batch(run, metrics=values)
        client.log_dict(run, task.configuration, "configuration.yaml")
        for file in files:
            folder = file.parent.name
            client.log_artifact(run, str(file), None if folder == task.study else folder)
    except BaseException:  # also after Ctrl-C
        with suppress(Exception):  # the store may no longer answer
            client.set_terminated(run, "FAILED")
        raise
    client.set_terminated(run)
    return {"experiment_id": experiment, "run_id": run}


def parameters(configuration: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the keys of the configuration and their values as text, as parameters of the run.

    If a key belongs to an entry of a list, its name contains the `name` of the entry. If the entry
    has no `name`, the name of the key contains the number of the entry in the list.
    """
    for place, value in _leaves(configuration, ()):
        yield _name(place), str(value)[:MAX_CHARACTERS]


def metrics(frames: Mapping[str, pd.DataFrame]) -> Iterator[tuple[str, float]]:
    """Yield the finite values of peaks, sharing ratios, costs and fleets as metrics of the run.

    The name of a metric consists of the name of the table, the values that identify the row, and
    the name of the column. If several load lines of a server have the same description, the name
    also contains the name of the load line.
    """
    for table, (keys, columns) in LOGGED.items():
        rows = frames[table].to_dict("records")
        places = [
            tuple(str(row[key]) for key in ("server", *keys.split()) if key in row) for row in rows
        ]
        count = Counter(places)
        for row, place in zip(rows, places, strict=True):
            if count[place] > 1 and "load_line" in row:
                place = (*place, row["load_line"])
            for column in columns:
                if pd.notna(row[column]) and abs(row[column]) != float("inf"):
                    yield _name((table, *place, column)), float(row[column])


def _batches(items: list[Logged]) -> Iterator[list[Logged]]:
    return (items[i : i + MAX_VALUES] for i in range(0, len(items), MAX_VALUES))


def _leaves(value: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*place, str(key)))
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        for number, item in enumerate(value):
            yield from _leaves(item, (*place, str(item.get("name", number))))
    else:
        yield place, value


def _name(place: Sequence[str]) -> str:
    """Return the name of a parameter or metric, made of its parts and valid in MLflow. If the name
    is longer than MAX_NAME, a checksum replaces the middle of the name, so that different names
    stay different."""
    name = "/".join(NOT_IN_PARTS.sub("_", part) for part in place)
    if len(name) <= MAX_NAME:
        return name
    end = f"_{zlib.crc32(name.encode()):08x}/{name.rpartition('/')[2]}"
    return f"{name[: MAX_NAME - len(end)]}{end}"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)[:300]
