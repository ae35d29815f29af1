"""Define the task: export one model."""

from __future__ import annotations

from perseus.study.base import Part


class ExportTask(Part):
    """Settings of an export, which does not depend on the SLA or the precision.

    `architecture` is a classification model of torchvision, such as "resnet50". `weights` is
    "random" (seeded, needs no network access), "DEFAULT", the name of weights of torchvision such
    as "IMAGENET1K_V1" (torchvision downloads them), or the path of a state_dict file. The file must
    fit the network that `torchvision.models.get_model(architecture)` builds. `seed` is the seed of
    random weights and random images. `input_size` is the height and width in pixels; None is the
    size for which the weights were trained. `request` is "float32" (normalised colours) or "uint8"
    (pixels that the exported network normalises). If `is_surveyed` is true, a network that cannot
    be exported becomes a row of the catalogue with the reason, and the run continues. `images` has
    image files, which the export preprocesses as the weights need it (`networks.preset`); it is
    empty for random images.
    """

    architecture: str
    weights: str = "random"
    seed: int = 0
    input_size: int | None = None
    images: tuple[str, ...] = ()
    request: str = "float32"
    is_surveyed: bool = False
