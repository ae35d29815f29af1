"""Define a name in Triton's rate limiter that the model repository and the command line of the
server share."""

from typing import Final

RESOURCE: Final = "cores"
"""Name of the resource that tenants with a priority share (see `repository.model_config`)."""
