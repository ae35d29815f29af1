"""Conclusions of the report: each module answers the question of its name.

Every kind of experiment except the peak has a module of its own name; those of the peak come first.
The function `conclusions` of a module makes its conclusions from the tables of a study: none if the
study did not ask the question. A question with possibly many conclusions has labels for them in
`summary`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from perseus.report.conclusions.summary import summed_up
from perseus.study.experiments import OTHER_KINDS

if TYPE_CHECKING:
    from perseus.report.conclusions.conclusion import Conclusion, Tables

QUESTIONS: Final = (
    *("servers_to_buy", "over_demand", "server_of_model", "recommended", "runtimes", "sharing"),
    *("cheapest", "predicted", *OTHER_KINDS, "copies"),
)
"""The modules, in the order of the report."""


def module_of(question: str) -> Any:
    return import_module(f"{__name__}.{question}")


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Return all conclusions of a study; many on one question become one.

    A study with only the preset smoke has no conclusion except that of `sharing`, which says so.
    """
    is_smoke = len(tables["peaks"]) > 0 and (tables["peaks"]["preset"] == "smoke").all()
    for question in ("sharing",) if is_smoke else QUESTIONS:
        yield from summed_up(list(module_of(question).conclusions(tables)), question)
