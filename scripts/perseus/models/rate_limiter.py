"""Define the name of a resource of Triton's rate limiter, for the model repository and for the
command line of the server."""

from typing import Final

RESOURCE: Final = "cores"
"""Name of the resource that tenants with a priority share (see `repository.model_config`)."""
