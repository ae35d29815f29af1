"""Build neural networks with their weights, and preprocess images as torchvision does."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from perseus.models import missing_operators
from perseus.models.answers import Array
from perseus.models.checkpoints import CheckpointError, state_dicts, weights_of
from perseus.models.tensors import Tensor
from perseus.study.hints import meant_or_known

if TYPE_CHECKING:
    import torch


IMAGENET_CLASSES = 1000
"""Default number of classes of the classification networks of torchvision."""


COUNT = ".num_batches_tracked"
"""End of the name of each batch counter in batch normalisation. Only training uses these counters,
so they may be missing in a file of weights."""


class ExportError(ValueError):
    """Error: Perseus cannot export a model. The message says why, and what to do."""


class WeightsError(OSError):
    """Error: trained weights cannot be loaded, for example without access to the internet.

    The same export may succeed later or on another machine.
    """


class Architecture(Protocol):
    """Interface of the classes in `models.architectures`, which build neural networks."""

    @property
    def name(self) -> str: ...

    @property
    def classes(self) -> int:
        """Default number of classes of the network."""

    @property
    def known_weights(self) -> Sequence[str]:
        """Names of the trained weights of the architecture."""

    def bare(self, *, has_aux: bool = False, classes: int | None = None) -> torch.nn.Module:
        """Return the network with the initial weights of torch.

        If `has_aux` is true, the network has auxiliary heads, which only training uses. `classes`
        is the number of classes; None for the default number.
        """

    def trained(self, weights: str) -> torch.nn.Module:
        """Return the network with the trained weights `weights`.

        Raises WeightsError if the weights cannot be loaded.
        """

    def call(self, network: torch.nn.Module, images: torch.Tensor) -> Any:
        """Return the response of the network to images (n, 3, H, W)."""


@functools.cache
def import_torchvision() -> tuple[ModuleType, ModuleType]:
    """Return the modules torch and torchvision.

    If the shared library of torchvision does not load, the function replaces the operators that the
    library would define.
    """
    import torch

    operators = _missing_operators()
    import torchvision

    if operators is not None:
        missing_operators.implement(operators, torch, torchvision)
    return torch, torchvision


@functools.cache
def _missing_operators() -> Any:
    """Return replacements for the operators of torchvision; None if none are missing.

    `functools.cache` keeps the replacements in memory: torch loses an operator when Python deletes
    the replacement.
    """
    import torch

    package = importlib.util.find_spec("torchvision")
    if package is None or package.origin is None:
        raise ExportError("torchvision is not installed: pip install -r envs/export.txt")
    try:
        torch.ops.load_library(str(Path(package.origin).with_name("_C.so")))
        return None
    except OSError:
        return missing_operators.declare(torch)


def preset(architecture: str, weights: str, input_size: int | None = None) -> Any:
    """Return torchvision's preprocessing for the weights `weights` of an architecture.

    The result is a function that converts an image into a tensor (3, H, W). It resizes the short
    side of the image to `resize_size`, crops the centre to `crop_size`, and normalises the colours.
    For random weights and for weights from a file, the function returns the preprocessing of the
    DEFAULT weights. If `input_size` is given, it replaces `crop_size`, and `resize_size` changes in
    the same proportion. The function downloads nothing.
    """
    _, torchvision = import_torchvision()
    choices = torchvision.models.get_model_weights(architecture).__members__
    transforms = choices.get(weights, choices["DEFAULT"]).transforms
    own = transforms()
    if input_size is None:
        return own
    resize_size = round(input_size * own.resize_size[0] / own.crop_size[0])
    return transforms(crop_size=input_size, resize_size=resize_size)


def pixels_by(like: Any) -> Callable[[Any], torch.Tensor]:
    """Return a function that converts an image into pixels (3, H, W), uint8.

    The returned function resizes and crops the image as the preprocessing `like` does.
    """
    _, torchvision = import_torchvision()
    do = torchvision.transforms.functional

    def pixels(image: Any) -> torch.Tensor:
        image = do.resize(image, like.resize_size, interpolation=like.interpolation)
        cut: torch.Tensor = do.pil_to_tensor(do.center_crop(image, like.crop_size))
        return cut

    return pixels


def normalised(pixels: Tensor, like: Any) -> Array:
    """Normalise the colours of pixels (n, 3, H, W) as the preprocessing `like` does."""
    mean, std = (np.array(each, np.float32)[:, None, None] for each in (like.mean, like.std))
    return np.asarray((pixels.astype(np.float32) / 255 - mean) / std, np.float32)


def of_pixels(network: torch.nn.Module, like: Any) -> torch.nn.Module:
    """Return a network that normalises pixels (uint8) as `like` does, and then runs `network`."""
    torch, _ = import_torchvision()
    std = np.array(like.std, np.float32)[:, None, None]
    mean = np.array(like.mean, np.float32)[:, None, None]

    class OfPixels(torch.nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.network = network
            self.register_buffer("scale", torch.from_numpy(1 / (255 * std)))
            self.register_buffer("offset", torch.from_numpy(-mean / std))

        def forward(self, pixels: Any) -> Any:
            return self.network(pixels.to(torch.float32) * self.scale + self.offset)

    return OfPixels().eval()


def default_input_size(architecture: str, weights: str = "DEFAULT") -> int:
    """Return the height and width in pixels for which the weights were trained."""
    return preset(architecture, weights).crop_size[0]


def require_known(kind: str, name: str, known: Sequence[str]) -> None:
    """Raise ExportError if `name` is not one of the names `known`. The message suggests names.

    `kind` is the word for the name in the message, such as "architecture".
    """
    if name not in known:
        hint = meant_or_known(name, known)
        raise ExportError(f"unknown {kind}: {name!r}{hint}")


def build(of: Architecture, weights: str, typical: Array) -> torch.nn.Module:
    """Return the network of an architecture with its weights.

    `weights` is "random", the name of trained weights, or the path of a file. Random weights come
    from the random generator of torch. In a network with random weights, batch normalisation gets
    its variance from the activations for the images `typical` (n, 3, H, W).

    Raises ExportError if `weights` is an unknown name, or a file without a state_dict of the
    architecture. Raises WeightsError if trained weights cannot be loaded.
    """
    if weights == "random":
        network = of.bare()
        _give_signal(of, network, typical)
        return network
    if weights in {*of.known_weights, "DEFAULT"}:
        return of.trained(weights)
    path = Path(weights)
    if not path.is_file():
        if len(path.parts) > 1 or path.suffix:
            raise ExportError(
                f"weights file {path} does not exist: write the path of a file with a state_dict"
            )
        require_known(f"weights of {of.name}", weights, ["random", *of.known_weights])
    return _from_file(of, path)


def require_fit(of: Architecture, path: Path) -> None:
    """Raise ExportError unless the file `path` is a state_dict of the architecture.

    The function reads the names and shapes of the weights, but not their values.
    """
    torch, _ = import_torchvision()
    try:
        with torch.device("meta"):
            state = _state_dict(of, path, device="meta")
            _fitting(of, state, path)
    except NotImplementedError:  # to build a RegNet, torch needs values, which "meta" tensors lack
        _fitting(of, _state_dict(of, path, device="meta"), path)


def _from_file(of: Architecture, path: Path) -> torch.nn.Module:
    state = _state_dict(of, path, device="cpu")
    network = _fitting(of, state, path)
    # Update the complete state_dict of the network: the weights from the file may lack the batch
    # counters, and always lack the versions of the modules.
    complete = network.state_dict()
    complete.update(state)
    network.load_state_dict(complete)
    return network


def _state_dict(of: Architecture, path: Path, device: str) -> Mapping[str, torch.Tensor]:
    """Return the weights in a checkpoint file, by name.

    If the file has all weights of the network, the names in the result are the names of the weights
    in the network. Raises ExportError if the file is not a checkpoint of tensors, or if the file
    has the weights of the network several times.
    """
    torch, _ = import_torchvision()
    try:
        state = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # pickle, zip and torch raise many kinds of errors
        raise ExportError(
            f"{path} is not a state_dict that can be loaded safely: {load_problem(error)}. "
            "Write the file with torch.save(model.state_dict(), path)."
        ) from error
    if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
        raise ExportError(
            f"{path} contains a {type(state).__name__}, not a state_dict. Write the file with"
            " torch.save(model.state_dict(), path)."
        )
    states = state_dicts(state, lambda value: isinstance(value, torch.Tensor))
    if not states:
        other = [key for key, value in state.items() if not isinstance(value, torch.Tensor)]
        raise ExportError(
            f"{path} contains {_some('keys without tensors', other)}. Write the file with"
            " torch.save(model.state_dict(), path)."
        )
    names = of.bare().state_dict().keys()
    try:
        return weights_of(states, [name for name in names if not name.endswith(COUNT)], path)
    except CheckpointError as error:
        raise ExportError(str(error)) from None


def _fitting(of: Architecture, state: Mapping[str, torch.Tensor], path: Path) -> torch.nn.Module:
    """Return a network of the architecture that has as many classes as the weights in `state`.
    Raises ExportError if names or shapes of weights differ between the network and `state`.

    The counters of batch normalisation may be missing in `state`, because torch before version
    0.4.1 writes no counters.
    """
    has_aux = any(key.lower().startswith("aux") for key in state)
    network = of.bare(has_aux=has_aux)
    if classes := _classes(network, state, of.classes):
        network = of.bare(has_aux=has_aux, classes=classes)
    shapes = {key: value.shape for key, value in network.state_dict().items()}
    wrong = {
        "missing keys": [key for key in shapes if key not in state and not key.endswith(COUNT)],
        "unexpected keys": [key for key in state if key not in shapes],
        "keys of another shape": _unlike(shapes, state),
    }
    if any(wrong.values()):
        named = "; ".join(_some(label, keys) for label, keys in wrong.items() if keys)
        raise ExportError(
            f"the weights in {path} are not those of {of.name}: {named}. Is the file a state_dict"
            " of this architecture?"
        )
    return network


def _classes(network: torch.nn.Module, state: Mapping[str, torch.Tensor], usual: int) -> int | None:
    """Return the number of classes for which the weights in `state` were trained.

    The result is None if this number is the default number, or if it differs between the heads of
    the network. The first dimension of the weights in each head is the number of classes, or a
    multiple of it: the heads of some detectors have one row per class and anchor box.
    """
    shapes = {key: value.shape for key, value in network.state_dict().items()}
    found = {
        _classes_of_head(shapes[key], state[key].shape, usual)
        for key in _unlike(shapes, state)
        if usual and state[key].dim() and shapes[key] and shapes[key][0] % usual == 0
    }
    return found.pop() if len(found) == 1 else None


def _classes_of_head(shape: Sequence[int], tuned: Sequence[int], usual: int) -> int | None:
    """Return the number of classes of a head from the shape `tuned` of its weights.

    In a head with the default number of classes (`usual`), the weights have the shape `shape`. The
    result is None if the shapes differ in more than the number of classes.
    """
    classes, rest = divmod(tuned[0] * usual, shape[0])
    return classes if not rest and tuned[1:] == shape[1:] else None


def _unlike(shapes: Mapping[str, Any], state: Mapping[str, torch.Tensor]) -> list[str]:
    return [key for key in shapes if key in state and state[key].shape != shapes[key]]


def load_problem(error: Exception) -> str:
    """Return the reason why torch cannot load a file of weights safely.

    The message of torch itself would recommend loading the file without a safety check.
    """
    if isinstance(error, pickle.UnpicklingError):
        names = re.findall(r"GLOBAL ([\w.]+)", str(error))
        return (
            f"it refers to {names[0]}, which is code"
            if names
            else "it is damaged, or contains values that are not tensors"
        )
    if "weights_only" in str(error):
        kind = "a TorchScript program" if "TorchScript" in str(error) else "of torch's .tar format"
        return f"it is {kind}, which may hold code"
    return str(error).splitlines()[0] if str(error) else type(error).__name__


RANDOM_RMS: Final = 0.1
"""Root mean square of the outputs of batch normalisation in a network with random weights. Near
0.1, activation functions such as SiLU are almost linear. If the root mean square were 1, the
largest outputs of deep networks would grow with each layer."""


def _give_signal(of: Architecture, network: torch.nn.Module, typical: Array) -> None:
    """Change the random weights of a network so that its outputs depend on the image.

    The function gives random weights to layers that have only zeros. It also scales the outputs of
    each batch normalisation to the root mean square RANDOM_RMS for the images `typical`.

    Without these changes, the outputs of a deep network with random weights become nearly the same
    for all images. The function scales all channels of a layer by the same factor, and subtracts no
    mean. If each channel had its own mean and scale, each layer would amplify the rounding errors
    of the layers before it.
    """
    torch, _ = import_torchvision()
    for module in network.modules():
        if isinstance(module, torch.nn.Linear | torch.nn.Conv2d) and not module.weight.any():
            torch.nn.init.normal_(module.weight, std=module.weight[0].numel() ** -0.5)
    network.eval()
    hooks = [
        module.register_forward_pre_hook(_scale_outputs)
        for module in network.modules()
        if isinstance(module, torch.nn.BatchNorm2d)
    ]
    if not hooks:
        return
    # Ignore an error because of the image size: the caller later reports the same error.
    with contextlib.suppress(AssertionError, IndexError, RuntimeError, ValueError):
        of.call(network, torch.from_numpy(typical))
    for hook in hooks:
        hook.remove()


def _scale_outputs(norm: Any, inputs: tuple[torch.Tensor]) -> None:
    norm.reset_parameters()  # timm initialises some weights with zeros, and some biases with noise
    if inputs[0].numel():  # the mask head of a detector without detections has no inputs
        norm.running_var.fill_(inputs[0].square().mean() / RANDOM_RMS**2)


def _some(label: str, keys: Sequence[str]) -> str:
    more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    return f"{len(keys)} {label}" + (f" ({', '.join(map(repr, keys[:3]))}{more})" if keys else "")
