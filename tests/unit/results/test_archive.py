"""Tests that archives of results are complete and reproducible, and that unsafe or damaged
archives are refused."""

from __future__ import annotations

import gzip
import io
import re
import tarfile

import pytest

from perseus.results import archive
from perseus.results.archive import ArchiveError

ANY = re.compile(r".*")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/record.json").write_text("{}")
    (tmp_path / "report.html").write_text("<p>")
    return {name: tmp_path / name for name in ("report.html", "raw/record.json")}


def made(path, *members, packed=True):
    """Write an archive of these members. A member is a TarInfo with its content."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for member, content in members:
            member.size = len(content) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(content))
    path.write_bytes(gzip.compress(stream.getvalue()) if packed else stream.getvalue())
    return path


def member(name, kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def test_what_is_written_is_read_back_and_is_the_same_each_time(tmp_path, files):
    for name in ("a.tar.gz", "b.tar.gz"):
        archive.write(tmp_path / name, "study", files)
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
    found = archive.read(tmp_path / "a.tar.gz", ANY)
    assert found == {"study/report.html": b"<p>", "study/raw/record.json": b"{}"}
    assert list(archive.read(tmp_path / "a.tar.gz", re.compile(r".*\.json"))) == [
        "study/raw/record.json"
    ]


def test_an_archive_that_cannot_be_written_leaves_the_former(tmp_path, files):
    path = tmp_path / "study.tar.gz"
    archive.write(path, "study", files)
    before = path.read_bytes()
    files["raw/record.json"].unlink()
    with pytest.raises(FileNotFoundError):
        archive.write(path, "study", files)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*partial"))


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (member("../tables/peaks.parquet"), "leads out of the archive"),
        (member("study/../../x"), "leads out of the archive"),
        (member("/etc/passwd"), "leads out of the archive"),
        (member("study\\..\\x"), "leads out of the archive"),
        (member("study/x", tarfile.SYMTYPE, "/etc/passwd"), "not a regular file"),
        (member("study/x", tarfile.LNKTYPE, "../x"), "not a regular file"),
        (member("study/x", tarfile.CHRTYPE), "not a regular file"),
        (member("study/x", tarfile.FIFOTYPE), "not a regular file"),
        (member("study/x", tarfile.GNUTYPE_SPARSE), "not a regular file"),
        (member("study/a"), "twice"),
    ],
    ids=lambda value: value.name if isinstance(value, tarfile.TarInfo) else value,
)
def test_members_that_reach_out_are_refused(tmp_path, attack, why):
    path = made(tmp_path / "x.tar.gz", (member("study/a"), b"1"), (attack, b"2"))
    with pytest.raises(ArchiveError, match=why):
        archive.read(path, ANY)


def test_a_file_that_grows_without_end_is_not_unpacked(tmp_path):
    path = made(tmp_path / "x.tar.gz", (member("study/zeros"), bytes(50 * 2**20)))
    assert path.stat().st_size < 2**20
    with pytest.raises(ArchiveError, match="its content is larger than 1 MiB"):
        archive.read(path, re.compile("nothing"), most_bytes=2**20)


def test_a_sparse_file_is_not_what_it_says_it_is(tmp_path):
    told = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(10**12)}
    sparse = member("study/tables/peaks.parquet")
    sparse.pax_headers = told
    path = made(tmp_path / "x.tar.gz", (sparse, b"1\n0\n512\n".ljust(1024, b"\0")))
    with pytest.raises(ArchiveError):
        archive.read(path, ANY)


def test_an_archive_that_tarfile_reads_too_deeply_is_refused(tmp_path, monkeypatch):
    """For many extended headers in a row, tarfile raises RecursionError."""
    path = made(tmp_path / "x.tar.gz", (member("study/a"), b"1"))

    def too_deep(*_, **__):
        raise RecursionError

    monkeypatch.setattr(tarfile.TarInfo, "fromtarfile", too_deep)
    with pytest.raises(ArchiveError, match="cannot be read"):
        archive.read(path, ANY)


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08\x00"], ids=repr)
def test_what_is_no_archive_is_refused(tmp_path, content):
    path = tmp_path / "x.tar.gz"
    path.write_bytes(content)
    with pytest.raises(ArchiveError, match=r"cannot be read as \.tar\.gz"):
        archive.read(path, ANY)


def test_an_archive_that_is_cut_is_refused(tmp_path, files):
    path = tmp_path / "x.tar.gz"
    archive.write(path, "study", files)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ArchiveError, match="cannot be read"):
        archive.read(path, ANY)
    assert made(path, (member("a"), b""), packed=False)
    with pytest.raises(ArchiveError, match="cannot be read"):
        archive.read(path, ANY)
