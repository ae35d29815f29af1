"""Triton's rate limiter: what the repository and the server's command line must agree on."""

from typing import Final

RESOURCE: Final = "cores"
"""The resource that tenants with a priority share (`repository.model_config`)."""
