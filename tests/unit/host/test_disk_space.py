"""Tests of the message about a full disk, also if Snakemake itself runs out of space."""

import errno
import os

import pytest

from perseus.host.disk_space import FULL_MESSAGE, NEEDED_BYTES, report_if_full


def test_a_disk_with_room_says_nothing_and_nothing_stays_on_it(tmp_path, capsys):
    report_if_full(tmp_path)
    assert capsys.readouterr().err == "" and not list(tmp_path.iterdir())


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EOPNOTSUPP])
def test_only_a_disk_without_room_is_full(tmp_path, monkeypatch, capsys, code):
    asked = []

    def refuse(descriptor, start, size_bytes):
        asked.append(size_bytes)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    report_if_full(tmp_path)
    assert asked == [NEEDED_BYTES]
    assert (FULL_MESSAGE in capsys.readouterr().err) == (code != errno.EOPNOTSUPP)


def test_a_folder_that_is_not_there_is_not_full(tmp_path, capsys):
    report_if_full(tmp_path / "nowhere")
    assert capsys.readouterr().err == ""
