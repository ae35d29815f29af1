"""Cells without an answer: what the end of a run says of them, and what to measure again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ValidationError

from perseus.peak.outcome import Outcome, found_limit
from perseus.results.records import Ending

UNREADABLE = "its file cannot be read"


class _Shape(BaseModel):
    disturbed: str


class _Disturbed(BaseModel):
    """Of a file of ceilings, what is said of their quality."""

    shapes: tuple[_Shape, ...] = ()


class Ended(Ending):
    """How a cell ended, and what a search estimated, which stands where its server wandered."""

    estimate_scale: float | None = None
    posterior_scales: tuple[float, ...] = ()
    others: str = ""

    @property
    def is_crowded(self) -> bool:
        """Whether others worked on its server, and no rate passed with confidence."""
        return self.outcome is Outcome.UNCERTIFIED and bool(self.others)

    @property
    def may_pass(self) -> bool:
        return self.outcome.may_pass or self.is_crowded

    @property
    def is_estimated(self) -> bool:
        return found_limit(self.outcome, self.estimate_scale, self.posterior_scales)


def unanswered(records: Iterable[Path]) -> dict[Path, Ended]:
    """By its record.json, how each cell ended that has none, or an estimate in trouble that may
    pass; cells that were not measured aside."""
    endings = {path: _ending(path) for path in records if path.is_file()}
    return {
        path: ending
        for path, ending in endings.items()
        if ending.is_crowded or not ending.outcome.is_answer
    }


def disturbed(ceilings: Iterable[Path]) -> dict[Path, str]:
    """By its file, what other processes did while a ceiling of the client was looked for."""
    found = {path: _disturbed(path) for path in ceilings if path.is_file()}
    return {path: what for path, what in found.items() if what}


def worth_again(records: Iterable[Path], ceilings: Iterable[Path]) -> list[Path]:
    """Outputs of those whose trouble may pass, the folders of cells and the files of ceilings; who
    is blocked by one of these cells follows it."""
    cells = [path.parent for path, ending in unanswered(records).items() if ending.may_pass]
    return cells + list(disturbed(ceilings))


def last_words(
    records: Sequence[Path],
    ceilings: Sequence[Path],
    configfiles: Sequence[Path] = (),
    overrides: Mapping[str, object] | None = None,
) -> Iterator[str]:
    """Lines for the terminal: what has no answer, why, and what to do; none if all has.

    `configfiles` and `overrides` are those of the command that ran.
    """
    found = unanswered(records)
    for is_estimated, have in ((False, "no answer"), (True, "an estimate to be doubted")):
        cells = {path: end for path, end in found.items() if end.is_estimated is is_estimated}
        if cells:
            yield f"{len(cells)} of {len(records)} cells have {have}:"
        for path, ending in cells.items():
            beside = f"; {ending.others}" if ending.is_crowded else ""
            outcome = ending.outcome.replace("_", " ")
            yield f"  {path.parent.name}: {outcome}: {ending.reason}{beside}"
    for path, what in disturbed(ceilings).items():
        yield f"The client's ceiling beside {path.stem} was disturbed: {what}"
    if again := worth_again(records, ceilings):
        by_make = "" if overrides else f"{_make_again(configfiles)}, or "
        yield f"Measure these again, and what depends on them: {by_make}your command with"
        yield f"  --forcerun {' '.join(map(str, again))}"


def _make_again(configfiles: Sequence[Path]) -> str:
    """The command of the study that these configure; it knows of nothing that overrides them."""
    here = Path.cwd()
    named = [f.relative_to(here) if f.is_relative_to(here) else f for f in configfiles]
    files = [f"CONFIGFILE={' '.join(map(str, named))}"] if named else []
    return shlex.join(["make", "again", *files])


def _ending(record: Path) -> Ended:
    try:
        return Ended.model_validate_json(record.read_bytes())
    except ValidationError:
        return Ended(outcome=Outcome.FAILED, reason=UNREADABLE)


def _disturbed(ceilings: Path) -> str:
    try:
        shapes = _Disturbed.model_validate_json(ceilings.read_bytes()).shapes
    except ValidationError:
        return UNREADABLE
    return next((shape.disturbed for shape in shapes if shape.disturbed), "")
