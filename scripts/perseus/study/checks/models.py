"""Check the section `models`: each model needs a known architecture, existing files, and a scenario
that uses it."""

from __future__ import annotations

import functools
import importlib.util
import re
from pathlib import Path

from perseus.study.architectures import TIMM_MISSING
from perseus.study.checks.files import brace_problems, found
from perseus.study.definition import Definition
from perseus.study.hints import did_you_mean, meant_or_known
from perseus.study.image_files import image_files, labelled_images
from perseus.study.model import Model
from perseus.study.problems import Place, Problems, duplicates


def problems(study: Definition, folder: Path) -> Problems:
    yield from duplicates("models", [model.name for model in study.models])
    known = sorted(torchvision_weights())
    served = {tenant.model for item in study.scenarios for tenant in item.tenants}
    for i, model in enumerate(study.models):
        at: Place = ("models", i)
        yield from _example_problems(at, model, folder)
        if model.is_served:
            yield from _served_problems(at, model)
        elif model.onnx is not None:
            yield from _onnx_problems(at, model, model.onnx, folder)
        elif model.is_of_library:
            yield from _library_problems((*at, "architecture"), model.architecture)
        elif known and model.architecture not in known:
            key = "architecture" if "architecture" in model.model_fields_set else "name"
            hint = did_you_mean(model.architecture, known)
            hint = hint or " (set `architecture:` to the name of a torchvision model)"
            name = repr(model.architecture)
            yield (*at, key), f"{name} is not a torchvision classification model{hint}"
        if model.is_built:
            yield from _weights_problems(at, model, folder)
        yield from _images_problems(at, model, folder)
        if model.request != "float32" and not model.is_classifier:
            yield (
                (*at, "request"),
                "applies only to classification models of torchvision, since Perseus does not know"
                " the normalisation of other models (remove this key)",
            )
        for key in _OF_OTHERS if model.is_classifier else _OF_FILES if model.is_built else ():
            if key in model.model_fields_set:
                text = "applies only to models with `onnx:` or `served_model:` (remove this key)"
                yield (*at, key), text
        if model.name not in served:
            yield at, f"no scenario serves {model.name!r} (add it to the tenants of a scenario)"


_OF_FILES = ("shape", "deterministic")
_OF_OTHERS = (*_OF_FILES, "inputs", "values")
"""`_OF_FILES` contains the keys that only models with `onnx:` or `served_model:` may have.
`_OF_OTHERS` contains the keys that classification models of torchvision must not have."""


@functools.cache
def torchvision_weights(kind: str = ".") -> dict[str, tuple[str, ...]]:
    """Return the names of torchvision's models of one kind, each with the names of its weights.

    `kind` is "." (classification), "detection" or "segmentation". The function reads the source
    files of torchvision, and does not import torch. The result is empty if torchvision is not
    installed.
    """
    spec = importlib.util.find_spec("torchvision")
    if spec is None or not spec.submodule_search_locations:
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for path in Path(spec.submodule_search_locations[0], "models", kind).glob("*.py"):
        text = path.read_text("utf-8")
        of_class = {
            name: tuple(re.findall(r"^    ([A-Z][A-Z0-9_]*) = ", body, re.MULTILINE))
            for name, body in re.findall(
                r"^class (\w+)\(WeightsEnum\):\n((?:    .*\n|\n)+)", text, re.MULTILINE
            )
        }
        models = r"@register_model\(\).*?\ndef (\w+)\(\s*\*,\s*weights: Optional\[(\w+)\]"
        for name, weights in re.findall(models, text, re.DOTALL):
            found[name] = of_class[weights]
    return found


def _library_problems(at: Place, architecture: str) -> Problems:
    library, _, name = architecture.partition("/")
    known = list(_others())
    if library == "timm":
        # If torch is not installed here, the export job runs in another environment and checks the
        # name.
        if importlib.util.find_spec("torch") and not importlib.util.find_spec("timm"):
            yield at, TIMM_MISSING.format(architecture)
    elif library != "torchvision":
        yield at, f"{architecture!r} names an unknown library (write timm/NAME or torchvision/NAME)"
    elif name in torchvision_weights():
        yield at, f"{name!r} is a classification model (write {name} without torchvision/)"
    elif known and name not in known:
        hint = meant_or_known(name, known)
        yield at, f"{name!r} is not a detection or segmentation model of torchvision{hint}"


def _others() -> dict[str, tuple[str, ...]]:
    """Return the names of torchvision's detection and segmentation models, each with the names of
    its weights."""
    return {**torchvision_weights("detection"), **torchvision_weights("segmentation")}


def _weights_problems(at: Place, model: Model, folder: Path) -> Problems:
    at = (*at, "weights")
    if model.weights_file is None:
        of_torchvision = {
            **torchvision_weights(),
            **{f"torchvision/{name}": of for name, of in _others().items()},
        }
        known = ["random", *of_torchvision.get(model.architecture, ())]
        if len(known) > 1 and model.weights not in known:
            hint = meant_or_known(model.weights, known)
            yield at, f"{model.architecture} has no weights {model.weights!r}{hint}"
        return
    yield from brace_problems(at, model.weights)
    if not found((folder / model.weights).is_file):
        yield (
            at,
            f"there is no file {model.weights!r} (write the path of a state_dict file, 'random',"
            " 'DEFAULT' or the name of torchvision weights, such as IMAGENET1K_V1)",
        )


def _example_problems(at: Place, model: Model, folder: Path) -> Problems:
    given = [key for key in ("inputs", "images", "values") if getattr(model, key) is not None]
    for key in given[1:]:
        yield (*at, key), f"`{given[0]}:` also defines the inputs (remove one of the two keys)"
    for key in ("layout", "scale", "mean", "std"):
        if key in model.model_fields_set and (model.is_built or not model.images):
            text = "applies only to the `images:` of a model with `onnx:` or `served_model:`"
            yield (*at, key), f"{text} (remove this key)"
    if model.values and model.values.low > model.values.high:
        yield (*at, "values", "low"), f"must be <= `high`, which is {model.values.high:g}"
    if model.inputs is not None:
        yield from brace_problems((*at, "inputs"), model.inputs)
        if not found((folder / model.inputs).is_file):
            yield (*at, "inputs"), f"there is no numpy.savez file {model.inputs!r}"


def _served_problems(at: Place, model: Model) -> Problems:
    for key in ("architecture", "weights", "onnx", "input_size", "precision"):
        if key in model.model_fields_set:
            yield (
                (*at, key),
                "does not apply to a model with `served_model:` (remove one of the two keys)",
            )


def _onnx_problems(at: Place, model: Model, file: str, folder: Path) -> Problems:
    for key in ("architecture", "weights"):
        if key in model.model_fields_set:
            yield (
                (*at, key),
                "does not apply to a model with `onnx:` (remove one of the two keys)",
            )
    if model.shape and model.input_size:
        yield (*at, "input_size"), "`shape:` also sets the input size (remove one of the two keys)"
    yield from brace_problems((*at, "onnx"), file)
    if not found((folder / file).is_file):
        yield (*at, "onnx"), f"there is no ONNX file {file!r}"


def _images_problems(at: Place, model: Model, folder: Path) -> Problems:
    if model.images is None:
        return
    at = (*at, "images")
    try:
        for path in image_files(folder / model.images):
            yield from brace_problems(at, str(Path(model.images, path.name)))
        if model.is_classifier:
            for each in labelled_images(folder / model.images):
                yield from brace_problems(at, str(Path(model.images, each.file)))
    except (FileNotFoundError, NotADirectoryError):
        yield at, f"there is no folder {model.images!r} (it must have PNG or JPEG files)"
    except (OSError, ValueError) as error:
        yield at, f"{model.images!r} cannot be used: {error}"
