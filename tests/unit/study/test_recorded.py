"""Tests of recorded arrivals in common file formats.

If Perseus cannot read a file, the error message states the contents of the file.
"""

from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from perseus.study.checks.files import trace_problems
from perseus.study.recorded import read_named, read_trace
from perseus.study.trace_files import TraceError
from perseus.study.traces import TraceSource


def written(folder, content, name="trace.csv"):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(folder, content, name="trace.csv", **source):
    return read_trace(written(folder, content, name), TraceSource(file=name, **source))


def recorded(folder, content, name="trace.csv", **source):
    return read(folder, content, name, **source).recorded


def azure(*rows, minutes=3):
    head = ["HashOwner", "HashApp", "HashFunction", "Trigger", *map(str, range(1, minutes + 1))]
    return "\n".join([",".join(head), *rows]) + "\n"


TWO_FUNCTIONS = azure(
    "o1,a1,f1,http,1,0,3",
    "o1,a1,f2,queue,10,20,30",
    "o2,a2,f1,timer,100,0,0",  # a function has one row per trigger
)
INVOCATIONS = """\
app,func,end_timestamp,duration
a,f1,5160.25,0.25
b,f2,5161.5,0.5
a,f1,5241.0,41.5
"""
BURSTGPT = """\
Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,GPT-4,1087,230,1317,Conversation log
45,ChatGPT,417,276,693,API log
105,"ChatGPT",1360,647,2007,Conversation log
"""
AZURE_LLM = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:05.4799600,3180,8
2023-11-16 18:17:04.0000000,110,27
"""
MOONCAKE = """\
{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}
{"timestamp": 30535, "input_length": 6472, "output_length": 26, "hash_ids": [46, 2353]}
{"timestamp": 30535.5, "input_length": 6472, "output_length": 26, "hash_ids": []}
"""
BAILIAN = """\
{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 521}
{"chat_id": 160, "parent_chat_id": 159, "timestamp": 64.614, "input_length": 22}
"""
NULLS = """\
{"ts": 1, "user": null, "path": null}
{"ts": 2.5, "user": 7, "path": "/a"}
{"ts": 5, "user": 7, "path": "/b"}
"""
LOG = r"""
10.0.0.1 - ann [10/Oct/2000:13:55:36 -0700] "POST /v2/models/a/infer HTTP/1.1" 200 2326
10.0.0.2 - - [10/Oct/2000:22:55:36 +0200] "GET /say?\"a\" HTTP/1.1" 404 12 "http://x/" "curl/8"
10.0.0.1 - - [10/Oct/2000:13:55:40 -0700] "-" 400 0 "-" "-"
""".lstrip()


@pytest.mark.parametrize(
    "content",
    [
        "0\n1\n3\n",
        "time_s\n10\n11\n13",
        "\ufeff13\r\n 10\r\n11e0\r\n\r\n",
        "-3\n-2\n0\n",
        'user, at ,time\n"a, b",x,11\nc,y,10\n\nd,z,13\n',
        "user;start time (ms)\na;10000\nb;11000\nc;13000\n",
        "\r\n\nuser;time\na;10\nb;11\nc;13\n",
        "ts\tuser\n1.7e9\ta\n1700000001\tb\n1700000003\tc\n",
        "time_ms\n0\n1000\n3000\n",
        "time_ms\n1764000000\n1764000001\n1764000003\n",
        '{"timestamp": 1764000000, "session_id": "a"}\n{"timestamp": 1764000001}\n'
        '{"timestamp": 1764000003}\n',
        "id,when,qty\n7,1764000000000,5\n8,1764000001000,5\n9,1764000003000,5\n",
        "timeUnixNano\n0\n1000000000\n3000000000\n",
        "timeStamp,elapsed\n1764000000000,3\n1764000001000,4\n1764000003000,5\n",
        "1764000000000000\n1764000001000000\n1764000003000000\n",
        "at,by\n2024-03-31T23:59:59Z,1\n2024-04-01T02:00:00+02:00,2\n2024-04-01 00:00:02 UTC,3\n",
        "2024-03-31 10:00:00,a\n2024-03-31 10:00:01,b\n2024-03-31 10:00:03,c\n",
    ],
)  # fmt: skip
def test_times_are_read_in_their_unit_from_the_first_on(content, tmp_path):
    found = recorded(tmp_path, content)
    assert found.starts_s.tolist() == [0, 1, 3] and found.counts.tolist() == [1, 1, 1]
    # plus a mean gap after the last arrival
    assert (found.interval_s, found.length_s) == (0.0, 4.5)
    assert found.gaps_s() == (1.0, 2.0)


@pytest.mark.parametrize(("unit", "size_s"), [("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)])
def test_a_stated_column_and_unit_win(unit, size_s, tmp_path):
    content = "time_s,sent\n1,0\n2,4\n3,2\n"
    found = read(tmp_path, content, column="sent", unit=unit)
    assert found.recorded.starts_s.tolist() == [0, 2 * size_s, 4 * size_s]
    assert (found.understood.column, found.understood.unit) == ("sent", unit)


@pytest.mark.parametrize(
    ("content", "starts_s", "file_format"),
    [
        (AZURE_LLM, [0, 0.02004, 1.5], "a CSV file"),
        (MOONCAKE, [0, 3.053, 3.0535], "a Mooncake trace"),
        (BAILIAN, [0, 3.5], "a Bailian trace"),
        (LOG, [0, 0, 4], "an access log"),
        (BURSTGPT, [0, 40, 40, 100], "a BurstGPT trace"),
        # the start of each invocation
        (INVOCATIONS, [0, 1, 39.5], "an Azure Functions trace of 2021"),
        (TWO_FUNCTIONS, [0, 60, 120], "an Azure Functions trace of 2019"),
    ],
)
def test_formats_are_recognised(content, starts_s, file_format, tmp_path):
    found = read(tmp_path, content)
    assert found.recorded.starts_s == pytest.approx(starts_s, abs=1e-4)
    assert found.format == file_format and not found.understood.doubt


@pytest.mark.parametrize(
    "times",
    [
        pa.array([10, 11, 13], pa.timestamp("s")),
        pa.array([10_000, 11_000, 13_000], pa.timestamp("ms", "Europe/Berlin")),
        pa.array([10, 11, 13], pa.duration("s")),
        pa.array([1764e9, 1764e9 + 1e3, 1764e9 + 3e3]),
        pa.array([1764000000_000, 1764000001_000, 1764000003_000]),
        pa.array(["10", "11", "13"]).dictionary_encode(),
        pa.array(["2024-03-31T10:00:00Z", "2024-03-31T10:00:01Z", "2024-03-31T10:00:03Z"]),
    ],
    ids=lambda times: str(times.type),
)
def test_parquet_is_read_by_its_types(times, tmp_path):
    table = pa.table({"more": [[1], [2], []], "timestamp": times})
    pq.write_table(table, tmp_path / "trace.parquet")
    source = TraceSource(
        file="trace.parquet", unit="s" if pa.types.is_dictionary(times.type) else None
    )
    found = read_trace(tmp_path / "trace.parquet", source)
    assert found.recorded.starts_s.tolist() == [0, 1, 3] and not found.understood.doubt


def test_a_file_may_be_compressed(tmp_path):
    for content, name in ((AZURE_LLM, "a.csv.gz"), (MOONCAKE, "b.jsonl.gz"), (LOG, "c.log.gz")):
        assert recorded(tmp_path, gzip.compress(content.encode()), name).length_s > 1


def test_whole_seconds_that_coincide_were_rounded(tmp_path):
    """Requests with the same second may have come at any time in the second."""
    found = recorded(tmp_path, LOG)
    assert (found.interval_s, found.length_s) == (1.0, 5.0)
    times_s = found.times_s(np.random.default_rng(1))
    assert times_s.astype(int).tolist() == [0, 0, 4] and times_s[0] != times_s[1]
    assert recorded(tmp_path, "0.5\n0.5\n3\n").interval_s == 0
    of_ns = recorded(tmp_path, "0\n15000000000\n15000000000\n", unit="ns")
    assert (of_ns.interval_s, of_ns.length_s) == (1.0, 16.0)


@pytest.mark.parametrize(
    ("content", "where", "starts_s"),
    [
        (BURSTGPT, {"Model": "ChatGPT"}, [0, 40, 100]),
        (BURSTGPT, {"Model": "GPT-4"}, [40]),
        (BURSTGPT, {"Model": "ChatGPT", "Log Type": "API log"}, [40]),
        (INVOCATIONS, {"func": "f2"}, [1]),
        (MOONCAKE, {"output_length": 26}, [3.053, 3.0535]),
        (LOG, {"path": "/v2/models/a/infer", "method": "POST"}, [0]),
        (LOG, {"status": 404}, [0]),
        ('{"ts": 1, "ok": true}\n{"ts": 2.5, "ok": false}\n', {"ok": "false"}, [1.5]),
        (NULLS, {"user": 7}, [1.5, 4]),
        (NULLS, {"path": "/a"}, [1.5]),
    ],
)
def test_rows_with_a_value_count_on_the_time_axis_of_all(content, where, starts_s, tmp_path):
    found, every = recorded(tmp_path, content, where=where), recorded(tmp_path, content)
    assert found.starts_s == pytest.approx(starts_s)
    assert (found.length_s, found.interval_s) == (every.length_s, every.interval_s)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, [111, 20, 33]),
        ({"HashFunction": "f1"}, [101, 0, 3]),
        ({"HashFunction": "f1", "Trigger": "timer"}, [100, 0, 0]),
    ],
)
def test_counts_per_minute_are_summed_over_the_rows_that_count(where, expected, tmp_path):
    found = recorded(tmp_path, TWO_FUNCTIONS, where=where)
    assert found.counts.tolist() == expected
    assert (found.interval_s, found.length_s) == (60, 180)


def test_rows_that_do_not_count_may_have_any_counts(tmp_path):
    content = azure("o,a,f1,http,1,2,3", "o,a,f2,http,x,,")
    found = recorded(tmp_path, content, where={"HashFunction": "f1"})
    assert found.counts.tolist() == [1, 2, 3]


AUTUMN = [
    *(f"2025-10-26 {hour}:{minute:02}:30" for hour in ("01", "02") for minute in range(60)),
    *(f"2025-10-26 {hour}:{minute:02}:30" for hour in ("02", "03") for minute in range(60)),
]
"""One request per minute in local time. On this day, the hour from 02:00 comes twice."""


def test_the_hour_that_comes_twice_is_two(tmp_path):
    found = read(tmp_path, "\n".join(AUTUMN))
    assert np.diff(found.recorded.starts_s).tolist() == [60.0] * 239
    note = "without a time zone: the hour that clocks show twice in autumn is read as two hours"
    assert note in found.message("x")
    sorted_since = read(tmp_path, "\n".join(sorted(AUTUMN)))
    assert "clocks show twice in autumn is read as one hour" in sorted_since.message("x")
    with_zone = read(tmp_path, "\n".join(f"{text}+01:00" for text in AUTUMN))
    assert with_zone.recorded.length_s == pytest.approx(3 * 3600, rel=0.01)


def test_clocks_may_go_back_from_midnight_to_23_o_clock(tmp_path):
    """In Cairo, the hour from 23:00 on 30 October 2025 comes twice."""
    hours = ("30 22", "30 23", "30 23", "31 00")
    times = [f"2025-10-{hour}:{minute:02}:30" for hour in hours for minute in range(60)]
    assert np.diff(read(tmp_path, "\n".join(times)).recorded.starts_s).tolist() == [60.0] * 239


@pytest.mark.parametrize(
    ("repeated", "before", "after", "zone"),
    [
        ("2025-10-26 02", "2025-10-26 01", "2025-10-26 03", "Europe/Berlin"),
        ("2025-10-26 01", "2025-10-26 00", "2025-10-26 02", "Europe/London"),
        ("2026-11-01 01", "2026-11-01 00", "2026-11-01 02", "America/New_York"),
        ("2026-04-05 02", "2026-04-05 01", "2026-04-05 03", "Australia/Sydney"),
        ("2026-04-04 23", "2026-04-04 22", "2026-04-05 00", "America/Santiago"),
    ],
)
def test_an_hour_with_twice_the_requests_is_refused_if_clocks_show_it_twice(
    repeated, before, after, zone, tmp_path
):
    hours = [before, repeated, repeated, after]
    times = sorted(f"{hour}:{minute:02}:30" for hour in hours for minute in range(60))
    source = TraceSource(file="trace.csv")
    path = written(tmp_path, "\n".join(times))
    with pytest.raises(TraceError) as error:
        read_named(tmp_path, source, needs_unit=True)
    assert str(error.value).startswith(
        f"{path} has 120 requests from {repeated}:00 to {after[-2:]}:00, but a mean of 60 in the"
        f" hours before and after. Clocks show this hour twice ({zone}), and the file does not"
        " state which of the two hours its times mean. Write times with their offset, such as "
    )
    written(tmp_path, "\n".join(f"{time}Z" for time in times))
    in_utc = read_named(tmp_path, source, needs_unit=True)
    assert in_utc.recorded.length_s == pytest.approx(3 * 3600, rel=0.01)


@pytest.mark.parametrize("day", ["2025-10-25", "2025-03-30", "2025-10-26"])
def test_other_nights_and_even_hours_are_not_doubted(day, tmp_path):
    """Clocks are set back only on 2025-10-26. The file of this day has 60 requests in each hour."""
    often = 1 if day == "2025-10-26" else 2
    hours = ["01", *["02"] * often, "03"]
    times = sorted(f"{day} {hour}:{minute:02}:30" for hour in hours for minute in range(60))
    written(tmp_path, "\n".join(times))
    read_named(tmp_path, TraceSource(file="trace.csv"), needs_unit=True)


@pytest.mark.parametrize("rate_rps", [0.2, 20.0])
def test_times_without_a_unit_are_in_doubt_if_they_may_be_milliseconds(rate_rps, tmp_path):
    times_ms = 1000 / rate_rps * np.arange(200)
    content = "\n".join(f"{time_ms:.0f}" for time_ms in times_ms)
    path = written(tmp_path, content)
    with pytest.raises(TraceError) as error:
        read_named(tmp_path, TraceSource(file="trace.csv"), needs_unit=True)
    assert str(error.value) == (
        f"{path} does not state the unit of its times. Depending on the unit, the recording"
        " lasts"
        + (" 11.5 days in s, 16.6 min in ms" if rate_rps < 1 else " 2.76 h in s, 9.95 s in ms")
        + (
            ", 0.995 s in us, 0.000995 s in ns"
            if rate_rps < 1
            else ", 0.00995 s in us, 9.95e-06 s in ns"
        )
        + " (state the unit: {file: trace.csv, unit: ms})"
    )
    stated = read_named(tmp_path, TraceSource(file="trace.csv", unit="ms"), needs_unit=True)
    assert stated.recorded.length_s == pytest.approx(200 / rate_rps)
    # The ratios of the gaps do not depend on the unit.
    read_named(tmp_path, TraceSource(file="trace.csv"), needs_unit=False)


def test_what_was_understood_is_said(tmp_path):
    text = {
        name: read(tmp_path, content).message(name)
        for name, content in {"a": AZURE_LLM, "b": BURSTGPT, "c": "0\n0.5\n1\n", "d": LOG}.items()
    }
    assert text == {
        "a": "a was read as a CSV file: 3 requests in 2.25 s, 1.33/s; times of column 'TIMESTAMP'"
        " in dates (without a time zone: the hour that clocks show twice in autumn is read as one"
        " hour)",
        "b": "b was read as a BurstGPT trace: 4 requests in 101 s, 0.0396/s; times of column"
        " 'Timestamp' in s (random times within intervals of 1 s)",
        "c": "c was read as a text file without column names: 3 requests in 1.5 s, 2/s; times in s",
        "d": "d was read as an access log: 3 requests in 5 s, 0.6/s; times of column 'time' in"
        " dates (random times within intervals of 1 s)",
    }


FOUND = (
    r"trace\.csv is a CSV file with the columns 'sent', 'size'; its first row is '7', '1'\."
    r" Name the column with the times: \{file: trace\.csv, column: 'sent', unit: ms\}"
)


@pytest.mark.parametrize(
    ("content", "source", "message"),
    [
        ("sent,size\n7,1\n8,1\n", {}, FOUND),
        ("name,size\na,b\n", {}, r"column: 'name', unit: ms\}$"),
        ("at,by\n2024-01-01,2024-01-02\n", {}, r"\{file: trace\.csv, column: 'at'\}$"),
        ("time,ts\n1,2\n", {}, r"Name the column with the times: "),
        ("time,size\n1,2\n", {"column": "tme"}, r"has no column 'tme' \(did you mean 'time'\?\)"),
        ("time,size\n1,2\n", {"where": {"user": "a"}}, r"no column 'user' \(known: time, size\)"),
        (
            "1\nsoon\nlater\n2\n",
            {},
            r"row 2: 'soon' is not a time: .*; row 3: 'later' is not a time",
        ),
        (
            "a\nb\nc\nd\ne\n",
            {},
            r"columns 'a'; its first row is 'b'\. row 2: 'b' is not a time: use",
        ),
        ("1\na\nb\nc\nd\n", {}, r"row 4: 'c' is not a time.*; and 1 more invalid row$"),
        ("1\nnan\n2", {}, r"row 2: 'nan' is not a time"),
        ("1\n-inf\n2", {}, r"row 2: '-inf' is not a time"),
        ("1\n\n2,3\n4\n", {}, r"row 2: '2,3' has 2 of 1 columns"),
        ("size,time\n1,2\n3\n", {}, r"row 3: '3' has 1 of 2 columns"),
        ("2024-03-31\n12\n", {}, r"row 1: '2024-03-31' is not a time"),
        ("2024-03-31\n31.3.2024\n", {}, r"row 2: '31\.3\.2024' is not a time"),
        ("time\n1\n1\n", {}, r"needs arrivals at two or more different times"),
        ("1\n1\n1.0\n", {}, r"needs arrivals at two or more different times"),
        ("time_s\n1\n", {}, r"needs arrivals at two or more different times"),
        ("time_s\n", {}, r"needs arrivals at two or more different times"),
        ("", {}, r"trace\.csv is empty"),
        ("\n\n", {}, r"trace\.csv is empty"),
        ("0\n1000000000000.0\n", {}, r"row 2: '1000000000000\.0' is too large for a time in s"),
        ("1764000000000\n1764000001000\n", {"unit": "s"}, r"too large for a time in s"),
        (b"\x89PNG\xff\x00", {}, r"trace\.csv is neither text nor Parquet"),
        (b"time\n1\n" + b"\n" * (1 << 20) + b"\xff\n", {}, r"is not a valid CSV file: .*UTF8"),
        (b"PAR1and no more", {}, r"is a damaged Parquet file"),
        ('[{"timestamp": 1}, {"timestamp": 2}]', {}, r"line 1: '\[\{\"tim.* is not a JSON object"),
        ('{\n"timestamp": 1}', {}, r"line 1: '\{.*' is not a JSON object \(write one object"),
        ('{"at": 1}\n{"at": "soon"}\n', {}, r"be read as JSON lines: .*from number to string"),
        ('{"at": 1}\n{"then": 2}\n', {}, r"row 2: 'None' is not a time"),
        ('{"sent": 7, "size": [1]}\n', {}, r"'sent', 'size'; its first row is '7', '\[1\]'"),
        ('{"sent": 7, "size": [1]}\n', {"column": "size"}, r"cannot be read as JSON lines"),
        (LOG + "soon\n", {}, r"line 4: 'soon' is not a line of an access log"),
        (azure(minutes=0), {}, r"row 1: the columns after Trigger are not 1, 2, 3 and so on"),
        (azure().replace("2,3", "3,2"), {}, r"row 1: the columns after Trigger are not 1, 2, 3"),
        (azure("o,a,f,http,1,2"), {}, r"row 2: 'o,a,f,http,1,2' has 6 of 7 columns"),
        (
            azure("o,a,f,http,1,2,3", "o,a,f,http,1,-2,3", "o,a,f,http,1,2,3.5"),
            {"where": {"HashFunction": "f"}},
            r"row 3: '-2' in minute 2 is not a number of invocations;"
            r" row 4: '3\.5' in minute 3 is not a number of invocations",
        ),
        (
            azure(f"o,a,f,http,1,2,{2**63 - 1}", f"o,a,f,http,{10**10 - 1},2,3"),
            {},
            r"row 3: '9999999999' in minute 1 is not a number of invocations;"
            r" row 2: '9223.*' in minute 3 is not a number of invocations",
        ),
        (TWO_FUNCTIONS, {"where": {"HashFunction": "f3"}}, r"no row whose 'HashFunction' is 'f3'"),
        (azure(), {}, r"trace\.csv has no row with invocations of a function$"),
        (INVOCATIONS, {"where": {"func": "f3"}}, r"no row whose 'func' is 'f3' \(known: f1, f2\)"),
        (INVOCATIONS.replace("5161.5", "then"), {}, r"row 3: 'then' is not a time"),
        (INVOCATIONS.replace("41.5", "long"), {}, r"row 4: 'long' is not a number"),
        (BURSTGPT, {"where": {"Model": "ChatGTP"}}, r"'ChatGTP' \(did you mean 'ChatGPT'\?\)"),
        (BURSTGPT, {"where": {"Model": "x"}}, r"is 'x' \(known: ChatGPT, GPT-4\)"),
        (
            BURSTGPT,
            {"where": {"Model": "GPT-4", "Log Type": "API log"}},
            r"has no row whose 'Model' is 'GPT-4' and 'Log Type' is 'API log'",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told_with_what_is_there(content, source, message, tmp_path):
    with pytest.raises(TraceError, match=message):
        read(tmp_path, content, **source)


def test_a_parquet_file_without_times_is_told_with_what_is_there(tmp_path):
    path = tmp_path / "trace.parquet"
    pq.write_table(pa.table({"at": [[1.0], [2.0]], "ok": [True, False]}), path)
    for column, message in {
        None: r"columns 'at', 'ok'; its first row is '\[1\.0\]', 'True'\. Name the column",
        "at": r"Column 'at' has lists or mappings in place of times",
        "ok": r"row 1: 'True' is not a time",
    }.items():
        with pytest.raises(TraceError, match=message):
            read_trace(path, TraceSource(file="trace.parquet", column=column))


def test_rows_are_not_selected_by_lists(tmp_path):
    pq.write_table(pa.table({"time": [1.0, 2.0], "ids": [[1], [2]]}), tmp_path / "trace.parquet")
    with pytest.raises(TraceError, match="`where` cannot select rows by column 'ids'"):
        read_trace(tmp_path / "trace.parquet", TraceSource(file="trace.parquet", where={"ids": 1}))


def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / "folder").mkdir()
    for file, message in {
        "none.csv": r"there is no trace file 'none\.csv'",
        "folder": "Is a directory",
        "a\0b": "embedded null byte",
    }.items():
        with pytest.raises(TraceError, match=message):
            read_named(tmp_path, TraceSource(file=file), needs_unit=False)


@pytest.mark.parametrize(
    ("source", "interval_s", "problems"),
    [
        (
            {},
            None,
            "trace.csv has 10,000,001 requests, more than 10,000,000 (select rows with `where:`, or"
            " use a shorter file)",
        ),
        ({"where": {"HashApp": "a1"}}, None, ""),
        ({}, 60.0, ""),
    ],
)
def test_a_trace_whose_gaps_do_not_fit_into_memory_is_a_problem(
    source, interval_s, problems, tmp_path
):
    written(tmp_path, azure("o1,a1,f1,http,9000000,0,900000", "o1,a2,f1,http,0,100001,0"))
    of = TraceSource(file="trace.csv", **source)
    found = trace_problems(("trace",), of, tmp_path, interval_s=interval_s)
    assert "; ".join(message for _, message in found) == problems
