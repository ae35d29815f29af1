"""Compare predicted sharing ratios with ratios measured on real servers, by prediction model.

The measured ratios of a server in one study are stored in one small file. For a further study of
the same server, the name of the file has an additional part after a dot:

    python -m benchmarks.prediction results/interference amd-epyc
    python -m benchmarks.prediction results/copies amd-epyc copies
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import compress, groupby
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results import Goal, Row
from benchmarks.serving import Place, Say
from perseus.host.files import write_json
from perseus.models.working_sets import working_sets_bytes
from perseus.peak.frontier import rays
from perseus.peak.predicted.ladder import Known, LadderStep, Shared, predicted
from perseus.peak.predicted.left_out import (
    CONFIDENCE,
    Accuracy,
    Out,
    best,
    errors,
    errors_by_step,
    noise_of,
    of_steps_for,
)
from perseus.peak.predicted.solo import Solo
from perseus.peak.stats import Floats, Interval
from perseus.results.predictions import MeasuredRatio, shared_servers
from perseus.results.records import PeakRecord
from perseus.results.repeats import dedicated_peaks, group
from perseus.study.experiments import peak
from perseus.study.sla import Sla
from perseus.traffic.arrivals import Arrivals

BENCHMARK = "prediction"
FOLDER = Path(__file__).parent / "pairs"
ORDERS = 25
FIRST = (4, 6, 8)
"""Numbers of first mixes of a frontier from which the benchmark predicts the later mixes."""


def run(at: Place, say: Say) -> Iterator[Row]:
    """Yield the errors of all prediction models. The goal is on the errors of pairs that did not
    take part in the selection of the prediction model."""
    known = {
        server: [each for path in files for each in read(path)] for server, files in stored_files()
    }
    for out in Out:
        found = {step: _errors_of_pairs(step, out, known) for step in LadderStep}
        for step, off in found.items():
            if len(off):
                say(f"{out} left out, {step}")
                case = f"{step}, {step.description}; without the {out} ({len(off)} predictions)"
                yield Row(BENCHMARK, case, "median error (share)", float(np.median(off)))
                yield Row(BENCHMARK, case, "90th percentile (share)", float(np.quantile(off, 0.9)))
        if out is Out.MIX:
            yield _goal(_errors_of_chosen(known), found[LadderStep.UTILISATION])
    for server, files in stored_files():
        of_copies = [each for each in known[server] if each.shared.is_of_copies]
        for path in files:
            yield from _coverage(path, of_copies)
    for server, files in stored_files():
        ends = [each for path in files for each in json.loads(path.read_text())["mixes"]]
        halves = [(each["high"] - each["low"]) / 2 / each["value"] for each in ends]
        yield Row(
            BENCHMARK, server, "median half-width of measured intervals", float(np.median(halves))
        )


def stored_files() -> Iterator[tuple[str, list[Path]]]:
    for server, files in groupby(sorted(FOLDER.glob("*.json")), server_of):
        yield server, list(files)


def server_of(path: Path) -> str:
    return path.name.split(".")[0]


def _errors_of_pairs(step: LadderStep, out: Out, known: Mapping[str, Sequence[Known]]) -> Floats:
    """Return |predicted / measured - 1| of all pairs that a prediction model can predict."""
    of_all = (each for server in known for each in errors(step, out, server, known))
    off = [each.error for each in of_all if len(each.shared.solos) == 2]
    return np.abs([error for error in off if np.isfinite(error)])


def _errors_of_chosen(known: Mapping[str, Sequence[Known]]) -> Floats:
    """Return |predicted / measured - 1| of all pairs. For each pair, the function selects the
    prediction model that is best for the other mixes of the server. The function corrects the
    prediction by the mean error of this model for the other mixes."""
    return np.abs(
        [
            found.interval(predicted(found.step, each.shared, others)).value / each.ratio - 1
            for mixes in known.values()
            for each in mixes
            if len(each.shared.solos) == 2 and not each.shared.is_of_copies
            if (others := [other for other in mixes if other is not each])
            if (found := _best(each.shared, others)) is not None
        ]
    )


def _best(shared: Shared, others: Sequence[Known]) -> Accuracy | None:
    return best(of_steps_for(shared, others, errors_by_step(others)), noise_of(others))


def _goal(chosen: Floats, of_utilisation: Floats) -> Row:
    """Return the row with the median error of the predictions. The prediction of a pair uses the
    prediction model that is best for the other mixes, as for a new pair."""
    ours, lowest = float(np.median(chosen)), float(np.median(of_utilisation))
    return Row(
        BENCHMARK,
        f"the step that the other mixes select; without the mix ({len(chosen)} predictions)",
        "median error (share; lower is better)",
        ours,
        lowest,
        "B0",
        Goal("<=", 0.1, "ours", "B0 no better", ours <= lowest),
    )


def _coverage(path: Path, of_copies: Sequence[Known]) -> Iterator[Row]:
    """Replay the frontier of a study in ORDERS orders of its tenants. Predict the later mixes from
    the first mixes, and yield the share of measured ratios that lie inside the intervals of their
    predictions. A study that has only mixes of copies has no row."""
    rng, mixes = np.random.default_rng(1), _even(read(path))
    if not mixes:
        return
    names = sorted({model for models in mixes for model in models})
    orders = [_in_turn(mixes, rng.permutation(names).tolist()) for _ in range(ORDERS)]
    for first in FIRST:
        case = f"{path.stem}, {first} measured mixes"
        what = "share within the 90 % prediction interval"
        for by, claimed in (("", True), (", without the minimum width", False)):
            covered = [
                inside
                for order in orders
                for inside in _are_inside(order, first, of_copies, claimed)
            ]
            if not covered:  # the study has no further mixes
                continue
            goal = Goal(">=", CONFIDENCE, "ours")
            named = f"{case}{by} ({len(covered)} predictions)"
            yield Row(BENCHMARK, named, what, float(np.mean(covered)), goal=goal)


def _even(known: Sequence[Known]) -> dict[frozenset[str], Known]:
    """Return the mixes of different models that have equal shares of their dedicated peaks. The key
    of a mix is the set of its models."""
    return {
        each.shared.models: each
        for each in known
        if not each.shared.is_of_copies and len(set(each.shared.shares)) == 1
    }


def _in_turn(mixes: Mapping[frozenset[str], Known], tenants: Sequence[str]) -> list[Known]:
    """Return the mixes in the order in which a frontier of these tenants measures them."""
    even = (frozenset(compress(tenants, ray)) for ray in rays(len(tenants)) if max(ray) == 1)
    return [mixes[models] for models in even if models in mixes]


def _are_inside(
    mixes: Sequence[Known], first: int, of_copies: Sequence[Known], claimed: bool
) -> Iterator[bool]:
    """Predict each later mix from the first mixes, and yield whether the measured ratio of the
    later mix lies in the predicted interval. If `claimed` is true, the interval includes
    the uncertainty of the measured mixes."""
    known = [*mixes[:first], *of_copies]
    off, noise = errors_by_step(known), noise_of(known) if claimed else 0.0
    for each in mixes[first:]:
        if (found := best(of_steps_for(each.shared, known, off), noise)) is not None:
            stated = found.interval(predicted(found.step, each.shared, known))
            yield stated.low <= each.ratio <= stated.high


def summary(mixes: Sequence[MeasuredRatio]) -> dict[str, Any]:
    """Return the stored values of the measured mixes of a server, as plain data."""
    return {
        "solos": {
            name: asdict(solo)
            | {"sla": solo.sla.plain(), "work_s": np.round(solo.work_s, 7).tolist()}
            for each in mixes
            for (name, _), solo in zip(each.weights, each.known.shared.solos, strict=True)
        },
        "mixes": [
            {"weights": dict(each.weights), **asdict(each.ratio.interval())} for each in mixes
        ],
    }


def read(path: Path) -> list[Known]:
    """Return the mixes of a file. All files are from measurements with Poisson arrivals."""
    stored = json.loads(path.read_text())
    solos = {
        name: Solo(
            **plain | {"sla": Sla.model_validate(plain["sla"]), "work_s": np.array(plain["work_s"])}
        )
        for name, plain in stored["solos"].items()
    }
    return [
        Known(
            Shared.of(
                [solos[name] for name in mix["weights"]], list(mix["weights"].values()), Arrivals()
            ),
            mix["value"],
            Interval(mix["value"], mix["low"], mix["high"]).log_deviation,
        )
        for mix in stored["mixes"]
    ]


def keep(study: Path, host: str, part: str = "") -> Iterator[Path]:
    """Write one file for each shared server of a study, and yield the path of each file. The
    name of a file begins with `host`."""
    records = [PeakRecord.read(path.parent) for path in sorted(study.glob("raw/*/record.json"))]
    searched = [each for each in records if isinstance(each.task.run, peak.Run)]
    peaks = list(group(searched, seed=1).values())
    memory = working_sets_bytes(study.glob("models/*/check.json"))
    for server in shared_servers(peaks, dedicated_peaks(peaks), memory):
        runtime = peaks[0].task.server.runtime
        name = f"{host}-{server.name}-{runtime}"
        path = FOLDER / (f"{name}.{part}.json" if part else f"{name}.json")
        write_json(path, summary(server.measured))
        yield path


if __name__ == "__main__":
    for written in keep(Path(sys.argv[1]), *sys.argv[2:]):
        print(written)
