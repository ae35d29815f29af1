"""Define the task: log a study to an MLflow tracking store."""

from __future__ import annotations

from typing import Any

from perseus.study.base import Part


class TrackTask(Part):
    """The tracking store, and the configuration of the study without default values."""

    study: str
    uri: str
    configuration: dict[str, Any]
