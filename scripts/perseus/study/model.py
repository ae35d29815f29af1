"""Define a model of a study: a network with its weights or a served model, with its precision and
SLA."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import Field

from perseus.study.base import Flag, Name, Part, Real, Text, Whole
from perseus.study.image_files import MAX_INPUT_PX, MIN_INPUT_PX
from perseus.study.sla import Sla

Precision = Literal["fp32", "bf16", "fp16", "int8"]
"""Numeric precision of a network; the inputs and outputs of a network are always fp32."""

MODEL_OF_SERVER: Final = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$"
Dimension = Annotated[Whole, Field(ge=1, le=2**31 - 1)]


Positive = Annotated[Real, Field(gt=0)]


class ValueRange(Part):
    """The range of seeded noise."""

    low: Real = Field(description="The lowest value.", examples=[0.0])
    high: Real = Field(description="The highest value.", examples=[1.0])


class Model(Part):
    """A network of torchvision, an ONNX file, or a served model, with its SLA."""

    name: Name = Field(
        description=("The name of the model in this study, which tenants refer to."),
        examples=["resnet50"],
    )
    architecture: Text = Field(
        default_factory=lambda given: given["name"],
        description=(
            "A classification model of torchvision; a model of timm, timm/NAME or timm/NAME.TAG"
            " (needs the packages of envs/timm.txt); or a detection or segmentation model of"
            " torchvision, torchvision/NAME. Default: the name of the model."
        ),
        examples=["timm/convnext_tiny.in12k_ft_in1k"],
    )
    architectures: Literal["all"] | Annotated[tuple[Text, ...], Field(min_length=1)] | None = Field(
        default=None,
        description=(
            "Many models in place of one: `all` classification models of torchvision, or patterns"
            " such as [resnet*, vit_b_16]. Each architecture becomes a model, the lightest first."
            " Perseus repeats the scenarios with this model for each architecture. The names of"
            " these scenarios contain the name of the architecture in place of the name of this"
            " model."
        ),
    )
    weights: Annotated[Text, Field(min_length=1)] = Field(
        default="random",
        description=(
            "`random` (seeded, works offline), `DEFAULT` or another torchvision weights name such"
            " as IMAGENET1K_V1 (downloaded), or the path of a state_dict file, which may have"
            " another number of classes. `DEFAULT` for timm/NAME.TAG means the weights of the tag."
        ),
    )
    onnx: Annotated[Text, Field(min_length=1)] | None = Field(
        default=None,
        description=(
            "The path of an ONNX file, in place of architecture and weights. The inputs and"
            " outputs are tensors of numbers. The weights are inside the file or in files beside"
            " it, as torch.onnx.export writes them. If the responses to a batch equal the"
            " responses to single examples, requests may have batches; otherwise each request is"
            " one example."
        ),
    )
    served_model: Annotated[Text, Field(pattern=MODEL_OF_SERVER)] | None = Field(
        default=None,
        description=(
            "The name of a model that servers with launcher `remote` already have, in place of"
            " architecture and weights. The server reports the inputs of the model. Perseus"
            " neither loads nor unloads the model (docs/how-to/remote-servers.md)."
        ),
        examples=["text_encoder"],
    )
    shape: dict[Text, Annotated[tuple[Dimension, ...], Field(min_length=1)]] = Field(
        default={},
        description=(
            "The sizes of inputs of an `onnx` file or a `served_model` that are not fixed, by the"
            " name of the input: only the open sizes, {x: [48, 192]}, or all sizes after the"
            " batch, {x: [3, 48, 192]}."
        ),
    )
    images: Annotated[Text, Field(min_length=1)] | None = Field(
        default=None,
        description=(
            "A folder with at least four PNG or JPEG files. Perseus uses the first eight files by"
            " name. For a classification model, it preprocesses the images as torchvision does for"
            " the weights (for `random` weights and weights of a file, as for `DEFAULT`). For"
            " LIBRARY/NAME, it resizes and scales the images to the input. For an `onnx` file or a"
            " `served_model`, it resizes the images to the input, and `layout`, `scale`, `mean`"
            " and `std` define the remaining preprocessing. Default: seeded random images."
        ),
    )
    layout: Literal["nchw", "nhwc"] | None = Field(
        default=None,
        description=(
            "Position of the channels of `images` for an `onnx` file or a `served_model`. Default:"
            " the dimension of the input with size 1 or 3."
        ),
    )
    scale: Real = Field(
        default=1.0,
        description=(
            "The factor for each pixel (0 to 255) of the `images` for an `onnx` file or a"
            " `served_model`, such as 0.00392157."
        ),
    )
    mean: tuple[Real, ...] | Real = Field(
        default=0.0,
        description=(
            "The number that is subtracted after the multiplication with `scale`: one number, or"
            " one number for each channel (red, green, blue)."
        ),
    )
    std: tuple[Positive, ...] | Positive = Field(
        default=1.0,
        description=(
            "The divisor after the subtraction of `mean`: one number, or one number for each"
            " channel."
        ),
    )
    inputs: Annotated[Text, Field(min_length=1)] | None = Field(
        default=None,
        description=(
            "Your own examples for an `onnx` file, a `served_model` or LIBRARY/NAME: a file of"
            " numpy.savez with an array for each input, under its name. The first size of each"
            " array is the number of examples; Perseus uses at most 32 examples. Default: seeded"
            " noise."
        ),
    )
    values: ValueRange | None = Field(
        default=None,
        description=(
            "The range of the seeded noise for an `onnx` file, a `served_model` or LIBRARY/NAME,"
            " both ends included, such as {low: 0, high: 30521} for tokens. By default,"
            " floating-point numbers are standard normal, integers of one byte have any value, and"
            " wider integers are 0 or 1."
        ),
    )
    input_size: Annotated[Whole, Field(ge=MIN_INPUT_PX, le=MAX_INPUT_PX)] | None = Field(
        default=None,
        description=(
            "Height and width of the input in pixels; for an `onnx` file, all sizes that are not"
            " fixed. Default: the size for which the weights were trained, or the size in the"
            " file. The size of `images` before the crop keeps its proportion to the crop."
        ),
    )
    request: Literal["float32", "uint8"] = Field(
        default="float32",
        description=(
            "Content of the requests to a classification model of torchvision: `float32`"
            " (normalised colours) or `uint8` (pixels of 0 to 255). `uint8` needs a quarter of the"
            " bytes, and the network normalises the pixels itself."
        ),
    )
    deterministic: Flag = Field(
        default=True,
        description=(
            "`false` measures an `onnx` file that gives different responses to the same request,"
            " such as a network with random operators. Perseus does not check the responses of"
            " this file, and the report states this."
        ),
    )
    precision: Precision = Field(
        default="fp32",
        description=(
            "The numeric precision of the network; inputs and outputs stay fp32. bf16 needs a"
            " server with runtime openvino, fp16 a GPU, int8 openvino or a GPU with tensorrt."
        ),
    )
    sla: Sla = Field(
        description="The SLA: the response-time target that every certified load keeps.",
        examples=[{"latency_ms": 100.0}],
    )

    @property
    def is_classifier(self) -> bool:
        """True if the model is a classification model of torchvision."""
        return self.is_built and "/" not in self.architecture

    @property
    def is_of_library(self) -> bool:
        """True if the architecture is LIBRARY/NAME: a model of timm, or a detection or segmentation
        model of torchvision."""
        return self.is_built and "/" in self.architecture

    @property
    def is_built(self) -> bool:
        """True if torch builds the model from an architecture and weights."""
        return self.onnx is None and not self.is_served

    @property
    def is_served(self) -> bool:
        """True if servers already have the model, so that Perseus neither exports nor loads it."""
        return self.served_model is not None

    @property
    def weights_file(self) -> str | None:
        """Path of the state_dict file, if the weights are a file."""
        chosen = self.weights == "random" or re.fullmatch(r"[A-Z][A-Z0-9_]*", self.weights)
        return None if chosen else self.weights
