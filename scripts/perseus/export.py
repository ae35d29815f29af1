"""Export a torchvision classification CNN to ONNX, and prove that the ONNX file computes the same.

`export_model` is the one entry: it builds the network, writes `model.onnx` with a dynamic batch
axis, runs it under onnxruntime and compares the answers with torch's. Nothing is left behind
when the comparison fails.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import hashlib
import importlib.metadata
import importlib.util
import io
import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from perseus.answers import TOLERANCES, Array, relative_error, signal
from perseus.files import whole

if TYPE_CHECKING:
    import torch

# Deviation between inputs that float32 cannot mistake for rounding (2**-24 = 6e-8 per operation).
MIN_SIGNAL_SHARE: Final = 1e-4
BATCHES: Final = (1, 3)
# Both are read by every runtime since onnxruntime 1.18 (Triton 24.06).
OPSET: Final = 18
MAX_IR_VERSION: Final = 10


class ExportError(ValueError):
    """The model cannot be exported; the message says why and what to do next."""


@dataclass(frozen=True)
class ModelSpec:
    """What to export.

    architecture: a torchvision classification model, such as "resnet50".
    weights: "random" (seeded, needs no network), "DEFAULT" or the name of torchvision weights
        such as "IMAGENET1K_V1" (downloaded by torchvision), or the path of a state_dict file,
        loaded into the network as `torchvision.models.get_model(architecture)` builds it.
    seed: of the random weights and of the images of the check.
    input_size: height and width in pixels; None takes what the DEFAULT weights were made for.
    """

    architecture: str
    weights: str = "random"
    seed: int = 0
    input_size: int | None = None


def export_model(spec: ModelSpec, onnx_path: Path, reference_path: Path) -> dict[str, Any]:
    """Write `onnx_path` and `reference_path`; return the record of the check as plain builtins.

    The ONNX file has input "input" float32 [batch, 3, H, W], output "output" float32
    [batch, classes], and carries its weights. `reference_path` (.npz) holds `input`
    (4, 3, H, W) and `output` (4, classes), float32, as torch computed them. Both files are
    replaced at once, and only after the check has passed.

    Raises ExportError for an unknown architecture or weights name, a state_dict that does not
    fit, an input size that the network refuses, and a failed check.
    """
    torch, torchvision = _torchvision()
    _require_known(
        "architecture", spec.architecture, torchvision.models.list_models(torchvision.models)
    )
    size = spec.input_size or default_input_size(spec.architecture)
    images = random_images(sum(BATCHES), size, spec.seed)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(spec.seed)
        network = _build(spec, size).eval()
        try:
            output: Array = network(torch.from_numpy(images)).numpy()
        except (AssertionError, RuntimeError, ValueError) as error:
            raise ExportError(
                f"{spec.architecture} does not accept images of {size} x {size} pixels: {error}. "
                f"Leave input_size out to use {default_input_size(spec.architecture)}."
            ) from error
        with whole(onnx_path) as onnx_file, whole(reference_path) as npz:
            opset, ir_version = _write_onnx(network, images[:2], onnx_file)
            check = check_onnx(onnx_file, images, output, what=spec.architecture)
            with npz.open("wb") as stream:
                np.savez(stream, input=images, output=output)
            digest, size_bytes = _sha256(onnx_file), onnx_file.stat().st_size
    return {
        "architecture": spec.architecture,
        "weights": spec.weights,
        "seed": spec.seed,
        "input_shape": [int(n) for n in images.shape[1:]],
        "classes": int(output.shape[1]),
        **check,
        "sha256": digest,
        "size_bytes": size_bytes,
        "opset": opset,
        "ir_version": ir_version,
        "versions": {
            name: importlib.metadata.version(name)
            for name in ("torch", "torchvision", "onnx", "onnxruntime")
        },
    }


def check_onnx(
    onnx_path: Path,
    images: Array,
    expected: Array,
    *,
    what: str = "the model",
    batches: Sequence[int] = BATCHES,
    tolerance: float = TOLERANCES["fp32"],
) -> dict[str, Any]:
    """Run the ONNX file under onnxruntime on the CPU and compare it with `expected`.

    images: (sum(batches), 3, H, W); expected: (sum(batches), classes). Each batch size takes its
    own images: two sizes prove that the batch axis is dynamic. Returns relative_error, signal,
    tolerance and batches; raises ExportError where the error exceeds the tolerance or where the
    expected outputs do not depend on the input, so that nothing could be proved.
    """
    import onnxruntime

    scale = signal(expected)
    level = float(np.max(np.abs(expected)))
    if not np.isfinite(scale) or scale <= MIN_SIGNAL_SHARE * level:
        raise ExportError(
            f"{what} gives nearly the same answer for every image (signal {scale:.3g}, largest "
            f"output {level:.3g}): no check could notice a wrong answer. Use other weights."
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = min(2, os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    error, start = 0.0, 0
    try:
        session = onnxruntime.InferenceSession(
            str(onnx_path), options, providers=["CPUExecutionProvider"]
        )
        for batch in batches:
            part = slice(start, start + batch)
            (answers,) = session.run(["output"], {"input": images[part]})
            error = max(error, relative_error(answers, expected[part], scale))
            start += batch
    # onnxruntime's errors share no base class below Exception.
    except Exception as failure:
        raise ExportError(f"onnxruntime cannot run {what} as exported: {failure}") from failure
    if not error <= tolerance:
        raise ExportError(
            f"{what} as exported differs from torch by {error:.3g} of the signal {scale:.3g}, "
            f"more than {tolerance:g}. The export is wrong: try other versions of torch and onnx."
        )
    return {
        "relative_error": error,
        "signal": scale,
        "tolerance": tolerance,
        "batches": [int(batch) for batch in batches],
    }


def default_input_size(architecture: str) -> int:
    """Pixels of the crop that the DEFAULT weights of `architecture` expect; downloads nothing."""
    _, torchvision = _torchvision()
    weights = torchvision.models.get_model_weights(architecture).DEFAULT
    return int(weights.transforms.keywords["crop_size"])


def random_images(count: int, size: int, seed: int) -> Array:
    """`count` seeded images (count, 3, size, size), float32, around zero.

    Patches of colour, from one to 16 x 16 per image in turn, under noise, at various contrasts.
    Images of noise alone look alike to a network once they are pooled: their signal is weaker.
    """
    rng = np.random.default_rng([seed, size])
    images = np.empty((count, 3, size, size), np.float32)
    for number, image in enumerate(images):
        patches = 2 ** (number % 5)
        side = -(-size // patches)
        colours = np.kron(rng.standard_normal((3, patches, patches)), np.ones((side, side)))
        noise = rng.standard_normal((3, size, size))
        image[:] = rng.uniform(0.5, 2) * colours[:, :size, :size] + rng.uniform(0, 1) * noise
    return images


@functools.cache
def _torchvision() -> tuple[ModuleType, ModuleType]:
    """Import torch and torchvision."""
    import torch

    _declare_missing_operators()
    import torchvision

    return torch, torchvision


@functools.cache
def _declare_missing_operators() -> Any:
    """Let torchvision be imported where its compiled operators do not fit this build of torch.

    PyPI's torchvision is built for CUDA. Beside a CPU build of torch its library cannot be
    loaded, and the import then fails for want of the schemas of two operators of detection
    models, which no classification model calls. Returns the declarations, or None where they are
    not needed: they live as long as the object, which the cache keeps.
    """
    import torch

    package = importlib.util.find_spec("torchvision")
    if package is None or package.origin is None:
        raise ExportError("torchvision is not installed: pip install -r requirements.txt")
    try:
        torch.ops.load_library(str(Path(package.origin).with_name("_C.so")))
        return None
    except OSError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return library


def _build(spec: ModelSpec, size: int) -> torch.nn.Module:
    """The network of `spec` with its weights."""
    _, torchvision = _torchvision()
    if spec.weights == "random":
        network = _without_weights(spec.architecture, aux_logits=False)
        _give_signal(network, size, spec.seed)
        return network
    path = Path(spec.weights)
    known = list(torchvision.models.get_model_weights(spec.architecture).__members__)
    if spec.weights in {*known, "DEFAULT"}:
        try:
            return torchvision.models.get_model(spec.architecture, weights=spec.weights)
        except OSError as error:
            raise ExportError(
                f"cannot download the weights {spec.weights} of {spec.architecture}: {error}. "
                "Download the file elsewhere and give its path as weights, or use 'random'."
            ) from error
    if not path.is_file():
        if len(path.parts) > 1 or path.suffix:
            raise ExportError(f"weights file {path} does not exist: give the path of a state_dict")
        _require_known(f"weights of {spec.architecture}", spec.weights, ["random", *known])
    return _from_file(spec.architecture, path)


def _from_file(architecture: str, path: Path) -> torch.nn.Module:
    torch, _ = _torchvision()
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # pickle, zip and torch errors alike: the file is not ours to trust
        raise ExportError(
            f"{path} is not a state_dict that can be loaded safely: {error}. "
            "Write it with torch.save(model.state_dict(), path)."
        ) from error
    if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
        raise ExportError(f"{path} holds a {type(state).__name__}, not a state_dict")
    network = _without_weights(
        architecture, aux_logits=any(key.lower().startswith("aux") for key in state)
    )
    try:
        missing, unexpected = network.load_state_dict(state, strict=False)
    except (RuntimeError, TypeError) as error:  # shapes; values that are no tensors
        raise ExportError(f"{path} does not fit {architecture}: {error}") from error
    if missing or unexpected:
        raise ExportError(
            f"{path} does not fit {architecture}: {_some('missing keys', missing)}; "
            f"{_some('unexpected keys', unexpected)}. Is it a state_dict of this architecture?"
        )
    return network


def _without_weights(architecture: str, *, aux_logits: bool) -> torch.nn.Module:
    """The network as initialised by torch; `aux_logits` concerns googlenet and inception_v3."""
    _, torchvision = _torchvision()
    options: dict[str, Any] = {}
    if architecture in {"googlenet", "inception_v3"}:
        # Their auxiliary heads serve training alone, and their own initialisation is slow.
        options = {"init_weights": False, "aux_logits": aux_logits}
    return torchvision.models.get_model(architecture, weights=None, **options)


def _give_signal(network: torch.nn.Module, size: int, seed: int) -> None:
    """Make the outputs of a freshly initialised network depend on its input.

    Deep networks without trained statistics let the signal fade to nothing or to a constant.
    Batch normalisation undoes this once its running mean and variance are those of real
    activations; and heads that some architectures initialise to zero must not stay there.
    """
    torch, _ = _torchvision()
    for module in network.modules():
        if isinstance(module, torch.nn.Linear | torch.nn.Conv2d) and not module.weight.any():
            torch.nn.init.normal_(module.weight, std=module.weight[0].numel() ** -0.5)
    network.eval()
    norms = [m for m in network.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a cumulative average instead of a moving one
        norm.train()
    with contextlib.suppress(RuntimeError, ValueError):  # the caller reports a refused size
        for batch in np.split(random_images(16, size, seed + 1), 2):
            network(torch.from_numpy(batch))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    network.eval()


def _write_onnx(network: torch.nn.Module, example: Array, path: Path) -> tuple[int, int]:
    """Write the ONNX file; return its opset and IR version. The batch of `example` is 2 or more
    (torch.export takes 0 and 1 for constants)."""
    torch, _ = _torchvision()
    import onnx

    try:
        with _quiet():
            program = torch.onnx.export(
                network,
                (torch.from_numpy(example),),
                dynamo=True,
                dynamic_shapes=({0: "batch"},),
                input_names=["input"],
                output_names=["output"],
                opset_version=OPSET,
                external_data=False,
                verbose=False,
            )
            model = program.model_proto
    except Exception as error:  # torch.onnx raises many kinds
        raise ExportError(f"torch cannot export this network to ONNX: {error}") from error
    # Stack traces with the paths of this host: no use to a runtime, and other bytes elsewhere.
    for node in model.graph.node:
        del node.metadata_props[:]
    model.ir_version = min(model.ir_version, MAX_IR_VERSION)
    onnx.save_model(model, str(path))
    opsets = {entry.domain: int(entry.version) for entry in model.opset_import}
    return opsets[""], int(model.ir_version)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence the progress, warnings and log lines of the exporter; its errors are exceptions."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _require_known(kind: str, name: str, known: Sequence[str]) -> None:
    if name in known:
        return
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
    raise ExportError(f"{kind} {name!r} is not known to torchvision ({hint})")


def _some(label: str, keys: Sequence[str]) -> str:
    more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    return f"{len(keys)} {label}" + (f" ({', '.join(keys[:3])}{more})" if keys else "")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
