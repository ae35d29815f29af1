"""Define the task of the job that logs a study to an MLflow tracking store."""

from __future__ import annotations

from typing import Any

from perseus.study.base import Part


class TrackTask(Part):
    """The address of the MLflow tracking store, and the configuration without default values."""

    study: str
    uri: str
    configuration: dict[str, Any]
