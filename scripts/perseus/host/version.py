"""Define the version of Perseus, which is equal to the version in pyproject.toml, CITATION.cff and
CHANGELOG.md."""

VERSION = "1.0.0"
