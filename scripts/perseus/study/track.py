"""Define the store for results outside the folder of the study. A change never repeats a
measurement."""

from __future__ import annotations

from pydantic import Field

from perseus.study.base import Part, Text


class Track(Part):
    """The store in which Perseus logs the results after it writes the report."""

    mlflow: Text | None = Field(
        default=None,
        description=(
            "The MLflow tracking store: http://HOST:PORT of a server, or sqlite:///FILE. Each"
            " change of the results becomes a run of the MLflow experiment with the name of the"
            " study. The store needs the packages of envs/mlflow.txt."
        ),
    )
