"""Jobs that follow from the measurements, of the study that is edited."""

import pytest


@pytest.fixture(scope="module")
def figures(finished):
    return {job for job in finished.jobs() if job[0] == "figure"} | {("report",)}


@pytest.fixture(scope="module")
def downstream(figures):
    """Everything after the measurements."""
    return {("tables",), ("check_tables",), *figures}
