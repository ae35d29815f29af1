"""Cells that were measured with another image than their server's image stands for by now.

A tag may be given to another image, which the configuration and Snakemake do not see.
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
    """What is needed of record.json."""

    image_id: str | None = None


def measured_with_another(server: Server, records: Iterable[str]) -> list[str]:
    """Those of the records of a server's cells; none where no engine tells what its image is.

    apptainer names no ids: an image that is a file is an input of its cells.
    """
    told = {path: image for path in records if (image := _measured_with(Path(path)))}
    engine = shutil.which(server.launcher)
    try:
        now = image_id(engine, server.image) if told and engine and server.image else None
    except ServerError:
        return []
    return [path for path, image in told.items() if now not in (None, image)]


def _measured_with(record: Path) -> str | None:
    """None where there is no record, or none that tells."""
    try:
        return ImageRecord.model_validate_json(record.read_bytes()).image_id
    except (OSError, ValidationError):
        return None
