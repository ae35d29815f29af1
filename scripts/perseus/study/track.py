"""A store for results outside the study's folder; a change never re-measures."""

from __future__ import annotations

from pydantic import Field

from perseus.study.base import Part, Text


class Track(Part):
    """Where the results are logged after the report is written."""

    mlflow: Text | None = Field(
        default=None,
        description="The MLflow tracking store: http://HOST:PORT of a server, or sqlite:///FILE."
        " Each change of the results is a run of the experiment with the study's name. Needs the"
        " packages of envs/mlflow.txt.",
    )
