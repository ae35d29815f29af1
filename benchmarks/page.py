"""docs/explanation/benchmarks.md, made from the tables and the records of their hosts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import read_cells

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs/explanation/benchmarks.md"

HEAD = """# Perseus beside its peers

Made by `make bench` from `benchmarks/results/*.csv`; do not edit. Each part runs alone, too:
`make bench BENCH=client`. Parts marked with another date or host were measured there and then.

**How to read it.** *Ratio* is ours / peer. A goal is a bound on the ratio, or on our figure alone
where it begins with "ours"; a condition behind "with" must hold besides. A missed goal stands as
missed. A row without a goal is there to explain the others. An empty figure is one that the
tool did not give.
"""

ABOUT = {
    "client": """## The client

What the load generator itself can do, and what it costs: a Triton model that answers zeros at once,
602,112-byte inputs, the server on one core and the client on another, over gRPC, through shared
memory, and over HTTP. Closed loop: so many requests are always under way. Both tools are measured
from outside, over the same span of time: requests by the server's counters, CPU time by the
kernel's. perf_analyzer runs with and without `--async`; the faster of the two stands here. With
many requests under way the server's core is full whoever loads it, so that CPU time has its goals
in an open loop, where both offer the same Poisson arrivals: the cheaper of perf_analyzer's modes
that keep up stands here. *Send lag* is how late a request leaves in an open loop at half the rate
of the closed loop.
""",
    "honesty": """## Honesty

A Triton model that sleeps a known time per request is a queue whose percentiles are known: the
truth is that queue in virtual time over a million requests, its service time calibrated on
the running server. Perseus and perf_analyzer measure the same server one after the other.
perf_analyzer runs as it comes (four threads, each waits for its answer) and with `--async`, and
ends by its own rule, mostly within a minute; Perseus measures for 240 s.
""",
    "search": """## The cost of a peak

How many requests and seconds a search takes, and how far from the true limit it ends. In virtual
time, against queues whose limit is known, each search ran with many seeds; requests and seconds are
means, the error is the median. The ramp and perf_analyzer's search are models written from their
descriptions, with the open points decided in their favour (`benchmarks/ramp.py`,
`benchmarks/peer_search.py`); `quick` and `standard` are presets of Perseus, which goals are set for
`quick`.
""",
    "live": """## The cost of a peak on a live server

The same on a real server whose service time is known, with `quick`; perf_analyzer itself searches.
The host wanders, and so does the true limit: it is that of the mean service time right before and
right after a search. The ramp's passes are counted in virtual time, because all of them would take
too long; the passes that did run are named.
""",
    "limit": """## The distance to the limit

Images/s that Perseus certifies through Triton, divided by those of the same network and runtime in
a bare loop in one process, both on the same core with one thread. The load is evenly paced and the
SLA is wide, p95 within many service times: what is asked for is the limit of the CPU, not that of a
queue. The certified rate is the highest of a ladder of shares of the closed-loop rate whose fresh
window passes. Inputs lie in system shared memory.
""",
    "coverage": """## The proof of the intervals

Searches with the preset `quick` against simulated servers, in virtual time. The truth is the limit
in a long run; on a host whose speed changes, it is the limit at the median speed of the search
(docs/explanation/accuracy.md). Goals: at most a tenth of the certified rates exceed the truth, as
the verdicts of `quick` have a confidence of 90 %, and 95 % of the intervals contain it. A host with
bursts that no rule was developed with has no single limit. There, the interval must contain a rate
between the long-run limit and the limit at the usual speed. The last case draws another server at
random in each search; no constant was tuned on any of them.
""",
    "sharing": """## The proof of the sharing ratio

What a study of two models answers, in virtual time: three cells one after another with `quick`,
each model alone and then both, on a host whose speed goes on wandering between them. The truth is
the ratio on a quiet host. The interval must have it in 95 % of 100 studies. Every cell looks at the
speed of its busy server, and the dedicated peaks are brought to that of the shared cell
(docs/method.md); without these looks the ratio has what the host did in
between.
""",
    "ablation": """## What each rule of the estimate is worth

Each rule of the estimate is removed in turn (ours) and compared with all rules (peer), on the
windows of the same searches with the preset `quick`, in virtual time. Means are over servers on
which constants were tuned, and over servers on which none was. Each share rests on 70 to 100
searches; its standard error is 2.5 % near 95 %. There are no goals. docs/explanation/accuracy.md
draws the conclusions.
""",
    "repeats": """## The proof of the intervals from few repeats

2,000 studies for each row, of a known truth and without servers. A repeat knows its own limit to
2 %, and repeats differ by more or less than that: a single peak, and the sharing ratio of two
tenants, which rests on three peaks. Intervals must have the truth in 95 % of studies; hosts were
seen to wander by 5 to 20 % (docs/explanation/repeats.md).
""",
    "repeatability": """## The same answer again

The default study with one mix, again and again from restarted servers: on the host as it was, and
beside a process that bursts on the server's core. Seeds are the same, so that what differs is the
host.
*Deviation* is the standard deviation of the logarithm; that of an interval is its width on that
scale, divided by 3.92.
""",
    "noise": """## The noise of this host

A model is kept busy by a closed loop of four, and the gaps between its answers are what its
requests took. Recordings lie in `benchmarks/noise/`; the part on the intervals replays them.
*Deviation* is the standard deviation of the logarithm of the mean over so many seconds.
""",
    "planning": """## Planning ten thousand cells

A dry run of the study `scale` from an empty folder, one of a workflow whose only rule makes as many
files, and one of a workflow whose jobs declare the inputs, outputs, logs and parameters that cells
do and find them in a table, which is what Snakemake takes for them; in turn, medians of three.
""",
    "aggregation": """## Tables over many requests

The study `scale` with one repeat, of raw results that were drawn and not measured: requests,
windows and samples as cells leave them. Predictions, all other tables, each figure and the report
are made by a process each, which finds none of its inputs in the page cache; *memory* is the most
that it had. Windows sum up their requests: tables read windows and records, and figures the
requests of those windows that they show. Predictions, which are tables with a job of their own,
simulate all mixes, and pairs that have none, in virtual time.

Time goes with cells and mixes, and not with requests: of as many cells with a hundredth of the
requests tables take about as long, medians of three in turn.
""",
    "planner": """## The cheapest fleet

The integer programme of a fleet for random models, each alone and in as many random pairs on four
types of servers, by SciPy's HiGHS as Perseus calls it, and by PuLP with CBC. Both stop at a gap of
0.01 % or after a minute. Over the demand: how many servers of the cheapest type carry each of 121
demands, up to a hundred servers' worth, and at every tenth of them by CBC.
""",
    "compare": """## What a comparison flags

Pairs of studies of a known truth and without servers: two models alone and three mixes, compared as
`snakemake compare` does. 200 pairs of the same server, 100 of one that is 10 % faster; a pair is
flagged if any of its rows (peaks, sharing ratios, p95, costs) is better or worse. A search says
2 % of its error, which is 1 % (searches of `standard` in virtual time said 0.1 to 9 %, half of them
less than 1.5 %, and were off by at most 2 %). Repeats differ by more or less than that, and so
does a host from study to study, which no study knows of itself. Without a goal is what is not asked
of `standard`, or of a comparison.
""",
    "prediction": """## Predicted sharing

Pairs of models that share a server, at the limit that was measured for them, predicted from what
each did alone by the steps of the ladder (docs/explanation/frontier.md). What was measured
is kept in `benchmarks/pairs/`, one file for each study: on one core with ONNX Runtime six small
CNNs, these beside copies of themselves, five other models, and four more; with OpenVINO five of the
six, and the five others; all together and all pairs, each with the preset `quick`. A pair is
predicted as if it, or all mixes with one of its models, or all of the server had not been measured.
*Noise* is how far the measured ratios themselves are uncertain.
And each study is gone through in 25 orders of its models, as a frontier would that measures so many
mixes and states in what interval nine of ten of the others are to lie: *known* is what it measured,
and *by their scatter alone* the same as if measured mixes were said to be exact.
""",
}

HOST = (
    ("date", "date"),
    ("seconds", "seconds it took"),
    ("cpu", "CPU"),
    ("cpus", "CPUs"),
    ("server_cores", "cores of the server"),
    ("client_cores", "cores of the client"),
    ("kernel", "kernel"),
    ("python", "Python"),
)
COLUMNS = ("case", "metric", "ours", "peer", "peer_name", "ratio", "goal", "met")


MOST_MISSED = 3
"""Goals that the overview names of a part."""

OVERVIEW = ("part", "goals met", "missed", "date", "CPU")


def page(results: Path) -> str:
    """The page of those benchmarks that have a table."""
    parts = [_read(results, name) for name in ABOUT if (results / f"{name}.csv").exists()]
    overview = "\n".join(_table(OVERVIEW, [_row(part) for part in parts]))
    return "\n".join([HEAD, overview, "", *map(_section, parts)])


@dataclass(frozen=True)
class Part:
    """One benchmark: its rows as they stand in its table, and the record of its host."""

    name: str
    rows: Sequence[Mapping[str, str]]
    about: Mapping[str, Any]

    @property
    def title(self) -> str:
        return ABOUT[self.name].partition("\n")[0].removeprefix("## ")

    @property
    def goals(self) -> Sequence[Mapping[str, str]]:
        return [row for row in self.rows if row["goal"]]

    @property
    def missed(self) -> Sequence[Mapping[str, str]]:
        return [row for row in self.goals if row["met"] == "false"]

    @property
    def met(self) -> str:
        if not self.goals:
            return "no goals"
        return f"{len(self.goals) - len(self.missed)} of {len(self.goals)}"


def _read(results: Path, name: str) -> Part:
    about = json.loads((results / f"{name}.json").read_text())
    return Part(name, read_cells(results / f"{name}.csv"), about)


def _row(part: Part) -> dict[str, str]:
    anchor = part.title.lower().replace(" ", "-")
    return {
        "part": f"[{part.title}](#{anchor})",
        "goals met": part.met,
        "missed": _missed(part),
        "date": part.about["date"],
        "CPU": part.about["cpu"],
    }


def _missed(part: Part) -> str:
    told = [f"{row['case']}: {_figure(row)}" for row in part.missed]
    more = [f"and {len(told) - MOST_MISSED} more"] if len(told) > MOST_MISSED else []
    return "; ".join([*told[:MOST_MISSED], *more])


def _figure(row: Mapping[str, str]) -> str:
    """What a goal is held against."""
    if row["goal"].startswith("ours "):
        return f"{row['ours']} ({row['goal'].removeprefix('ours ')})"
    return f"ratio {row['ratio']} ({row['goal']})"


def _section(part: Part) -> str:
    tables = [_table(COLUMNS, part.rows), _table(("", part.name), _host(part.about))]
    told = "\n\n".join("\n".join(table) for table in tables)
    goals = f"Goals met: {part.met}." if part.goals else "It has no goals."
    return "\n".join([ABOUT[part.name], goals, "", told, ""])


def _host(about: Mapping[str, Any]) -> list[dict[str, str]]:
    packages = {k: v for k, v in about["packages"].items() if v and k != "snakemake"}
    versions = ", ".join(f"{package} {version}" for package, version in packages.items())
    values = {label: _text(about[key]) for key, label in HOST} | {"versions": versions}
    return [{"": label, **dict.fromkeys(ABOUT, value)} for label, value in values.items()]


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.0f}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _table(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    yield _line([column.replace("_", " ") for column in columns])
    yield _line(["---"] * len(columns))
    yield from (_line([row[column] for column in columns]) for row in rows)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
