"""Define the task of the job that exports a classification model of torchvision."""

from __future__ import annotations

from perseus.study.base import Part


class ExportTask(Part):
    """Settings of the export of a model. The export depends on neither the SLA nor the precision.

    `architecture` is a classification model of torchvision, such as "resnet50". `weights` has one
    of three forms:

    - "random": seeded random weights, without a download
    - "DEFAULT" or a name such as "IMAGENET1K_V1": weights that torchvision downloads
    - the path of a state_dict file for the network that
      `torchvision.models.get_model(architecture)` builds

    `seed` is the seed of random weights and random images. `input_size` is the height and width of
    the input in pixels; None means the size for which the weights were trained. `request` is
    "float32" (normalised colours) or "uint8" (pixels that the exported network normalises).
    `is_surveyed` is true if only the experiment `catalogue` measures the model. If the export of
    such a model fails, the table `catalogue` says why, and the study continues. `images` contains
    the paths of image files. If `images` is empty, the export uses random images. The export
    preprocesses image files as the weights require.
    """

    architecture: str
    weights: str = "random"
    seed: int = 0
    input_size: int | None = None
    images: tuple[str, ...] = ()
    request: str = "float32"
    is_surveyed: bool = False
