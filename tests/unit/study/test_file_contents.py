"""Tests of the fingerprints of the user's files."""

from __future__ import annotations

import pytest

from perseus.study.file_contents import END_BYTES, contents

LARGE = b"a" * 3 * END_BYTES


@pytest.mark.parametrize(
    ("before", "after", "is_noticed"),
    [
        (b"", b"a", True),
        (b"ab", b"ba", True),
        (LARGE, b"b" + LARGE[1:], True),
        (LARGE, LARGE[:-1] + b"b", True),
        (LARGE, LARGE + b"a", True),
        (LARGE, LARGE, False),
    ],
    ids=["length", "small", "begin", "end", "longer", "copy"],
)
def test_a_change_of_the_content_changes_the_fingerprint(tmp_path, before, after, is_noticed):
    paths = [tmp_path / "before", tmp_path / "after"]
    for path, content in zip(paths, (before, after), strict=True):
        path.write_bytes(content)
    first, second = (contents([str(path)]) for path in paths)
    assert (first != second) == is_noticed


def test_missing_files_have_no_fingerprint(tmp_path):
    assert contents([]) == contents([str(tmp_path / "missing")]) == {}
