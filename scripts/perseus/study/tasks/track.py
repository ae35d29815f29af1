"""Define the task: log a study to an MLflow tracking store."""

from __future__ import annotations

from typing import Any

from perseus.study.base import Part


class TrackTask(Part):
    """The MLflow tracking store, and all keys of the study whose values differ from the default."""

    study: str
    uri: str
    configuration: dict[str, Any]
