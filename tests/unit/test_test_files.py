"""Tests that pytest can collect the tests of any choice of folders in one run."""

from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_no_two_test_files_have_one_name():
    """The test folders are not packages, so pytest refuses a second module with the same name."""
    names = Counter(path.name for path in TESTS.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
