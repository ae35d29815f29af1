"""Build neural networks of torchvision and timm by the name of their architecture."""

from __future__ import annotations

import contextlib
import importlib.util
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perseus.models.networks import (
    IMAGENET_CLASSES,
    ExportError,
    WeightsError,
    import_torchvision,
    load_problem,
    preset,
)
from perseus.study.architectures import TIMM_MISSING
from perseus.study.hints import meant_or_known
from perseus.study.tasks.own_examples import Pixels

if TYPE_CHECKING:
    import torch

WHITE = 255.0
"""Largest colour value of a pixel (8 bits per colour)."""


@dataclass(frozen=True)
class Classifier:
    """A classification network of torchvision.

    Only a network with a fixed input size uses `size`, the height and width of the input in pixels.
    If `size` is None, the network has the default size of torchvision.
    """

    name: str
    size: int | None = None
    classes = IMAGENET_CLASSES

    @property
    def known_weights(self) -> list[str]:
        return weights_of_torchvision(self.name)

    def bare(self, *, has_aux: bool = False, classes: int | None = None) -> torch.nn.Module:
        options: dict[str, Any] = {"num_classes": classes or self.classes}
        if self.name in {"googlenet", "inception_v3"}:
            # Only training uses the auxiliary heads, and their initialisation is slow.
            options |= {"init_weights": False, "aux_logits": has_aux}
        if self.size and self.name.startswith("vit_"):
            options["image_size"] = self.size
        if self.size and self.name == "maxvit_t":
            options["input_size"] = (self.size, self.size)
        with _size_refused(self.name, self.size):
            return import_torchvision()[1].models.get_model(self.name, weights=None, **options)

    def trained(self, weights: str) -> torch.nn.Module:
        return _trained_of_torchvision(self.name, weights)

    def call(self, network: torch.nn.Module, images: torch.Tensor) -> Any:
        return network(images)


@dataclass(frozen=True)
class Segmenter:
    """A segmentation network of torchvision. Each output has one score per class and pixel of the
    image."""

    name: str
    classes = 21
    takes_batches = True

    @property
    def known_weights(self) -> list[str]:
        return weights_of_torchvision(self.name)

    @property
    def input_px(self) -> int:
        """Height and width in pixels of the images with which torchvision evaluated the weights."""
        return preset(self.name, "DEFAULT").resize_size[0]

    @property
    def pixels(self) -> Pixels:
        own = preset(self.name, "DEFAULT")
        return Pixels(scale=1 / WHITE, mean=tuple(own.mean), std=tuple(own.std))

    def bare(self, *, has_aux: bool = False, classes: int | None = None) -> torch.nn.Module:
        return import_torchvision()[1].models.get_model(
            self.name,
            weights=None,
            weights_backbone=None,
            aux_loss=has_aux,
            num_classes=classes or self.classes,
        )

    def trained(self, weights: str) -> torch.nn.Module:
        return _trained_of_torchvision(self.name, weights)

    def call(self, network: torch.nn.Module, images: torch.Tensor) -> Any:
        return network(images)


@dataclass(frozen=True)
class Detector:
    """A detection network of torchvision. For each image, the outputs are the boxes, labels and
    scores of the objects that the network finds.

    The inputs are images with colour values from 0 to 1. The network itself resizes the images and
    normalises the colours.
    """

    name: str
    classes = 91
    takes_batches = False
    pixels = Pixels(scale=1 / WHITE)

    @property
    def known_weights(self) -> list[str]:
        return weights_of_torchvision(self.name)

    @property
    def input_px(self) -> int:
        """Height and width in pixels to which the network resizes images."""
        torch, _ = import_torchvision()
        with torch.device("meta"):
            resizes: Any = self.bare().transform
        return resizes.fixed_size[0] if resizes.fixed_size else resizes.min_size[-1]

    def bare(self, *, has_aux: bool = False, classes: int | None = None) -> torch.nn.Module:
        options = {} if classes is None else {"num_classes": classes}
        return import_torchvision()[1].models.detection.__dict__[self.name](
            weights=None, weights_backbone=None, **options
        )

    def trained(self, weights: str) -> torch.nn.Module:
        return _trained_of_torchvision(self.name, weights)

    def call(self, network: torch.nn.Module, images: torch.Tensor) -> Any:
        (found, *_) = network(list(images))
        return found


@dataclass(frozen=True)
class Timm:
    """A network of timm.

    `name` may end in .TAG, where TAG is the name of trained weights. Only a network with a fixed
    input size uses `size`, the height and width of the input in pixels.
    """

    name: str
    size: int | None = None
    takes_batches = True

    @cached_property
    def _facts(self) -> Any:
        """What timm states about the trained weights, such as input size and normalisation.

        Raises ExportError for an unknown name, or if timm is not installed.
        """
        if importlib.util.find_spec("timm") is None:
            raise ExportError(TIMM_MISSING.format(f"timm/{self.name}"))
        import_torchvision()  # timm imports torchvision, whose operators may be missing
        import timm

        name, _, tag = self.name.partition(".")
        if not timm.is_model(name):
            hint = meant_or_known(name, timm.list_models())
            raise ExportError(f"timm {timm.__version__} has no model {name!r}{hint}")
        tags = timm.models.get_arch_pretrained_cfgs(name)
        known = [each.partition(".")[2] for each in tags]
        if tag and tag not in known:
            hint = meant_or_known(tag, known)
            raise ExportError(f"timm {timm.__version__} has no weights {tag!r} of {name}{hint}")
        return timm.get_pretrained_cfg(self.name)

    @property
    def classes(self) -> int:
        return self._facts.num_classes

    @property
    def known_weights(self) -> list[str]:
        return ["DEFAULT"] if self._facts.has_weights else []

    @property
    def input_px(self) -> int:
        return self._facts.input_size[-1]

    @property
    def pixels(self) -> Pixels:
        return Pixels(scale=1 / WHITE, mean=self._facts.mean, std=self._facts.std)

    def bare(self, *, has_aux: bool = False, classes: int | None = None) -> torch.nn.Module:
        options = {} if classes is None else {"num_classes": classes}
        with _size_refused(f"timm/{self.name}", self.size):
            return self._made(pretrained=False, **options)

    def trained(self, weights: str) -> torch.nn.Module:
        if self.size:
            self.bare()  # raises ExportError for an unsuitable size, without a download
        try:
            return self._made(pretrained=True)
        except Exception as error:  # timm, the hub and damaged files raise many kinds of errors
            raise WeightsError(
                f"cannot load the weights of timm/{self.name}: {load_problem(error)}. If this"
                " machine cannot reach huggingface.co, download the file on another machine and"
                " write its path under the key `weights`, or write `weights: random`"
            ) from error

    def call(self, network: torch.nn.Module, images: torch.Tensor) -> Any:
        return network(images)

    def _made(self, **options: Any) -> torch.nn.Module:
        has_fixed_size = self._facts.fixed_input_size
        import timm

        if self.size and has_fixed_size:
            options["img_size"] = self.size
        # `exportable` avoids fused operations, which no exporter supports.
        return timm.create_model(self.name, exportable=True, **options)


@contextlib.contextmanager
def _size_refused(name: str, size: int | None) -> Iterator[None]:
    """Raise ExportError if the library rejects images of `size` x `size` pixels."""
    try:
        yield
    except ExportError:
        raise
    except (AssertionError, ValueError) as error:  # for example, no multiple of the patch size
        if size is None:
            raise
        why = str(error).partition("\n")[0]
        raise ExportError(
            f"{name} does not accept images of {size} x {size} pixels: {why}. Change or remove"
            " input_size"
        ) from error


Library = Segmenter | Detector | Timm
"""A network whose architecture has a name of the form LIBRARY/NAME in a study."""


def of_library(architecture: str, input_size: int | None = None) -> Library:
    """Return the architecture with the name timm/NAME or torchvision/NAME.

    Only networks of timm use `input_size`, the height and width of the images in pixels. Raises
    ExportError for an unknown name.
    """
    library, _, name = architecture.partition("/")
    if library == "timm":
        return Timm(name, input_size)
    _, torchvision = import_torchvision()
    kinds: Mapping[str, type[Segmenter] | type[Detector]] = {
        "detection": Detector,
        "segmentation": Segmenter,
    }
    known = {
        kind: torchvision.models.list_models(getattr(torchvision.models, kind)) for kind in kinds
    }
    for kind, names in known.items():
        if library == "torchvision" and name in names:
            return kinds[kind](name)
    hint = meant_or_known(name, [each for names in known.values() for each in names])
    raise ExportError(
        f"{architecture!r} is not a detection or segmentation model of torchvision{hint}"
    )


def weights_of_torchvision(name: str) -> list[str]:
    _, torchvision = import_torchvision()
    return [*torchvision.models.get_model_weights(name).__members__]


def _trained_of_torchvision(name: str, weights: str) -> torch.nn.Module:
    _, torchvision = import_torchvision()
    choice = torchvision.models.get_model_weights(name)[weights]
    try:
        # The first call compares the file with the hash in its name and runs no pickled code. The
        # second call may run pickled code, but only of the file that passed this check.
        choice.get_state_dict(progress=False, check_hash=True, weights_only=True)
        return torchvision.models.get_model(name, weights=weights)
    except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise WeightsError(
            f"the weights {weights} of {name} cannot be loaded safely: {load_problem(error)}. If"
            f" torch's cache contains {Path(choice.url).name}, remove this file and try again."
        ) from error
    except OSError as error:
        raise WeightsError(
            f"cannot download the weights {weights} of {name}: {error}. Download the file on"
            " another machine and write its path under the key `weights`, or write"
            " `weights: random`."
        ) from error
