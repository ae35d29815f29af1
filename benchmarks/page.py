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

HEAD = """# Perseus compared with its peers

`make bench` makes this page from `benchmarks/results/*.csv`; do not edit it. To run one part:
`make bench BENCH=client`. Parts with another date or host were measured on that date and host.

**How to read the tables.** *Ratio* is ours / peer. A goal is a bound on the ratio, or on our value
if the goal begins with "ours". A condition after "with" must hold, too. Missed goals are listed as
missed. A row without a goal explains other rows. An empty value means that the tool did not report
it.
"""

ABOUT = {
    "client": """## The client

Throughput and CPU time of the load generator. A Triton model responds with zeros at once to inputs
of 602,112 bytes. The server runs on one core and the client on another core, over gRPC, shared
memory and HTTP. Both tools are measured from outside over the same time: the counters of the server
give the requests, and the kernel gives the CPU time. perf_analyzer runs with and without `--async`;
the table has the faster of the two. A closed loop keeps a fixed number of requests in flight. With
many requests in flight, either tool saturates the core of the server. Therefore the goals for CPU
time use an open loop, in which both tools offer the same Poisson arrivals; the table has the mode
of perf_analyzer that sends on schedule with the least CPU time. *Send lag* is measured in an open
loop at half the rate of the closed loop.
""",
    "honesty": """## Correctness of measured percentiles

A Triton model that sleeps for a known time per request is a queue whose latency percentiles are
known. A simulation of this queue over a million requests gives the true percentiles, with the
service time calibrated on the running server. Perseus and perf_analyzer measure the same server one
after the other. perf_analyzer runs with its defaults (four threads, each waits for its response)
and with `--async`, and stops by its own rule, mostly within a minute. Perseus measures for 240 s.
""",
    "search": """## The cost of a peak

Number of requests and seconds of a search, and its error. Each search ran with many seeds in
virtual time, against queues with a known limit. Requests and seconds are means, the error is the
median. The ramp of the 2020 study and the search of perf_analyzer are simulated from their
descriptions. Where a description is incomplete, the simulation uses the variant that is better for
them (`benchmarks/ramp.py`, `benchmarks/peer_search.py`). `quick` and `standard` are presets of
Perseus; the goals are for `quick`.
""",
    "live": """## The cost of a peak on a live server

The same comparison on a real server with a known service time, with the preset `quick`;
perf_analyzer runs its own search. The speed of the host changes, and so does the true limit. The
true limit is computed from the mean service time just before and just after a search. All passes of
the ramp would take too long, so their number comes from virtual time; the table names the passes
that were run.
""",
    "limit": """## The distance to the limit

Certified images/s through Triton, divided by images/s of the same network and runtime in a loop in
one process, on the same core with one thread. The load has constant gaps and the SLA is wide (p95
within many service times), so the CPU is the limit, not a queue. Windows run at several shares of
the closed-loop rate; the certified rate is the highest rate whose fresh window passes. Inputs are
in system shared memory.
""",
    "coverage": """## Coverage of the intervals

Searches with the preset `quick` against simulated servers, in virtual time. The truth is the limit
in a long run. On a host whose speed changes, it is the limit at the median speed of the search
(docs/explanation/accuracy.md). Goals: at most one tenth of the certified rates exceed the truth,
because the verdicts of `quick` have a confidence of 90 %; and 95 % of the intervals contain the
truth. The hosts with bursts that were not used for development change their speed so much that they
have no single limit. There, the interval must contain a rate between the long-run limit and the
limit at the usual speed. The last case draws another server at random for each search; no constant
was tuned on these servers.
""",
    "sharing": """## Coverage of the sharing ratio

Studies of two models in virtual time: three cells one after another with `quick`, each model alone
and then both, on a host whose speed keeps changing. The truth is the ratio on an idle host. The
interval must contain the truth in 95 % of 100 studies. Every cell has saturation probes, which
correct the dedicated peaks for the speed of the shared cell (docs/explanation/sharing-ratio.md).
Without these probes, the ratio includes the change of the host between the cells.
""",
    "ablation": """## Contribution of each rule of the estimate

Each rule of the estimate is removed in turn (ours) and compared with all rules (peer), on the
windows of the same searches with the preset `quick`, in virtual time. Means are over servers on
which constants were tuned, and over servers on which none was. Each share comes from 70 to 100
searches; its standard error is 2.5 % near 95 %. There are no goals. docs/explanation/accuracy.md
draws the conclusions.
""",
    "repeats": """## Coverage of the intervals from few repeats

2,000 simulated studies with a known truth for each row, without servers. Each repeat estimates its
own limit to 2 %, and repeats differ by the stated amount. Rows are for a single peak, and for the
sharing ratio of two tenants, which uses three peaks. Intervals must contain the truth in 95 % of
the studies. On real hosts, limits changed by 5 to 20 % (docs/explanation/repeats.md).
""",
    "repeatability": """## Repeatability

The default study with one mix, repeated on restarted servers: on the unchanged host, and beside a
process that uses the core of the server in bursts. The seeds are the same, so all differences come
from the host. *Deviation* is the standard deviation of the logarithm. For an interval, it is the
width on that scale, divided by 3.92.
""",
    "noise": """## The noise of this host

A closed loop with four requests in flight keeps a model busy. The times between responses are the
service times. `benchmarks/noise/` has recordings, which the part on coverage replays. *Deviation*
is the standard deviation of the logarithm of the mean over the stated number of seconds.
""",
    "planning": """## Planning ten thousand cells

Dry runs of three workflows: the study `scale` from an empty folder; a workflow whose only rule
makes as many files; and a workflow whose jobs declare the same inputs, outputs, logs and parameters
as cells do, and look them up in a table, which is the time that Snakemake itself needs. The runs
alternate; values are medians of three.
""",
    "aggregation": """## Tables over many requests

The study `scale` with one repeat, with synthetic raw results: requests, windows and samples in the
format of real cells. Predictions, all other tables, each figure and the report are each made by one
process, with none of its inputs in the page cache. *Memory* is the peak memory of the process.
Tables read windows and records only; figures also read the requests of the windows that they show.
A separate job makes the tables of predictions and simulates all mixes and unmeasured pairs in
virtual time.

The time depends on the number of cells and mixes, not on the number of requests: for as many cells
with a hundredth of the requests, tables take about as long (medians of three alternating runs).
""",
    "planner": """## The cheapest fleet

The integer programme of a fleet for random models, each alone and in as many random pairs on four
types of servers, solved by SciPy's HiGHS as in Perseus, and by PuLP with CBC. Both stop at a gap of
0.01 % or after a minute. Over the demand: the number of servers of the cheapest type for each of
121 demands, up to a hundred servers, and for every tenth of them by CBC.
""",
    "compare": """## Differences that a comparison finds

Pairs of simulated studies with a known truth, without servers: two models alone and three mixes,
compared as by `snakemake compare`. There are 200 pairs of equal servers, and 100 pairs in which one
server is 10 % faster. A pair is flagged if any of its rows (peaks, sharing ratios, p95, costs) is
better or worse. Each simulated search states an error of 2 % and has an actual error of 1 %.
(Searches of `standard` in virtual time stated 0.1 to 9 %, half of them less than 1.5 %, and were
off by at most 2 %.) Repeats differ by the stated amount. Where stated, the host also changes
between the two studies; the studies cannot detect this change. Rows without a goal have conditions
for which `standard` or a comparison has no guarantee.
""",
    "prediction": """## Predicted sharing

Pairs of models that share a server: the sharing ratio at the measured limit, predicted from the
dedicated measurements of both models by each prediction model (docs/explanation/frontier.md).
`benchmarks/pairs/` has the measurements, one file for each study: on one core with ONNX Runtime,
six small CNNs, the same beside copies of themselves, five other models, and four more; with
OpenVINO, five of the six, and the five others; except for the copies, each study has the mix of all
models and all pairs. The preset is `quick`. A pair is predicted without its own measurement,
without all mixes of one of its models, or without all measurements of the server. *Noise* is the
uncertainty of the measured ratios.

Each study is also replayed in 25 orders of its models, like a frontier that measures some mixes and
states an interval for each of the others: *known* is the number of measured mixes, and *by their
scatter alone* treats measured mixes as exact.
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


MAX_MISSED = 3
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
    more = [f"and {len(told) - MAX_MISSED} more"] if len(told) > MAX_MISSED else []
    return "; ".join([*told[:MAX_MISSED], *more])


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
