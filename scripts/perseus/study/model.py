"""Define the section `models` of a configuration: neural networks, or models that a server already
has, each with its numeric precision and its SLA."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import Field

from perseus.study.base import Flag, Name, Part, Real, Text, Whole
from perseus.study.image_files import MAX_INPUT_PX, MIN_INPUT_PX
from perseus.study.sla import Sla

Precision = Literal["fp32", "bf16", "fp16", "int8"]
"""Numeric precision inside a network. The inputs and outputs of a network are always fp32."""

MODEL_OF_SERVER: Final = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$"
Dimension = Annotated[Whole, Field(ge=1, le=2**31 - 1)]


Positive = Annotated[Real, Field(gt=0)]


class ValueRange(Part):
    """The range of the seeded random numbers with which Perseus fills the inputs of a model."""

    low: Real = Field(description="The lowest value.", examples=[0.0])
    high: Real = Field(description="The highest value.", examples=[1.0])


class Model(Part):
    """A model with its SLA: a neural network of torchvision or timm, an ONNX file, or a model that
    a server already has."""

    name: Name = Field(
        description=(
            "The name of the model in this study. Tenants use this name in their key `model`."
        ),
        examples=["resnet50"],
    )
    architecture: Text = Field(
        default_factory=lambda given: given["name"],
        description=(
            "The network: `NAME` for a classification model of torchvision, `torchvision/NAME` for"
            " a detection or segmentation model of torchvision, `timm/NAME` or `timm/NAME.TAG` for"
            " a model of timm (needs the packages of envs/timm.txt). Default: the name of the"
            " model."
        ),
        examples=["timm/convnext_tiny.in12k_ft_in1k"],
    )
    architectures: Literal["all"] | Annotated[tuple[Text, ...], Field(min_length=1)] | None = Field(
        default=None,
        description=(
            "Several models in place of one. Write `all` for all classification models of"
            " torchvision, or a list of patterns that select these models by their names, such as"
            " [resnet*, vit_b_16]. Each selected architecture becomes a model with its own"
            " scenarios. In the names of these scenarios, the architecture replaces the name of"
            " this model. Perseus sorts the models by their number of operations per image, the"
            " smallest number first."
        ),
    )
    weights: Annotated[Text, Field(min_length=1)] = Field(
        default="random",
        description=(
            "The weights of the network. `random`: seeded random weights, without a download."
            " `DEFAULT`, or the name of torchvision weights such as IMAGENET1K_V1: trained weights,"
            " which Perseus downloads. For timm/NAME.TAG, `DEFAULT` means the weights with this"
            " tag. The path of a state_dict file: the weights in this file. The network then has"
            " as many classes as these weights."
        ),
    )
    onnx: Annotated[Text, Field(min_length=1)] | None = Field(
        default=None,
        description=(
            "The path of an ONNX file, in place of `architecture` and `weights`. All inputs and"
            " outputs must be tensors of numbers. The weights must be inside the file, or in other"
            " files in its folder, where torch.onnx.export writes large weights. Perseus checks"
            " whether the model gives the same responses to a batch as to single examples. If the"
            " responses differ, each request can contain only one example: leave out"
            " `request_batch_size` and `dynamic_batching` of the tenant."
        ),
    )
    served_model: Annotated[Text, Field(pattern=MODEL_OF_SERVER)] | None = Field(
        default=None,
        description=(
            "The name of a model that your running server already has, in place of `architecture`"
            " and `weights`; only for servers with `launcher: remote`. Perseus asks the server for"
            " the inputs of the model. Perseus neither loads nor unloads the model"
            " (docs/how-to/remote-servers.md)."
        ),
        examples=["text_encoder"],
    )
    shape: dict[Text, Annotated[tuple[Dimension, ...], Field(min_length=1)]] = Field(
        default={},
        description=(
            "Sizes for the inputs of an `onnx` file or a `served_model` that accept variable sizes."
            " For each such input, write its name and either only its variable sizes, such as {x:"
            " [48, 192]}, or all its sizes after the batch size, such as {x: [3, 48, 192]}."
        ),
    )
    images: Annotated[Text, Field(min_length=1)] | None = Field(
        default=None,
        description=(
            "A folder with at least four PNG or JPEG files. Perseus sorts the files by name and"
            " uses the first eight files. For a classification model of torchvision, Perseus"
            " preprocesses the images as torchvision does for the weights (for `random` weights and"
            " weights from a file: as for `DEFAULT`). For timm/NAME or torchvision/NAME, Perseus"
            " resizes the images to the input size and scales their pixels. For an `onnx` file or a"
            " `served_model`, Perseus resizes the images to the input size, and `layout`, `scale`,"
            " `mean` and `std` define the remaining preprocessing. Default: seeded random images."
            " If the folder contains a file labels.csv with the correct classes of the images, the"
            " experiment `catalogue` also measures the accuracy of a classification model of"
            " torchvision (docs/how-to/own-models.md)."
        ),
    )
    layout: Literal["nchw", "nhwc"] | None = Field(
        default=None,
        description=(
            "Position of the colour channels in the input of an `onnx` file or a `served_model`"
            " with `images`: before height and width (`nchw`) or after height and width (`nhwc`)."
            " Default: Perseus takes the dimension of size 1 or 3 as the channels."
        ),
    )
    scale: Real = Field(
        default=1.0,
        description=(
            "The factor by which Perseus multiplies each pixel value (0 to 255) of the `images` for"
            " an `onnx` file or a `served_model`, such as 0.00392157 (1/255)."
        ),
    )
    mean: tuple[Real, ...] | Real = Field(
        default=0.0,
        description=(
            "The number that Perseus subtracts from each pixel value after the multiplication by"
            " `scale`: one number for all channels, or one number for each channel (red, green,"
            " blue)."
        ),
    )
    std: tuple[Positive, ...] | Positive = Field(
        default=1.0,
        description=(
            "The number by which Perseus divides each pixel value after the subtraction of `mean`:"
            " one number for all channels, or one number for each channel."
        ),
    )
    inputs: Annotated[Text, Field(min_length=1)] | None = Field(
        default=None,
        description=(
            "The path of a file with your own examples (contents of requests) for an `onnx` file, a"
            " `served_model`, timm/NAME or torchvision/NAME. Write the file with numpy.savez: one"
            " array for each input, under the name of the input. The first dimension of each array"
            " is the number of examples. Perseus uses at most the first 32 examples. Default:"
            " seeded random numbers."
        ),
    )
    values: ValueRange | None = Field(
        default=None,
        description=(
            "The range of the seeded random inputs of an `onnx` file, a `served_model`, timm/NAME"
            " or torchvision/NAME, such as {low: 0, high: 30521} for tokens. `low` and `high` are"
            " part of the range. Default for FP32 images with 3 channels and equal height and"
            " width: coloured patches with noise. Default for other floating-point numbers: the"
            " standard normal distribution. Default for integers of one byte: all values. Default"
            " for wider integers: 0 or 1."
        ),
    )
    input_size: Annotated[Whole, Field(ge=MIN_INPUT_PX, le=MAX_INPUT_PX)] | None = Field(
        default=None,
        description=(
            "Height and width of the input in pixels. In an `onnx` file, all variable sizes get"
            " this number. Default: the size for which the weights were trained, or the size in the"
            " `onnx` file. For some weights, the preprocessing first resizes the `images` to a"
            " larger size and then crops them to the input size. With another input size, Perseus"
            " changes the larger size in the same proportion."
        ),
    )
    request: Literal["float32", "uint8"] = Field(
        default="float32",
        description=(
            "Content of the requests to a classification model of torchvision: `float32`"
            " (normalised colours) or `uint8` (pixel values of 0 to 255). A `uint8` request has a"
            " quarter of the bytes of a `float32` request. For `uint8`, Perseus adds the"
            " normalisation to the network."
        ),
    )
    deterministic: Flag = Field(
        default=True,
        description=(
            "Write `false` for an `onnx` file or a `served_model` that gives different responses to"
            " the same request, such as a network with random operators. Perseus then does not"
            " compare the values in the responses with reference values, and checks only that no"
            " output is missing."
        ),
    )
    precision: Precision = Field(
        default="fp32",
        description=(
            "The numeric precision inside the network; its inputs and outputs are always fp32. bf16"
            " needs a server with runtime `openvino`. fp16 needs a GPU. int8 needs runtime"
            " `openvino`, or a GPU with runtime `tensorrt`."
        ),
    )
    sla: Sla = Field(
        description="The SLA (response-time target) of the model.",
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
        """True if remote servers already have the model (key `served_model`). Perseus then neither
        exports nor loads the model."""
        return self.served_model is not None

    @property
    def weights_file(self) -> str | None:
        """Path of the state_dict file in the key `weights`; None if `weights` is "random" or the
        name of trained weights, such as "DEFAULT"."""
        chosen = self.weights == "random" or re.fullmatch(r"[A-Z][A-Z0-9_]*", self.weights)
        return None if chosen else self.weights
