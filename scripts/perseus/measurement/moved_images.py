"""Find cells whose container image has the same name as the server's current image, but other
content.

The tag of an image can move to another image. The configuration stays the same, so Snakemake does
not notice the change, and would not measure the cells again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from pydantic import AliasPath, BaseModel, Field, ValidationError

from perseus.serving.container_engine import image_id
from perseus.serving.failures import ServerError
from perseus.study.server import Server


class ImageRecord(BaseModel):
    """The keys that this module reads from record.json."""

    image: str | None = Field(None, validation_alias=AliasPath("cell", "server", "image"))
    image_id: str | None = None


def measured_with_another(server: Server, records: Iterable[str]) -> list[str]:
    """Return the paths of the records whose image has the name of the server's current image, but
    another id.

    The list is empty if no container engine knows the image. For apptainer, the list is always
    empty, because apptainer reports no image ids. The list omits two changes that Snakemake itself
    detects: another name of the image in the configuration, and a changed image file.
    """
    told = {path: image for path in records if (image := _measured_with(server, Path(path)))}
    engine = shutil.which(server.launcher)
    try:
        now = image_id(engine, server.image) if told and engine and server.image else None
    except ServerError:
        return []
    return [path for path, image in told.items() if now not in (None, image)]


def _measured_with(server: Server, path: Path) -> str | None:
    """Return the image id in a record; None if the record is unreadable, has no image id, or names
    another image than the server's image."""
    try:
        record = ImageRecord.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    return record.image_id if record.image == server.image else None
