"""Make the tables of a study. Each module of this package defines the table of the same name.

The results of the experiments `peak` and `frontier` are in several tables, such as `peaks`,
`tenants` and `savings`. Each other kind of experiment has a table of the same name, and some kinds
have additional tables (MORE).

Each module has these names:

- SCHEMA: the columns and rules of the table (see `results.schema`).
- DESCRIPTION: a text for the data dictionary (docs/reference/data.md).
- `rows`: a function that computes the rows of the table from the results of a study or, for a table
  in PREDICTIONS, from its predictions.
- RECORD, if this kind of experiment adds keys to record.json: the class that defines these keys.
- TITLE, NOTE and SHOWN, if the report shows the table in a section of its own. SHOWN maps each
  column heading in the report to a column of the table. A heading of a value with an interval has
  three columns of the table: the value, and the lower and the upper end of the interval.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from perseus.study.experiments import OTHER_KINDS

if TYPE_CHECKING:  # Snakemake imports only the names of the tables
    from collections.abc import Mapping
    from pathlib import Path

    import pyarrow as pa

    from perseus.results.predictions import Predictions
    from perseus.results.study_results import StudyResults

MORE: Final = {"concurrency": ("knees",), "catalogue": ("catalogue_predictions",)}
"""Additional tables of some kinds of experiments, by kind."""

OF_KINDS: Final = tuple(name for kind in OTHER_KINDS for name in (kind, *MORE.get(kind, ())))
"""Tables of all kinds of experiments except `peak` and `frontier`, in the order in which the report
shows them."""

PREDICTIONS: Final = ("predictions", "prediction_errors")
"""Tables of predictions. A separate job makes these tables: the predictions of a large study take
long, and do not change if only prices change."""

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
    """Return all tables except the tables in PREDICTIONS, by name."""
    return {name: table(name, results) for name in TABLES_OF_RESULTS}


def make_predictions(predictions: Predictions) -> dict[str, pa.Table]:
    return {name: table(name, predictions) for name in PREDICTIONS}


def write(made: Mapping[str, pa.Table], folder: Path) -> None:
    from perseus.host import parquet

    for name, each in made.items():
        parquet.write(each, folder / f"{name}.parquet", folder / f"{name}.csv")


def table(name: str, results: StudyResults | Predictions) -> pa.Table:
    from perseus.host import parquet

    module = module_of(name)
    return parquet.table(list(module.rows(results)), module.SCHEMA.arrow)
