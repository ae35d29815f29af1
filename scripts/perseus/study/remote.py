"""Define a remote server: its addresses and protocol settings."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from perseus.study.base import Part, Text, Whole

NAME: Final = "[A-Za-z0-9_][A-Za-z0-9._-]*"
"""Pattern of a host name. Underscores are allowed, because names of containers may have them."""
HOST: Final = rf"^({NAME}|[0-9A-Fa-f:.]{{2,45}})$"
ADDRESS: Final = rf"^(\[[0-9A-Fa-f:.]+\]|{NAME}):[0-9]{{1,5}}$"
URL: Final = rf"^https?://(\[[0-9A-Fa-f:.]+\]|{NAME})(:[0-9]{{1,5}})?/[!-~]*$"
Address = Annotated[Text, Field(pattern=ADDRESS)]


def one_name(host: str) -> str:
    """Return the same name for all spellings of a host, so that callers can compare hosts. The name
    of all loopback addresses is "localhost"."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.lower().rstrip(".")
    return "localhost" if address.is_loopback else str(address)


def _at(given: dict[str, Any], port: int) -> str:
    host = given["host"]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class SecretHeader(Part):
    """A header that the client adds to every call to the server. The value of the header is
    `prefix`, followed by the value of the environment variable `env`."""

    name: Annotated[Text, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")] = Field(
        description="The name of the header in lower case, such as authorization.",
        examples=["authorization"],
    )
    env: Annotated[Text, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")] = Field(
        description=(
            "The environment variable that contains the secret value, such as a token. Perseus"
            " never writes this value to a file."
        ),
        examples=["TOKEN"],
    )
    prefix: Annotated[Text, Field(pattern=r"^[ -~]*$")] = Field(
        default="",
        description='Text before the secret value in the header, such as "Bearer ".',
    )


class Remote(Part):
    """Addresses, encryption and headers of a remote server, and the cores of the client."""

    host: Annotated[Text, Field(pattern=HOST, max_length=253)] = Field(
        description=(
            "The host name or IP address of the server. Perseus never measures two servers on the"
            " same host at the same time. localhost and all loopback addresses, such as 127.0.0.1,"
            " count as the same host."
        ),
        examples=["127.0.0.1"],
    )
    grpc: Address = Field(
        default_factory=lambda given: _at(given, 8001),
        description="The gRPC address of the server, host:port. Default: port 8001 of the host.",
    )
    http: Address = Field(
        default_factory=lambda given: _at(given, 8000),
        description="The HTTP address of the server, host:port. Default: port 8000 of the host.",
    )
    metrics: Annotated[Text, Field(pattern=URL)] = Field(
        default_factory=lambda given: f"http://{_at(given, 8002)}/metrics",
        description=(
            "The URL at which the server publishes its metrics, including the path. Default:"
            " http://host:8002/metrics."
        ),
    )
    tls: Annotated[Text, Field(min_length=1)] = Field(
        default="none",
        description=(
            "The encryption of gRPC and HTTP. `none`: no encryption. `system`: TLS; the server"
            " needs a certificate from an authority that this system trusts. The path of a PEM"
            " file: TLS; the server needs a certificate from an authority in this file."
        ),
    )
    headers: tuple[SecretHeader, ...] = Field(
        default=(),
        description=(
            "Headers that the client adds to every call to the server, for example with a token."
            " Each header is a mapping: `name` (the name of the header, in lower case), `env` (the"
            " environment variable that contains the secret value) and, optionally, `prefix` (text"
            ' before this value, such as "Bearer "). Perseus never writes the value to a file.'
        ),
    )
    other_models: Literal["refuse", "allow"] = Field(
        default="refuse",
        description=(
            "What Perseus does if the server has loaded models that are not in the study: `refuse`"
            " stops the run, and `allow` measures nevertheless. For a scenario in which every model"
            " is a `served_model`, Perseus measures in both cases."
        ),
    )
    client_cores: Annotated[Whole, Field(ge=1)] = Field(
        default=1,
        description=(
            "Number of CPU cores of this host that the client uses to send the requests of all"
            " tenants."
        ),
    )

    @property
    def slot(self) -> str:
        """Name of the Snakemake resource for the host of the server. Only one job at a time may use
        this resource, so Perseus never measures two servers on the host at the same time."""
        return "remote_" + re.sub(r"[^a-z0-9]", "_", one_name(self.host))
