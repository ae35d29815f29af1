"""Explain errors of calls to a remote server, and say what to do."""

from __future__ import annotations

import re

from tritonclient.utils import InferenceServerException

from perseus.serving.access import Access
from perseus.serving.failures import ServerError

_HINTS = (
    (
        r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|Hostname mismatch|not valid for"
        r"|not in peer certificate|Hostname Verification Check failed",
        "No authority in the key `tls` has signed the certificate of the server, or the certificate"
        " belongs to another host: set `tls` to the PEM file of the right authority.",
    ),
    (
        r"WRONG_VERSION|wrong version|record layer|handshake|SSL",
        "The server does not use TLS on this port, but the key `tls` requires TLS. (The HTTP server"
        " of Triton has no TLS.)",
    ),
    (
        r"UNAUTHENTICATED|PERMISSION_DENIED|HTTP 40[13]",
        "The server requires authentication: add a header to the key `headers`, with the name of"
        " the environment variable that contains the token.",
    ),
    (
        r"model load / unload is not allowed",
        "Start the server with --model-control-mode=explicit.",
    ),
    (
        r"DEADLINE_EXCEEDED|timed out|Deadline Exceeded",
        "The server did not respond in time: is the server overloaded, or does a firewall drop the"
        " packets?",
    ),
    (
        r"Socket closed|Connection reset|Broken pipe|GOAWAY|closed connection|BadStatusLine",
        "The server closes the connection: does the server require TLS (key `tls`)? Is the port"
        " right?",
    ),
    (
        r"UNAVAILABLE|refused|resol|unreachable|Name or service|No route",
        "The server is unreachable: does the server run, are the host and the ports right, and does"
        " the server listen on this address (docs/how-to/remote-servers.md)?",
    ),
    (
        r"UNIMPLEMENTED|HTTP 404",
        "The server does not support this call. Perseus can load models only on a Triton server. On"
        " any other server of the Open Inference Protocol, Perseus measures only models that the"
        " server already has (key `served_model`).",
    ),
)


def explained(error: InferenceServerException | OSError, where: str, access: Access) -> ServerError:
    """Return a ServerError whose message states the error without secrets, and says what to do.

    `where` is the address of the server.
    """
    message = str(error)
    if isinstance(error, InferenceServerException):
        message = f"{(error.status() or '').removeprefix('StatusCode.')}: {error.message()}"
    message = access.hide(message).strip().strip(".")[:1000]
    hint = next((text for pattern, text in _HINTS if re.search(pattern, message)), "")
    return ServerError(f"the server at {where}: {message}. {hint}".rstrip())
