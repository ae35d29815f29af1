"""Find the cells without a result, and make the message at the end of a run. The message says how
to measure these cells again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ValidationError

from perseus.peak.outcome import Outcome, found_limit
from perseus.results.records import Ending

UNREADABLE = "its result file cannot be read"


class _Shape(BaseModel):
    disturbed: str


class _Disturbed(BaseModel):
    """Part of a file of client ceilings: whether other processes disturbed the measurement."""

    shapes: tuple[_Shape, ...] = ()


class Ended(Ending):
    """Outcome of a cell, its estimated peak if there is one, and the load of other processes.

    A cell may have a valid estimate even if its outcome is not ok.
    """

    estimate_scale: float | None = None
    posterior_scales: tuple[float, ...] = ()
    other_load: str = ""

    @property
    def is_on_busy_host(self) -> bool:
        """True if the search certified no rate while other processes used the server's cores or
        GPUs. A new measurement on an idle host may then certify a rate."""
        return self.outcome is Outcome.UNCERTIFIED and bool(self.other_load)

    @property
    def is_temporary(self) -> bool:
        return self.outcome.is_temporary or self.is_on_busy_host

    @property
    def is_estimated(self) -> bool:
        return found_limit(self.outcome, self.estimate_scale, self.posterior_scales)


def failed_cells(records: Iterable[Path]) -> dict[Path, Ended]:
    """Return the outcome of each cell that has no result or should be measured again, by the path
    of its record.json.

    The function leaves out cells that have no record.json yet.
    """
    endings = {path: _ending(path) for path in records if path.is_file()}
    return {
        path: ending
        for path, ending in endings.items()
        if ending.is_on_busy_host or not ending.outcome.is_result
    }


def disturbed_ceilings(ceilings: Iterable[Path]) -> dict[Path, str]:
    """Return the files of client ceilings whose measurement other processes disturbed, each with a
    text that names the disturbance."""
    found = {path: _disturbed(path) for path in ceilings if path.is_file()}
    return {path: what for path, what in found.items() if what}


def outputs_to_repeat(records: Iterable[Path], ceilings: Iterable[Path]) -> list[Path]:
    """Return the folders of cells and the files of client ceilings that failed temporarily, and
    that Perseus should measure again.

    Each blocked cell depends on such a cell or file, so Snakemake then also measures the blocked
    cells again.
    """
    cells = [path.parent for path, ending in failed_cells(records).items() if ending.is_temporary]
    return cells + list(disturbed_ceilings(ceilings))


def final_message(
    records: Sequence[Path],
    ceilings: Sequence[Path],
    configfiles: Sequence[Path] = (),
    overrides: Mapping[str, object] | None = None,
    *,
    has_make: bool = True,
) -> Iterator[str]:
    """Yield lines for the terminal: the cells without a result, the reasons, and the command that
    measures them again.

    `configfiles` and `overrides` are the arguments of the snakemake command that ran. `has_make` is
    true if the working directory has the Makefile of Perseus, and if the command measured on this
    machine. The lines name `make again` only if `has_make` is true and the command had no
    `overrides`.
    """
    found = failed_cells(records)
    for is_estimated, have in ((False, "no result"), (True, "a doubtful estimate")):
        cells = {path: end for path, end in found.items() if end.is_estimated is is_estimated}
        if cells:
            yield f"{len(cells)} of {len(records)} cells have {have}:"
        for path, ending in cells.items():
            beside = f"; {ending.other_load}" if ending.is_on_busy_host else ""
            outcome = ending.outcome.replace("_", " ")
            yield f"  {path.parent.name}: {outcome}: {ending.reason}{beside}"
    for path, what in disturbed_ceilings(ceilings).items():
        yield f"The measurement of the client ceiling for {path.stem} was disturbed: {what}"
    if again := outputs_to_repeat(records, ceilings):
        has_spaces = any(" " in str(file) for file in configfiles)
        by_make = (
            "" if overrides or has_spaces or not has_make else f"{_make_again(configfiles)}, or "
        )
        yield (
            "To measure these cells and ceilings again, and all cells that depend on them, run:"
            f" {by_make}your command with"
        )
        yield f"  --forcerun {' '.join(map(str, again))}"


def _make_again(configfiles: Sequence[Path]) -> str:
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
