"""Define the settings of the rate limiter of Triton that the repository and the command line of the
server share."""

from typing import Final

RESOURCE: Final = "cores"
"""Resource of the rate limiter that tenants with a priority share (`repository.model_config`)."""
