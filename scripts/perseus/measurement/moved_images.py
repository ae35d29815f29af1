"""Find cells that were measured with another container image than the current image of the same
name.

A tag can move to another image without a change of the configuration, so Snakemake does not notice
the new image.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ValidationError

from perseus.serving.container_engine import image_id
from perseus.serving.failures import ServerError
from perseus.study.server import Server


class ImageRecord(BaseModel):
    """The keys that this module reads from record.json."""

    image_id: str | None = None


def measured_with_another(server: Server, records: Iterable[str]) -> list[str]:
    """Return the records of cells that were measured with another image than the server's current
    image.

    The result is empty if no container engine knows the image, and for apptainer, which reports no
    image ids. An image that is a file is an input of its cells, so Snakemake checks the file.
    """
    told = {path: image for path in records if (image := _measured_with(Path(path)))}
    engine = shutil.which(server.launcher)
    try:
        now = image_id(engine, server.image) if told and engine and server.image else None
    except ServerError:
        return []
    return [path for path, image in told.items() if now not in (None, image)]


def _measured_with(record: Path) -> str | None:
    """Return the image id in a record; None without a record or an image."""
    try:
        return ImageRecord.model_validate_json(record.read_bytes()).image_id
    except (OSError, ValidationError):
        return None
