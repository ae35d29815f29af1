"""Write the results of a study into one archive, and read an archive from an unknown source.

The reader keeps the files in memory and writes nothing to the disk, so no file name in the archive
can overwrite a file.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from perseus.host.files import whole

MAX_BYTES: Final = 2**30
"""Largest accepted total size of the unpacked files of an archive, in bytes. A small archive may
unpack to terabytes of zeros."""

MAX_MEMBERS: Final = 200_000


class ArchiveError(ValueError):
    """Error: the file is not a valid archive of results. The message is the reason, without the
    name of the file."""


def write(path: Path, root: str, files: Mapping[str, Path]) -> None:
    """Write an archive with one folder `root` that contains all `files`. The keys of `files` are
    the file names in this folder.

    Two archives of the same files have the same bytes, because the archives store neither times nor
    owners of the files.
    """
    with (
        whole(path) as partial,
        partial.open("wb") as stream,
        gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, file in sorted(files.items()):
            member = tarfile.TarInfo(f"{root}/{name}")
            member.size, member.mode = file.stat().st_size, 0o644
            with file.open("rb") as content:
                archive.addfile(member, content)


def read(path: Path, wanted: re.Pattern[str], most_bytes: int = MAX_BYTES) -> dict[str, bytes]:
    """Return the content of each file in the archive whose whole name matches `wanted`, by file
    name.

    Raises ArchiveError if the archive is damaged, has more than `most_bytes` unpacked bytes, or has
    more than MAX_MEMBERS members. Also raises ArchiveError for an invalid member: a link, a device,
    a file with an absolute path or `..` in its path, or a second file with the same name.
    """
    names, found = set[str](), dict[str, bytes]()
    try:
        with (
            gzip.open(path) as unpacked,
            tarfile.open(fileobj=_Bounded(unpacked, most_bytes), mode="r|") as archive,
        ):
            for count, member in enumerate(archive):
                if count == MAX_MEMBERS:
                    raise ArchiveError(f"it has more than {MAX_MEMBERS} members")
                if member.isdir():
                    continue
                _refuse(member, names)
                names.add(member.name)
                if wanted.fullmatch(member.name) and (content := archive.extractfile(member)):
                    found[member.name] = content.read()
    except ArchiveError:
        raise
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        # tarfile raises ValueError for wrong numbers in extended headers, not TarError. For many
        # extended headers in a row, tarfile raises RecursionError.
        raise ArchiveError(f"it cannot be read as .tar.gz ({error})") from None
    return found


def _refuse(member: tarfile.TarInfo, names: Collection[str]) -> None:
    name = PurePosixPath(member.name)
    # The header of a sparse file may state any size, independent of the data in the archive.
    if not member.isreg() or member.issparse():
        raise ArchiveError(f"its member {member.name!r} is not a regular file")
    if name.is_absolute() or ".." in name.parts or "\\" in member.name:
        raise ArchiveError(f"its member {member.name!r} has a path that leads out of the archive")
    if member.name in names:
        raise ArchiveError(f"it has the member {member.name!r} twice")


class _Bounded(io.RawIOBase):
    """A stream that raises ArchiveError when its reader has read more than `most_bytes` bytes."""

    def __init__(self, stream: gzip.GzipFile, most_bytes: int) -> None:
        self._stream, self._most, self._left = stream, most_bytes, most_bytes

    def read(self, size: int = -1) -> bytes:
        wanted = self._left + 1 if size < 0 else min(size, self._left + 1)
        given = self._stream.read(wanted)
        self._left -= len(given)
        if self._left < 0:
            raise ArchiveError(f"its content is larger than {self._most / 2**20:.0f} MiB")
        return given
