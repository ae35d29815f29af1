"""A remote server: its addresses and protocol settings."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from perseus.study.base import Part, Text, Whole

NAME: Final = "[A-Za-z0-9_][A-Za-z0-9._-]*"
"""Characters of a host; names of containers have underscores."""
HOST: Final = rf"^({NAME}|[0-9A-Fa-f:.]{{2,45}})$"
ADDRESS: Final = rf"^(\[[0-9A-Fa-f:.]+\]|{NAME}):[0-9]{{1,5}}$"
URL: Final = rf"^https?://(\[[0-9A-Fa-f:.]+\]|{NAME})(:[0-9]{{1,5}})?/[!-~]*$"
Address = Annotated[Text, Field(pattern=ADDRESS)]


def one_name(host: str) -> str:
    """Return a canonical name or address; localhost for all names of this host."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.lower().rstrip(".")
    return "localhost" if address.is_loopback else str(address)


def _at(given: dict[str, Any], port: int) -> str:
    host = given["host"]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class SecretHeader(Part):
    """A header of every call: `prefix` and the value of the environment variable `env`."""

    name: Annotated[Text, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")] = Field(
        description="Name of the header, in lower case, such as authorization.",
        examples=["authorization"],
    )
    env: Annotated[Text, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")] = Field(
        description=(
            "The environment variable that holds its value, which is never written to a file."
        ),
        examples=["TOKEN"],
    )
    prefix: Annotated[Text, Field(pattern=r"^[ -~]*$")] = Field(
        default="", description='Prefix of the value, such as "Bearer ".'
    )


class Remote(Part):
    """Addresses of a remote server. `client_cores` are cores of the measuring host."""

    host: Annotated[Text, Field(pattern=HOST, max_length=253)] = Field(
        description="Name or IP address. A machine never measures two servers of the same name"
        " or address at the same time; 127.0.0.1, localhost and the like are one.",
        examples=["127.0.0.1"],
    )
    grpc: Address = Field(
        default_factory=lambda given: _at(given, 8001),
        description="Address of its gRPC, host:port. Default, port 8001 of the host.",
    )
    http: Address = Field(
        default_factory=lambda given: _at(given, 8000),
        description="Address of its HTTP, host:port. Default, port 8000 of the host.",
    )
    metrics: Annotated[Text, Field(pattern=URL)] = Field(
        default_factory=lambda given: f"http://{_at(given, 8002)}/metrics",
        description="URL of its metrics, with a path. Default, http://host:8002/metrics.",
    )
    tls: Annotated[Text, Field(min_length=1)] = Field(
        default="none",
        description=(
            "`none`; `system`, gRPC and HTTP over TLS with the certificates that this system"
            " trusts; or the path of a PEM file with trusted certificates."
        ),
    )
    headers: tuple[SecretHeader, ...] = Field(
        default=(), description="Headers that every call carries, such as a token."
    )
    other_models: Literal["refuse", "allow"] = Field(
        default="refuse",
        description="What to do if the server has loaded models that are not in the study.",
    )
    client_cores: Annotated[Whole, Field(ge=1)] = Field(
        default=1,
        description="Cores of this host for the client, for all tenants together.",
    )

    @property
    def slot(self) -> str:
        """The Snakemake resource that only one cell at a time may use."""
        return "remote_" + re.sub(r"[^a-z0-9]", "_", one_name(self.host))
