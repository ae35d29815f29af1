"""Explain the errors of a remote server, and what to do."""

from __future__ import annotations

import re

from tritonclient.utils import InferenceServerException

from perseus.serving.access import Access
from perseus.serving.failures import ServerError

_HINTS = (
    (
        r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|Hostname mismatch|not valid for",
        "Its certificate is not signed by an authority that tls: trusts, or belongs to another"
        " host: set tls: to the PEM file of its authority.",
    ),
    (
        r"WRONG_VERSION|wrong version|record layer|handshake|SSL",
        "It does not speak TLS here, and tls: asks for it (Triton's own HTTP never does).",
    ),
    (
        r"UNAUTHENTICATED|PERMISSION_DENIED|HTTP 40[13]",
        "It requires authentication: add the header, and the environment variable of its token,"
        " under headers:.",
    ),
    (
        r"model load / unload is not allowed",
        "Start it with --model-control-mode=explicit.",
    ),
    (
        r"DEADLINE_EXCEEDED|timed out|Deadline Exceeded",
        "It did not answer in time: is it overloaded, or does a firewall drop the packets?",
    ),
    (
        r"Socket closed|Connection reset|Broken pipe|GOAWAY|closed connection|BadStatusLine",
        "It closes the connection: does it require TLS (tls:)? Is the port right?",
    ),
    (
        r"UNAVAILABLE|refused|resol|unreachable|Name or service|No route",
        "It cannot be reached: is it running, are host: and the ports right, and does it listen on"
        " that address (docs/how-to/remote-servers.md)?",
    ),
    (
        r"UNIMPLEMENTED|HTTP 404",
        "It does not support this call. Models can be pushed to a Triton only; any other server"
        " of the Open Inference Protocol is measured with models that it has (served_model:).",
    ),
)


def explained(error: InferenceServerException | OSError, where: str, access: Access) -> ServerError:
    """Return the error as one sentence without secrets, and a hint."""
    message = str(error)
    if isinstance(error, InferenceServerException):
        message = f"{(error.status() or '').removeprefix('StatusCode.')}: {error.message()}"
    message = access.hide(message).strip().strip(".")[:1000]
    hint = next((text for pattern, text in _HINTS if re.search(pattern, message)), "")
    return ServerError(f"the server at {where}: {message}. {hint}".rstrip())
