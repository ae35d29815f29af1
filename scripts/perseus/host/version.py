"""The version of Perseus, as in pyproject.toml, CITATION.cff and CHANGELOG.md."""

VERSION = "1.0.0"
