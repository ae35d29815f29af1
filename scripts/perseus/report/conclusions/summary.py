"""Summarise many conclusions on one question in one conclusion that counts them by kind.

The summarised conclusions become the parts of the new conclusion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from perseus.report.conclusions.conclusion import Conclusion
from perseus.report.links import MAX_LINES, PEAKS, Link, to_section
from perseus.results.tables import module_of
from perseus.study.experiments import OTHER_KINDS

MAX_SEPARATE: Final = 6
"""If a question has more conclusions than this, the report shows a summary in their place."""

NAMED: Final = 3
"""A summary repeats the headlines of at most this many of its parts."""


@dataclass(frozen=True)
class Question:
    """Rules for the summary of the conclusions on one question.

    `subject` is the noun that the headline of the summary counts, for example "soaks". `labels` has
    a text for each kind of conclusion, in the order in which the headline counts the kinds.
    `caveat` is an additional sentence of the summary. If there are more than `most` conclusions,
    the report shows the summary in their place.
    """

    subject: str
    labels: Mapping[str, str]
    most: int = MAX_SEPARATE
    caveat: str = ""


SHARING: Final = {
    "yes": "should share",
    "perhaps": "would probably gain",
    "unclear": "too close to tell",
    "no": "should not share",
    "unknown": "without a known saving",
}
"""Labels of conclusions on sharing, for different models and for copies of one model."""

BY_CHANCE: Final = (
    "Each interval is valid for a single scenario: among many scenarios, some savings arise by"
    " chance, and the largest savings are overestimated."
)

TROUBLE: Final = {
    "no": "with a problem",
    "unknown": "not known",
    "unclear": "with measured values",
    "yes": "without a problem",
}
"""Labels of the conclusions on a kind of experiment, unless MANY has other labels for the kind."""

MANY: Final[Mapping[str, Question]] = {
    "over_demand": Question(
        "groups of models over all demands",
        {
            "yes": "should share at some or all demands",
            "no": "should use dedicated servers",
            "unknown": "without a known saving",
        },
    ),
    "server_of_model": Question(
        "models with a choice of servers",
        {
            "yes": "have one cheapest server for every demand",
            "unclear": "have no single cheapest server",
        },
    ),
    "recommended": Question(
        "models and mixes with several settings",
        {
            "yes": "with a clear setting to recommend",
            "perhaps": "with only one setting to recommend",
            "unclear": "too close to tell",
            "no": "with no setting to recommend",
        },
    ),
    "runtimes": Question(
        "models with several runtimes or precisions",
        {
            "yes": "with a fastest runtime at equal precision",
            "unclear": "too close to tell",
            "unknown": "with nothing to compare at equal precision",
        },
    ),
    "sharing": Question("scenarios of different models on full servers", SHARING, caveat=BY_CHANCE),
    "predicted": Question(
        "groups of pairs that were not measured",
        {"perhaps": "need no measurement", "unclear": "predicted with a larger error"},
    ),
    **{
        kind: Question(f"conclusions on {module_of(kind).TITLE.lower()}", TROUBLE)
        for kind in OTHER_KINDS
    },
    "catalogue": Question(
        "conclusions on the cost of networks",
        {"perhaps": "on predictions", "unclear": "with a Pareto front", "unknown": "not known"},
    ),
    "soak": Question("soaks", TROUBLE | {"unclear": "too close to tell"}),
    "background": Question(
        "scenarios with tenants at fixed rates",
        {
            "yes": "with a shared server that saves money",
            "unclear": "too close to tell",
            "no": "with a shared server that costs more than dedicated servers",
            "unknown": "not known",
        },
    ),
    "copies": Question("scenarios of copies of one model on full servers", SHARING, most=1),
}
"""Rules for each question that may have many conclusions, by the name of the module with the
conclusions."""


def summed_up(conclusions: Sequence[Conclusion], name: str) -> Iterator[Conclusion]:
    """Yield the conclusions on the question of the module `name`. If there are more conclusions
    than `Question.most`, yield one summary in their place."""
    question = MANY.get(name)
    if question is None or len(conclusions) <= question.most:
        yield from conclusions
        return
    kinds = list(question.labels)
    parts = sorted(conclusions, key=lambda each: (kinds.index(each.kind), -each.rank))
    count = Counter(each.kind for each in parts)
    counted = ", ".join(f"{n} {question.labels[kind]}" for kind, n in count.items())
    # If "no" is the first label, one "no" among the conclusions makes the summary a "no".
    is_one = len(count) == 1 or parts[0].kind == kinds[0] == "no"
    is_by_chance = question.caveat and set(count) - {"no", "unknown"}
    yield Conclusion(
        parts[0].kind if is_one else "unclear",
        f"Of {len(parts)} {question.subject}: {counted}",
        (
            *(f"{each.headline}." for each in parts[:NAMED]),
            *([question.caveat] if is_by_chance else []),
            *(f"For each: {sentence}" for sentence in _common(parts)),
        ),
        _behind(parts),
        parts=tuple(parts),
    )


def _common(parts: Sequence[Conclusion]) -> list[str]:
    """Return the sentences that occur in all conclusions."""
    first, *others = parts
    return [each for each in first.sentences if all(each in of.sentences for of in others)]


def _behind(parts: Sequence[Conclusion]) -> tuple[Link, ...]:
    """Return the links from the conclusions `parts` to their evidence. If there are more than
    MAX_LINES links, return only the links that all parts have in common. If the parts have no link
    in common, return a link to the table of peaks."""
    links = tuple(dict.fromkeys(link for each in parts for link in each.behind))
    if len(links) <= MAX_LINES:
        return links
    common = tuple(link for link in links if all(link in each.behind for each in parts))
    return common or (to_section(PEAKS),)
