"""Define the version of Perseus.

The files pyproject.toml, CITATION.cff and CHANGELOG.md must contain the same version.
"""

VERSION = "1.0.0"
