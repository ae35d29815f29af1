"""Recorded arrivals are read from each of their formats, or refused by line."""

from __future__ import annotations

import pytest

from perseus.study.recorded import FORMATS, read_recorded
from perseus.study.traces import TraceError


def written(folder, text):
    path = folder / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return path


def azure(*rows, minutes=3):
    head = ["HashOwner", "HashApp", "HashFunction", "Trigger", *map(str, range(1, minutes + 1))]
    return "\n".join([",".join(head), *rows]) + "\n"


TWO_FUNCTIONS = azure(
    "o1,a1,f1,http,1,0,3",
    "o1,a1,f2,queue,10,20,30",
    "o2,a2,f1,timer,100,0,0",  # a function has a row for each of its triggers
)
BURSTGPT = """\
Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,GPT-4,1087,230,1317,Conversation log
45,ChatGPT,417,276,693,API log
105,"ChatGPT",1360,647,2007,Conversation log
"""


def test_times_are_those_of_the_file_from_the_first_on(tmp_path):
    found = read_recorded(written(tmp_path, "time_s\n13\n10\n11\n"), "times")
    assert found.starts_s.tolist() == [0, 1, 3] and found.counts.tolist() == [1, 1, 1]
    assert (found.interval_s, found.length_s) == (0.0, 4.5)  # a mean gap after the last


def test_times_may_be_a_column(tmp_path):
    path = written(tmp_path, 'user, at ,size\n"a, b",7.5,1\nc,6,2\n\nd,10,3\n')
    assert read_recorded(path, "times", "at").starts_s.tolist() == [0, 1.5, 4]


@pytest.mark.parametrize(
    "stamps",
    [
        # As in the Azure LLM inference traces, which have seven digits.
        ["2023-11-16 18:17:03.9799600", "2023-11-16 18:17:05.4799600", "2023-11-16 18:17:04.0"],
        ["2024-03-31T23:59:59.98Z", "2024-04-01T02:00:01.48+02:00", "2024-04-01T00:00:00"],
    ],
)
def test_times_may_be_dates(tmp_path, stamps):
    path = written(tmp_path, "TIMESTAMP,ContextTokens\n" + "".join(f"{s},1\n" for s in stamps))
    found = read_recorded(path, "times", "TIMESTAMP")
    assert found.starts_s.tolist() == pytest.approx([0, 0.02, 1.5], abs=1e-4)
    assert read_recorded(written(tmp_path, "\n".join(stamps)), "times").length_s > 0


@pytest.mark.parametrize(
    ("function", "expected"),
    [(None, [111, 20, 33]), ("f1", [101, 0, 3]), ("f2", [10, 20, 30])],
)
def test_invocations_per_minute_are_of_a_function_or_of_all(function, expected, tmp_path):
    found = read_recorded(written(tmp_path, TWO_FUNCTIONS), "azure_functions", function)
    assert found.counts.tolist() == expected
    assert found.starts_s.tolist() == [0, 60, 120]
    assert (found.interval_s, found.length_s) == (60, 180)


INVOCATIONS = """\
app,func,end_timestamp,duration
a,f1,5160.25,0.25
b,f2,5161.5,0.5
a,f1,5241.0,41.5
"""


@pytest.mark.parametrize(
    ("function", "starts_s"), [(None, [0, 1, 39.5]), ("f1", [0, 39.5]), ("f2", [1])]
)
def test_invocations_with_their_times_begin_their_duration_before_they_end(
    function, starts_s, tmp_path
):
    found = read_recorded(written(tmp_path, INVOCATIONS), "azure_functions", function)
    assert found.starts_s.tolist() == starts_s and set(found.counts) == {1}
    assert (found.interval_s, found.length_s) == (0.0, 39.5 * 3 / 2)


def test_the_rows_of_other_functions_may_be_anything(tmp_path):
    path = written(tmp_path, azure("o,a,f1,http,1,2,3", "o,a,f2,http,x"))
    assert read_recorded(path, "azure_functions", "f1").counts.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("llm", "starts_s"),
    [(None, [0, 40, 40, 100]), ("ChatGPT", [0, 40, 100]), ("GPT-4", [40])],
)
def test_requests_are_to_one_language_model_or_to_all(llm, starts_s, tmp_path):
    """On one axis of time, which begins with the first request to any."""
    found = read_recorded(written(tmp_path, BURSTGPT), "burstgpt", llm)
    assert found.starts_s.tolist() == starts_s and set(found.counts) == {1}
    assert (found.interval_s, found.length_s) == (1.0, 101.0)


MINUTES = (
    r"line 1: the columns are not HashOwner,HashApp,HashFunction,Trigger,1,2,3 and so on, nor app"
)


@pytest.mark.parametrize(
    ("form", "selected", "text", "message"),
    [
        ("times", None, "1\nsoon\nlater\n2\n", r"line 2: 'soon' is not a .*; line 3: 'later' is"),
        ("times", None, "a\nb\nc\nd\ne\n", r"line 3: 'c' is not a .*; and 2 more such lines"),
        ("times", None, "a\nb\nc\nd\n", r"and 1 more such line$"),
        ("times", "at", "time,size\n1,2\n", r"line 1: 'time, size' has no column 'at'"),
        ("times", "at", "", r"line 1: '' has no column 'at'"),
        ("times", "at", "size,at\n1,2\n3\n", r"line 3: has 1 of 2 columns"),
        ("times", "at", "size,at\n1,2\n3,x\n", r"line 3: 'x' is not a time in s"),
        ("times", None, "2024-03-31\n12\n", r"line 1: '2024-03-31' is not a time in s, nor are"),
        ("times", None, "2024-03-31\n31.3.2024\n", r"line 2: '31.3.2024' is not a time in s"),
        ("times", "at", "at\n1\n1\n", r"needs arrivals at two different times"),
        ("azure_functions", None, "1\n2\n", MINUTES),
        ("azure_functions", None, "", MINUTES),
        ("azure_functions", None, "HashOwner,HashApp,HashFunction,Trigger,2,1\n", MINUTES),
        ("azure_functions", None, azure("o,a,f,http,1,2"), r"line 2: has 6 columns, not 7"),
        (
            "azure_functions",
            "f",
            azure("o,a,f,http,1,2,3", "o,a,f,http,1,-2,3", "o,a,f,http,1,2,3.5"),
            r"line 3: '-2' in minute 2 is no count; line 4: '3\.5' in minute 3 is no count",
        ),
        (
            "azure_functions",
            None,
            azure(f"o,a,f,http,1,2,{2**63 - 1}", f"o,a,f,http,{10**20},2,3", "o,a,f,http,1,2,3"),
            r"line 2: '9223372036854775807' in minute 3 is no count; line 3: '1000.*' in minute 1",
        ),
        ("times", None, "1764000000000\n1764000001000\n",
         r"line 1: '1764000000000' is too large for a time in s \(divide milliseconds by 1000\)"),
        ("azure_functions", "f3", TWO_FUNCTIONS, r"trace\.csv has no function 'f3'"),
        ("azure_functions", None, azure(), r"trace\.csv has no function$"),
        ("azure_functions", "f3", INVOCATIONS, r"trace\.csv has no function 'f3'"),
        (
            "azure_functions",
            None,
            INVOCATIONS.replace("41.5", "long").replace("5161.5", "then"),
            r"line 3: 'then' is not a time in s",
        ),
        (
            "azure_functions",
            None,
            INVOCATIONS.replace("41.5", "long"),
            r"line 4: 'long' is no number",
        ),
        ("burstgpt", None, "time,Model\n1,a\n", r"'time, Model' has no column 'Timestamp'"),
        ("burstgpt", None, "a\n", r"has no column 'Timestamp' and none 'Model'"),
        ("burstgpt", "ChatGTP", BURSTGPT, r"no request to 'ChatGTP' \(did you mean 'ChatGPT'\?\)"),
        ("burstgpt", "x", BURSTGPT, r"no request to 'x' \(known: ChatGPT, GPT-4\)"),
        ("burstgpt", None, f"{BURSTGPT}soon,GPT-4\n", r"line 6: 'soon' is not a time in s"),
    ],
)  # fmt: skip
def test_a_file_of_another_form_is_refused_by_line(form, selected, text, message, tmp_path):
    with pytest.raises(TraceError, match=message):
        read_recorded(written(tmp_path, text), form, selected)


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_is_no_text_is_refused(form, tmp_path):
    path = tmp_path / "trace.csv"
    path.write_bytes(b"\x89PNG\xff\x00")
    with pytest.raises(TraceError, match="is not a text file"):
        read_recorded(path, form)
    with pytest.raises(OSError, match="No such file"):
        read_recorded(tmp_path / "none.csv", form)
