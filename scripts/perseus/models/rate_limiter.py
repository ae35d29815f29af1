"""Define the name of a resource of Triton's rate limiter.

Both the model repository and the command line of the server contain this name.
"""

from typing import Final

RESOURCE: Final = "cores"
"""Name of the resource that tenants with a priority share (see `repository.model_config`)."""
