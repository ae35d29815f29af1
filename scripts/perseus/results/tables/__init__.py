"""Tables: each module defines the table of its name.

Every kind of experiment except the peak has a table of its own name, and may have more; the first
four tables belong to the peak. Each module has SCHEMA, the columns and rules (`results.schema`);
DESCRIPTION, a sentence for the data dictionary; and `rows`, which computes the rows from the
results of a study, or from its predictions for the tables PREDICTIONS. RECORD is the class of the
records of a kind of experiment that adds keys to the record. Tables with a section of their own in
the report, such as those of the kinds, also have TITLE, NOTE and SHOWN: the headings, each with its
column or its three columns (value and interval).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from perseus.study.experiments import OTHER_KINDS

if TYPE_CHECKING:  # Snakemake needs only the list of tables
    from collections.abc import Mapping
    from pathlib import Path

    import pyarrow as pa

    from perseus.results.predictions import Predictions
    from perseus.results.study_results import StudyResults

MORE: Final = {"concurrency": ("knees",), "catalogue": ("catalogue_predictions",)}
"""Further tables of each kind of experiment."""

OF_KINDS: Final = tuple(name for kind in OTHER_KINDS for name in (kind, *MORE.get(kind, ())))
"""The tables of the other kinds of experiments, in the order in which the report shows them."""

PREDICTIONS: Final = ("predictions", "prediction_errors")
"""Tables of predictions. A job of its own makes them, since they take long in a large study and
do not depend on prices."""

TABLES: Final = (
    "peaks",
    "tenants",
    "costs",
    "other_costs",
    "savings",
    *PREDICTIONS,
    "ceilings",
    "attainment",
    "operating_points",
    "operating_point_draws",
    "fleets",
    "fleet_servers",
    "fleet_models",
    "fleet_changes",
    "crossings",
    "break_even",
    "recommendations",
    "grid",
    "runtimes",
    *OF_KINDS,
)

TABLES_OF_RESULTS: Final = tuple(name for name in TABLES if name not in PREDICTIONS)


def module_of(table: str) -> Any:
    return import_module(f"{__name__}.{table}")


def make(results: StudyResults) -> dict[str, pa.Table]:
    """Return all tables by name, without PREDICTIONS."""
    return {name: table(name, results) for name in TABLES_OF_RESULTS}


def make_predictions(predictions: Predictions) -> dict[str, pa.Table]:
    """Return the tables PREDICTIONS by name."""
    return {name: table(name, predictions) for name in PREDICTIONS}


def write(made: Mapping[str, pa.Table], folder: Path) -> None:
    """Write each table as Parquet and as CSV."""
    from perseus.host import parquet

    for name, each in made.items():
        parquet.write(each, folder / f"{name}.parquet", folder / f"{name}.csv")


def table(name: str, results: StudyResults | Predictions) -> pa.Table:
    """Make one table."""
    from perseus.host import parquet

    module = module_of(name)
    return parquet.table(list(module.rows(results)), module.SCHEMA.arrow)
