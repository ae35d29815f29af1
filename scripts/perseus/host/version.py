"""The version of Perseus, equal to those in pyproject.toml, CITATION.cff and CHANGELOG.md."""

VERSION = "1.0.0"
