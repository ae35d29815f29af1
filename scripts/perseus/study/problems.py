"""Define problems of a configuration, and the error that lists all problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Place = tuple[str | int, ...]
"""A place in a configuration: a path of keys and list indices."""

Problem = tuple[Place, str]
Problems = Iterator[Problem]


def path(place: Place) -> str:
    """Return a place in a configuration as text, such as `servers[0].remote.host`."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the configuration"


def duplicates(key: str, names: Sequence[str]) -> Problems:
    """Yield a problem for each item of the section `key` that has the name of an earlier item."""
    for i, name in enumerate(names):
        first = names.index(name)
        if first < i:
            yield (key, i, "name"), f"{name!r} is already the name of {path((key, first))}"


class ConfigError(ValueError):
    """Error: the configuration is invalid. `problems` has one line for each problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = "\n".join(f"  - {problem}" for problem in problems)
        super().__init__(f"The configuration has {count}:\n{lines}")
