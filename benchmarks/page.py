"""Write docs/evidence/benchmarks.md from the tables of the benchmarks and the records of their
hosts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import read_cells

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs/evidence/benchmarks.md"

HEAD = """# Evidence: benchmarks

- **Questions:** How does Perseus compare with other tools? Do intervals contain the true values?
- **Answer:** {met} of {goals} goals are met. The overview lists the missed goals.
- **Measured:** on the dates and processors in the overview.

`make bench` makes this page from `benchmarks/results/*.csv`; do not edit the page. To run one part,
use for example `make bench BENCH=client`.

**How to read the tables.** *Ours* is the value of Perseus, *peer* is the value of another tool,
*ratio* is ours / peer, and *truth* is the known true value of a simulated server. A time such as *5
ms* in the name of a server is its mean service time. If a goal states a condition after the word
"with", the goal is met only if this condition holds, too. The table of a part lists missed goals
first. If a part has more than {most} goals, its table does not list each met goal. Instead, the
table has the lowest, median and highest value of each metric. Rows without a goal are in the CSV
files only. *Earlier build*, in the column *date*, marks results of an earlier build of Perseus,
whose search or whose ratio at saturation was different.
"""

ABOUT = {
    "client": """## The client

**Question:** How many requests/s can the client of Perseus send, and how much CPU time does the
client need per request? **Method:** Perseus and perf_analyzer take turns to send inputs of 602,112
bytes to a Triton model that responds at once. The sender uses one core, and the server another
core. The server counts the requests, and the kernel measures the CPU time. perf_analyzer runs with
and without `--async`. The table shows the faster of these two modes. For an open loop, the table
shows the mode that sends on schedule with the least CPU time. AIPerf, the successor of
perf_analyzer, is made for language models and sends its inputs as JSON. In the comparison with
AIPerf, both tools therefore send over HTTP, with inputs of 602,112 and of 4 bytes. Perseus sends
these inputs in binary form.
""",
    "honesty": """## Measured percentiles

**Question:** Are measured percentiles correct? **Method:** A Triton model sleeps for a known time
per request, and a simulation of a million requests gives the true percentiles. Perseus and
perf_analyzer measure this server one after the other. Perseus measures for 240 s, and perf_analyzer
stops by its own rule, mostly within a minute.
""",
    "search": """## Cost of a search

**Question:** How many requests and seconds does a search for the peak need, and how large is its
error? **Method:** The searches run with many seeds in virtual time, against queues with a known
limit. The peers are two other searches. The search of the 2020 study (LeMay, Li and Guo, IC2E 2020)
raises the rate step by step (a ramp). The other peer is the search of perf_analyzer. The benchmark
simulates both searches from their descriptions (`benchmarks/ramp.py`, `benchmarks/peer_search.py`).
If a description leaves a choice, the simulation favours the other tool. Requests and seconds are
means over all searches. The goals apply to the preset `quick`, compared with the mode of
perf_analyzer that has the smallest error.
""",
    "live": """## Cost of a search on a live server

**Question:** Does Perseus also need fewer requests and seconds than the other tools on a real
server? **Method:** The benchmark measures the service time of the server just before and just after
each search, and computes the true limit from it. The ramp of the 2020 study takes too long on a
real server. The benchmark therefore runs only two rates of the ramp on the server, and counts all
its rates in a simulation. AIPerf uses its planner `monotonic-sla`, and tests whole numbers of
requests/s with 1000 Poisson arrivals each. The searches of AIPerf and perf_analyzer cover the same
range of rates.
""",
    "limit": """## Certified throughput and the bare runtime

**Question:** How large is the rate that Perseus certifies for a network on Triton, compared with
the throughput of the network without Triton? **Method:** The peer is a loop of inferences without
Triton, with the same network and runtime, in one process, on the same core with one thread. Perseus
sends requests at constant intervals, with a wide SLA (p95 within 20 service times), so the CPU is
the limit, not a queue. Inputs are in system shared memory.

**Why the goal of 0.75 is missed:** an inference of mobilenet_v3_small is so short that the other
work of the server for a request takes a large part of the time. On a faster AMD EPYC (29 November
2026, onnxruntime), an inference takes 0.95 ms in process, and a request takes 1.36 ms of the
server's core in a closed loop. Of these 1.36 ms, the process of Triton takes 0.19 ms (half of it in
the kernel). The process of the Python backend takes 1.17 ms. This time contains the inference,
which takes 0.08 ms longer beside the other processes, and a copy to an aligned address (0.04 ms).
Without any Python code, the ratio would be 0.95 / (0.95 + 0.19 + 0.08) = 0.78.
""",
    "coverage": """## Coverage of the intervals

**Question:** Do 95 % intervals contain the true limit, and do certified rates stay below this
limit? **Method:** For each simulated server, 100 or 200 searches run with the preset `quick`, whose
verdicts have a confidence of 90 %. In one case, each search has another random server. The truth is
the limit in a long simulation at the median speed of the host during the search. On hosts whose
speed changes, the *long-run limit* is the limit with all slow periods included. On these hosts, a
second goal is that the interval contains a rate between the long-run limit and the truth. On hosts
with strong bursts, the interval need not contain the truth. The half-width of an interval should be
at most 1.3 times 1.96 standard deviations of the estimates. Most intervals are wider.
[Accuracy](../explanation/accuracy.md) has the results by server and host.
""",
    "sharing": """## Coverage of the sharing ratio

**Question:** Does the interval of a sharing ratio contain the true ratio? **Method:** Each case has
50 simulated studies of two models with the preset `quick`. Each study searches the peak of each
model alone, and then of both models together, on an idle host or on a host whose speed changes. The
truth is the ratio on an idle host. In the cases *starts that differ by 2 %*, models slow each other
down differently after each start of a server, as on [real hosts](../explanation/sharing-ratio.md).
""",
    "interference": """## Sharing ratio of a server with known interference

**Question:** Does a study find the known sharing ratio of a real server? **Method:** Two models on
one core do a known amount of computation per request. While both models compute, their requests
take longer by a known share. Each study searches the peak of each model alone and of both models
together, with the preset `quick`. The truth is the sharing ratio of a simulated queue with
processor sharing. In this queue, requests have the measured service times, and take longer by the
same share while both models compute.
""",
    "ablation": """## Contribution of each rule of the estimate

**Question:** How much does each rule of the estimate contribute? **Method:** For each rule, the
benchmark computes the estimate without this rule (ours) and with all rules (peer), from the same
simulated searches with the preset `quick`. The share of intervals that contain the truth comes from
70 to 100 searches, so the standard error of a share of 95 % is 2.5 %. If the ratio of the widths is
above 1, the rule makes the intervals narrower. If the ratio of the errors is above 1, the rule
makes the estimates better.
""",
    "repeats": """## Coverage of the intervals from few repeats

**Question:** Do intervals from two to five repeats contain the true value? **Method:** Each case
has 2,000 simulated studies. Each repeat has its own true limit, and measures this limit with an
error of 2 %. The true limits of the repeats of a study differ by the percentage in the column
*case*. On a real host, the limit of the same server varies by 5 to 20 % between repeats
([repeats](../explanation/repeats.md)).
""",
    "repeatability": """## Repeatability

**Question:** Does a study give the same result again? **Method:** The default study with one mix
runs several times with the same seeds on restarted servers: on the unchanged host, and beside a
process that uses the core of the server in bursts. *Deviation* is the standard deviation of the
logarithm of an estimate over the runs. The table divides this deviation by the standard deviation
that a 95 % interval implies: ln(upper end / lower end) / 3.92.
""",
    "noise": """## The noise of this host

**Question:** How much does the speed of the host change? **Method:** A closed loop with four
requests in flight keeps a model busy, so the times between responses are the service times. The
*standard deviation of the mean host speed* over some seconds is the standard deviation of the
logarithm of the mean service time in as many seconds. Simulations in other benchmarks replay the
recorded service times (`benchmarks/noise/`).
""",
    "planning": """## Planning ten thousand cells

**Question:** How long does Snakemake need to plan a large study? **Method:** Dry runs of the study
`scale` alternate with dry runs of a trivial workflow that has as many jobs. Values are medians of
three runs.
""",
    "aggregation": """## Tables over many requests

**Question:** How much time and memory do the tables, figures and report of a large study need?
**Method:** The benchmark writes synthetic raw results for the study `scale` with one repeat, in the
format of real cells. A separate process makes each output, and begins without raw results in the
page cache. *Memory* is the peak memory of the process.
""",
    "planner": """## The cheapest fleet

**Question:** How fast does Perseus find a fleet, and is it the cheapest fleet? **Method:** Two
solvers solve the same integer programme: HiGHS (in Perseus) and CBC (with PuLP). The programme
chooses among servers of four types. Each type can serve each model alone, and random pairs of
models (as many pairs as models). Both solvers stop at an optimality gap of 0.01 % or after a
minute. In a second part with one type of server, Perseus solves 121 demands, and CBC solves every
tenth of these demands.
""",
    "compare": """## Differences that a comparison finds

**Question:** Does `snakemake compare` report true differences, and no others? **Method:** Each case
has 200 simulated pairs of studies with equal servers, and 100 pairs in which the servers of one
study are 10 % faster. A pair has a reported difference if the comparison calls any of its values
better or worse. Each search states a standard deviation of 2 %, although its true standard
deviation is 1 %. The true values of the repeats of a study differ by the percentage in the column
*case*.
""",
    "prediction": """## Predicted sharing

**Question:** How well does Perseus predict the sharing ratio of a mix? **Method:** For each
measured pair in `benchmarks/pairs/`, Perseus predicts the sharing ratio from the other mixes, with
the [prediction model](../explanation/frontier.md) that fits the other mixes best. The benchmark
also replays each study (one file in `benchmarks/pairs/`) in 25 orders of its models: the first
mixes count as measured, and Perseus predicts an interval for each later mix. The *share within the
90 % prediction interval* is the share of the later mixes whose measured ratio lies in the interval.
*Without the minimum width* means that an interval may be narrower than the interval of a
measurement.
""",
}

OVERVIEW = ("part", "goals met", "missed", "date", "CPU")
COLUMNS = ("case", "metric", "ours", "peer", "ratio", "goal", "met")

BETTER = re.compile(r" \((?:share; )?\w+ is better\)")
"""Text such as "(lower is better)" in the name of a metric. The page omits such text."""

MAX_MISSED = 3
"""The overview lists at most MAX_MISSED missed goals of each part."""

MAX_ROWS = 10
"""If a part has more than MAX_ROWS rows, its table summarises each metric."""

Cells = Mapping[str, str]


@dataclass(frozen=True)
class Part:
    """One benchmark: the rows of its table, and the record of its host."""

    name: str
    rows: Sequence[Cells]
    about: Mapping[str, Any]

    @property
    def title(self) -> str:
        return ABOUT[self.name].partition("\n")[0].removeprefix("## ")

    @property
    def goals(self) -> Sequence[Cells]:
        return [row for row in self.rows if row["goal"]]


def page(results: Path) -> str:
    """Return the page with all benchmarks that have a table."""
    parts = [
        Part(name, read_cells(path), json.loads(path.with_suffix(".json").read_text()))
        for name in ABOUT
        if (path := results / f"{name}.csv").exists()
    ]
    goals = [row for part in parts for row in part.goals]
    head = HEAD.format(met=len(goals) - len(_missed(goals)), goals=len(goals), most=MAX_ROWS)
    overview = _table(OVERVIEW, list(map(_overview, parts)))
    return "\n".join([head, *overview, "", *map(_section, parts)])


def _missed(rows: Sequence[Cells]) -> list[Cells]:
    return [row for row in rows if row["met"] == "false"]


def _met(goals: Sequence[Cells]) -> str:
    return f"{len(goals) - len(_missed(goals))} of {len(goals)}" if goals else "no goals"


def _overview(part: Part) -> Cells:
    missed = [_sentence(row) for row in map(_shown, _missed(part.goals))]
    more = [f"and {len(missed) - MAX_MISSED} more"] if len(missed) > MAX_MISSED else []
    return {
        "part": f"[{part.title}](#{part.title.lower().replace(' ', '-')})",
        "goals met": _met(part.goals),
        "missed": "; ".join([*missed[:MAX_MISSED], *more]),
        "date": part.about["date"],
        "CPU": part.about["cpu"],
    }


def _sentence(row: Cells) -> str:
    """Return a sentence about a missed goal, with the value and the goal."""
    column = _bounded(row)
    what = "the ratio of" if column == "ratio" else "the"
    goal = row["goal"].removeprefix(f"{column} ")
    return f"{what} *{row['metric']}* is {row[column]} (goal: {goal}) in the case *{row['case']}*"


def _section(part: Part) -> str:
    name, folder = part.name, "../../benchmarks/results"
    table, host = (f"[`{file}`]({folder}/{file})" for file in (f"{name}.csv", f"{name}.json"))
    rows = _selected(part.goals or part.rows)
    columns = [column for column in COLUMNS if any(row[column] for row in rows)]
    met = f"Goals met: {_met(part.goals)}. " if part.goals else ""
    files = f"{met}Files: {table} ({len(part.rows)} rows), {host} (host and versions)."
    return "\n".join([ABOUT[part.name], files, "", *_table(columns, rows), ""])


def _selected(rows: Sequence[Cells]) -> list[Cells]:
    """Return the rows of a table, missed goals first. If there are more than MAX_ROWS rows, return
    missed goals, and one summary row for each metric with more than two rows."""
    groups: dict[tuple[str, str], list[Cells]] = {}
    for row in rows:
        groups.setdefault((row["metric"], row["goal"]), []).append(row)
    many = [group for group in groups.values() if len(rows) > MAX_ROWS and len(group) > 2]
    few = [row for row in rows if row["met"] == "false" or not any(row in group for group in many)]
    few.sort(key=lambda row: row["met"] != "false")
    return [*map(_shown, few), *map(_summary, many)]


def _summary(rows: Sequence[Cells]) -> Cells:
    """Return one row with the lowest, median and highest value of rows with the same metric and
    goal."""
    first = _shown(rows[0])
    column = _bounded(first)
    values = sorted((row[column] for row in rows if row[column]), key=float)
    shown = [values[i] for i in (0, (len(values) - 1) // 2, -1)] if values else []
    return dict.fromkeys(COLUMNS, "") | {
        "case": f"{len(rows)} cases: lowest, median, highest",
        "metric": first["metric"],
        column: ", ".join(shown),
        "goal": first["goal"],
        "met": _met(rows) if first["goal"] else "",
    }


def _shown(row: Cells) -> Cells:
    """Return the cells of a row on the page. The text of the goal begins with the name of the
    column that it limits."""
    goal = row["goal"]
    if goal and not goal.startswith("ours"):
        goal = f"ratio {goal}"
    return {
        "case": row["case"],
        "metric": BETTER.sub("", row["metric"]),
        "ours": row["ours"],
        "peer": ", ".join(filter(None, (row["peer"], row["peer_name"]))),
        "ratio": row["ratio"],
        "goal": goal,
        "met": {"true": "yes", "false": "**no**", "": ""}[row["met"]],
    }


def _bounded(row: Cells) -> str:
    """Return the name of the column whose value the goal limits. If the row has no goal, return
    `ratio` for a row with a ratio, and `ours` for any other row."""
    return row["goal"].partition(" ")[0] or ("ratio" if row["ratio"] else "ours")


def _table(columns: Sequence[str], rows: Sequence[Cells]) -> Iterator[str]:
    """Yield the lines of a table. The first cell of a row is empty if it would repeat the first
    cell of the row above."""
    yield _line(columns)
    yield _line(["---"] * len(columns))
    first = ""
    for row in rows:
        cells = [row[column] for column in columns]
        yield _line(["" if cells[0] == first else cells[0], *cells[1:]])
        first = cells[0]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
