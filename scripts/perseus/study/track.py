"""Define the section `track` of a configuration: the MLflow tracking store to which Perseus logs
the results. The store never affects a measurement."""

from __future__ import annotations

from pydantic import Field

from perseus.study.base import Part, Text


class Track(Part):
    """The store to which Perseus logs the results of the study after it has made the report."""

    mlflow: Text | None = Field(
        default=None,
        description=(
            "The MLflow tracking store: http://HOST:PORT for a server, or sqlite:///FILE for a"
            " file. Each time the results change, Perseus adds a run to the MLflow experiment"
            " `perseus/<study>`. To use this key, install the packages of envs/mlflow.txt."
        ),
    )
