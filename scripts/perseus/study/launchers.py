"""Define the launchers (the ways to start a server or to use a running server) and their
properties.

To add a launcher, add an entry to `LAUNCHERS` and a module with the name of the launcher to
`serving/launchers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Launcher:
    """Properties of a launcher.

    `container` is true if the launcher starts the server in a container. `image_schemes` contains
    the allowed URI schemes, such as docker, if the container image may be a file or a URI. For
    other launchers, `image_schemes` is empty. `shares_memory` is true if the server can access the
    shared memory of this host (/dev/shm). `elsewhere` is true if the server already runs, usually
    on another host, and Perseus does not start it.
    """

    container: bool = False
    image_schemes: tuple[str, ...] = ()
    shares_memory: bool = False
    elsewhere: bool = False

    @property
    def runs_our_backends(self) -> bool:
        """True if the launcher starts the server of the nvidia-pytriton wheel. This server runs
        only Python backends, so Perseus brings its own backends."""
        return not (self.container or self.elsewhere)


LAUNCHERS: Final[dict[str, Launcher]] = {
    "embedded": Launcher(shares_memory=True),
    "docker": Launcher(container=True),
    "podman": Launcher(container=True),
    "apptainer": Launcher(
        container=True, image_schemes=("docker", "oras", "library"), shares_memory=True
    ),
    "remote": Launcher(elsewhere=True),
}
"""Launchers by their name in the configuration."""
