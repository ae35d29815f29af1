"""Triton's rate limiter: the common settings of the repository and the server's command line."""

from typing import Final

RESOURCE: Final = "cores"
"""The resource that tenants with a priority share (`repository.model_config`)."""
