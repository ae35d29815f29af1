"""Tests of files: partial files have names of their own, and truncated files are found."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
from matplotlib.figure import Figure
from onnx import TensorProto, helper

from perseus.host import files, truncated_files
from perseus.host.files import arrived, partial_path, whole, write_json
from perseus.host.identity import identity
from perseus.measurement.monitor import MonitorFile
from perseus.measurement.raw_results import RequestsWriter


@pytest.fixture
def dead() -> str:
    """Return the identity of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        name = identity(process.pid)
        process.stdin.close()
    return name


def test_two_processes_write_the_same_file_without_meeting(tmp_path):
    path = tmp_path / "cell/record.json"
    with whole(path) as partial:
        partial.write_text("mine")
        child = os.fork()
        if child == 0:
            with whole(path) as theirs:
                theirs.write_text("theirs")
            os._exit(0 if partial.exists() and theirs != partial else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert path.read_text() == "theirs" and partial.read_text() == "mine"
    assert path.read_text() == "mine"
    assert list(path.parent.iterdir()) == [path]


def test_what_a_killed_process_left_of_the_same_file_goes(tmp_path, dead):
    left = {
        name: tmp_path / f".{name}.partial"
        for name in (
            f"monitor.parquet.{dead}",
            f"windows.parquet.{dead}",
            f"monitor.parquet.{identity(os.getppid())}",
            "monitor.parquet.00000000-1-1",
            "monitor.parquet.mine",
        )
    }
    for path in left.values():
        path.touch()
    with MonitorFile(tmp_path / "monitor.parquet"):
        pass
    assert {name for name, path in left.items() if not path.exists()} == {f"monitor.parquet.{dead}"}
    partial_path(tmp_path / "windows.parquet")
    assert not left[f"windows.parquet.{dead}"].exists()


def test_two_monitors_of_one_cell_do_not_fail_on_a_shared_name(tmp_path):
    """If the job of a killed Snakemake still runs, the next job starts a second monitor."""
    path = tmp_path / "monitor.parquet"
    with MonitorFile(path):
        child = os.fork()
        if child == 0:
            with MonitorFile(path):
                pass
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="no space"), whole(tmp_path / "x.json") as partial:
        partial.write_text("half")
        raise RuntimeError("no space")
    assert list(tmp_path.iterdir()) == []


# Truncated files


@pytest.fixture
def written(tmp_path) -> Path:
    path = tmp_path / "results/raw/record.json"
    write_json(path, {"outcome": "ok", "reason": "", "requests": 1000})
    return path


@pytest.mark.parametrize("left", [0, 1, 7, 16, 40, -1])
def test_a_file_without_its_end_is_found(written, tmp_path, left):
    write_json(written.with_name("other.json"), {})
    assert truncated_files.find([str(tmp_path), str(tmp_path / "nothing")]) == []
    os.truncate(written, left % written.stat().st_size)
    assert (
        truncated_files.find([str(tmp_path)])
        == truncated_files.find([str(written)])
        == [str(written)]
    )


def test_files_that_are_whole_or_that_somebody_wrote_anew_stay(written, tmp_path):
    own = tmp_path / "results/own.json"
    own.write_text("{}")
    assert truncated_files.find([str(tmp_path)]) == []
    written.write_text("mine")  # shorter than before, and with another beginning
    own.write_text('{"mine":')  # the original length is unknown
    assert truncated_files.find([str(tmp_path)]) == []
    with written.open("a") as file:
        file.write("longer" * 100)
    assert truncated_files.find([str(tmp_path)]) == []


def test_a_link_is_cut_where_what_it_leads_to_is(written, tmp_path):
    link = tmp_path / "here/record.json"
    link.parent.mkdir()
    link.symlink_to(written)
    assert truncated_files.find([str(link)]) == []
    os.truncate(written, 3)
    assert truncated_files.find([str(link)]) == [str(link)]


def test_a_shorter_file_that_somebody_copied_over_ours_is_whole(written, tmp_path):
    """`cp` writes into the existing file, so that the file keeps its attributes."""
    written.write_text('{\n "outcome": "ok",\n "reason": ""\n}\n')
    assert truncated_files.find([str(tmp_path)]) == []
    os.truncate(written, written.stat().st_size - 3)
    assert truncated_files.find([str(tmp_path)]) == [str(written)]


@pytest.mark.parametrize("suffix", [".csv", ".pbtxt", ".onnx", ".json", ".parquet", ".npz"])
def test_a_file_of_zeros_has_lost_what_was_in_it(tmp_path, suffix):
    """After a power failure, some file systems leave files with their full length but no data."""
    path = tmp_path / f"x{suffix}"
    with whole(path) as partial:
        partial.write_text("a,b\n" * 100)
    with path.open("r+b") as file:
        file.write(bytes(400))
    assert truncated_files.find([str(tmp_path)]) == [str(path)]


def test_a_folder_that_is_a_link_is_looked_at_once(written, tmp_path):
    (tmp_path / "results/raw/back").symlink_to(tmp_path)
    (tmp_path / "linked").symlink_to(written.parent)
    os.truncate(written, 3)
    assert truncated_files.find([str(tmp_path / "linked")]) == [
        str(tmp_path / "linked/record.json")
    ]


def test_what_the_monitor_and_the_writer_of_requests_leave_is_known_whole(tmp_path):
    with MonitorFile(tmp_path / "monitor.parquet"), RequestsWriter(tmp_path / "requests.parquet"):
        pass
    for path in list(tmp_path.iterdir()):
        os.truncate(path, path.stat().st_size - 1)
    found = truncated_files.find([str(tmp_path)])
    assert {Path(path).name for path in found} == {"monitor.parquet", "requests.parquet"}


def test_a_file_that_another_machine_wrote_is_waited_for(tmp_path):
    path = tmp_path / "record.json"
    threading.Timer(0.3, path.write_text, ["{}"]).start()
    assert arrived(path).read_text() == "{}"


def test_a_file_that_never_comes_is_not_waited_for_for_good(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LATE_S", 0.1)
    assert not arrived(tmp_path / "record.json").exists()


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    path, synced = tmp_path / "x.json", []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(path.exists()))
    write_json(path, {})
    assert synced == [False] and path.exists()


@pytest.fixture
def without_attributes(monkeypatch):
    """Simulate a file system without extended attributes, as many shared file systems are."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", refuse)
    monkeypatch.setattr(os, "getxattr", refuse)


FORMATS = (
    "record.json",
    "repeats.json",
    "windows.parquet",
    "peaks.svg",
    "peaks.png",
    "model.onnx",
    "answers.npz",
    "model.pt2",
)


@pytest.fixture
def each_format(torch, tmp_path, without_attributes) -> dict[str, Path]:
    """Return a file of each format, by name, written as Perseus writes it."""
    paths = {name: tmp_path / name for name in FORMATS}
    write_json(paths["record.json"], {"outcome": "ok", "deeper": {"a": [1, {"b": 2}]}})
    write_json(paths["repeats.json"], [{"outcome": "ok"}, {"outcome": "ok", "deeper": [{}]}])
    with RequestsWriter(paths["windows.parquet"]):
        pass
    figure = Figure()
    figure.add_subplot().plot([1, 2])
    for name in ("peaks.svg", "peaks.png"):
        with whole(paths[name]) as partial:
            figure.savefig(partial, format=name[-3:])
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8]) for name in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "tiny", ends[:1], ends[1:]))
    with whole(paths["model.onnx"]) as partial:
        onnx.save(model, str(partial))
    with whole(paths["answers.npz"]) as partial, partial.open("wb") as file:
        np.savez(file, output=np.arange(8))
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(8),))
    with whole(paths["model.pt2"]) as partial, partial.open("wb") as file:
        torch.export.save(program, file)
    return paths


@pytest.mark.parametrize("name", FORMATS)
def test_without_attributes_the_end_of_a_format_tells(each_format, tmp_path, name):
    assert truncated_files.find([str(tmp_path)]) == []
    path, content = each_format[name], each_format[name].read_bytes()
    missed = []
    for left in range(0, len(content.rstrip()), max(len(content) // 500, 1)):
        path.write_bytes(content[:left])
        missed += [] if truncated_files.find([str(tmp_path)]) == [str(path)] else [left]
    # An ONNX model without its last fields is still a valid model.
    assert len(missed) <= 6 if name == "model.onnx" else missed == []


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "model.onnx"])
def test_an_end_of_zeros_is_no_end(each_format, tmp_path, name):
    size = each_format[name].stat().st_size
    with each_format[name].open("r+b") as file:
        file.seek(size // 2)
        file.write(bytes(size - size // 2))
    assert truncated_files.find([str(tmp_path)]) == [str(each_format[name])]


def test_without_attributes_nothing_is_known_of_other_files(tmp_path, without_attributes):
    texts = {
        "a.log": "",
        "b.json": '{"mine":',
        "whole.json": '{\n "mine": "odd" }\n',
        "c.onnx": "no model",
        "d.npz": "no",
        "d.pt2": "no program",
        "e.svg": "<svg",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "binary.onnx").write_bytes(b"\xff" * 100)
    # "re" looks like a field of 101 bytes
    (tmp_path / "error.onnx").write_text("Perseus has no model here: efficientnet_b6 responds")
    assert truncated_files.find([str(tmp_path)]) == []
