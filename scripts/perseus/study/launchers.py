"""Launchers: ways to get a server, and their properties.

A new one is an entry here and a module of its name in `serving/launchers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Launcher:
    """A way to get a server.

    `container` says that it runs from an image. `image_schemes` are the allowed beginnings of an
    image's name, if the image may also be a file. `shares_memory` says that the server sees this
    host's /dev/shm. `elsewhere` says that nothing is started, since the server runs on another
    host.
    """

    container: bool = False
    image_schemes: tuple[str, ...] = ()
    shares_memory: bool = False
    elsewhere: bool = False

    @property
    def runs_our_backends(self) -> bool:
        """True if the server is that of the wheel, which has only Python backends."""
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
