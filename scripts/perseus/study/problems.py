"""Define the problems of a configuration, and the error that lists all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Place = tuple[str | int, ...]
"""A place in a configuration: the keys and list indices that lead to a value."""

Problem = tuple[Place, str]
"""The place of an invalid value, and a text that says what is wrong and what to do."""

Problems = Iterator[Problem]


def path(place: Place) -> str:
    """Return a place in a configuration as text for messages, such as `servers[0].remote.host`."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the configuration"


def duplicates(key: str, names: Sequence[str]) -> Problems:
    """Yield a problem for each item of the list `key` that has the same name as an earlier item.
    `names` contains the names of all items."""
    for i, name in enumerate(names):
        first = names.index(name)
        if first < i:
            yield (key, i, "name"), f"{name!r} is already the name of {path((key, first))}"


class ConfigError(ValueError):
    """Error: the configuration is invalid. `problems` contains one line for each problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = "\n".join(f"  - {problem}" for problem in problems)
        super().__init__(f"The configuration has {count}:\n{lines}")
