"""Derive the conclusions of the report from the tables: each module of this package answers one
question.

Every kind of experiment except `peak` and `frontier` has a module of the same name. Several modules
have conclusions on experiments of the kind `peak`. The function `conclusions` of a module yields
the answers, and nothing if the study does not ask the question. If a question has many conclusions,
the report shows one summary that counts them by kind, with the labels of the module `summary`.
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
"""Names of the modules of this package, in the order of their conclusions in the report."""


def module_of(question: str) -> Any:
    return import_module(f"{__name__}.{question}")


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield all conclusions of a study. If one question has too many conclusions, yield one summary
    in their place.

    A study with only the preset smoke has one conclusion. This conclusion is from the module
    `sharing` and says that the study has no result.
    """
    is_smoke = len(tables["peaks"]) > 0 and (tables["peaks"]["preset"] == "smoke").all()
    for question in ("sharing",) if is_smoke else QUESTIONS:
        yield from summed_up(list(module_of(question).conclusions(tables)), question)
