"""Define the name of a resource of Triton's rate limiter. The model repository and the server's
command line refer to the resource by this name."""

from typing import Final

RESOURCE: Final = "cores"
"""Name of the resource that tenants with a priority share (see `repository.model_config`)."""
