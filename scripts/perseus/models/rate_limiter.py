"""Define settings of Triton's rate limiter for the model repository and the command line of the
server."""

from typing import Final

RESOURCE: Final = "cores"
"""Resource of the rate limiter that tenants with a priority share (`repository.model_config`)."""
