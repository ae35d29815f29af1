"""Define the task: export one model."""

from __future__ import annotations

from perseus.study.base import Part


class ExportTask(Part):
    """Settings of an export. An SLA or a precision does not change it.

    architecture: a torchvision classification model, such as "resnet50".
    weights: "random" (seeded, needs no network), "DEFAULT" or the name of torchvision weights such
        as "IMAGENET1K_V1" (downloaded by torchvision), or the path of a state_dict file, loaded
        into the network as `torchvision.models.get_model(architecture)` builds it.
    seed: of the random weights and of the random images.
    input_size: height and width in pixels; None takes what the weights were made for.
    request: "float32", normalised colours, or "uint8", pixels that the exported network normalises.
    is_surveyed: whether a network that cannot be exported is a row of a survey that says why,
        rather than the end of the run.
    images: files, preprocessed as the weights want (`networks.preset`); none for random images.
    """

    architecture: str
    weights: str = "random"
    seed: int = 0
    input_size: int | None = None
    images: tuple[str, ...] = ()
    request: str = "float32"
    is_surveyed: bool = False
