"""Write the two additional Triton models of a tenant whose requests are image files.

The two models are the preprocessing model and the ensemble. The ensemble sends each request first
through the preprocessing model and then through the neural network. The name of the ensemble is the
name of the tenant.

A request has one row of bytes (TYPE_UINT8) per image file, shape (batch, bytes). Zeros fill the row
of a file that is shorter than the longest file of the batch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tritonclient.grpc import model_config_pb2 as pb

from perseus.models import preprocess
from perseus.models.pictures import Pictures
from perseus.models.preprocess import PARAMETER, Preprocessing
from perseus.models.repository import tensor, write_model
from perseus.models.tensors import ModelTensors, TensorSpec
from perseus.study.tasks.repository import ServedEnsemble
from perseus.study.triton_models import ENSEMBLE_FILE, PREPROCESS_FILE


def write_ensemble(
    root: Path, served: ServedEnsemble, pictures: Path, check: Mapping[str, Any]
) -> None:
    """Write the preprocessing model and the ensemble into the repository `root`.

    The file `pictures` (pictures.npz) contains the parameters of the preprocessing. The export
    record `check` (the content of check.json) describes the inputs and outputs of the network.
    """
    wanted = Pictures.read(pictures).preprocessing
    (image,), (scores,) = (tensors := ModelTensors.of(check)).inputs, tensors.outputs
    made = preprocess_config(served, wanted, image)
    write_model(root, made, PREPROCESS_FILE, Path(preprocess.__file__))
    joined = ensemble_config(served, scores.dims)
    write_model(root, joined, ENSEMBLE_FILE, Path(os.devnull))


def preprocess_config(
    served: ServedEnsemble, preprocessing: Preprocessing, image: TensorSpec
) -> pb.ModelConfig:
    """Return the Triton configuration of the preprocessing model.

    The preprocessing model converts encoded images into the input of the network, shape (channels,
    height, width). The model has one process per core of the server (`served.processes`), and no
    dynamic batching.
    """
    config = pb.ModelConfig(
        name=served.preprocess,
        backend="python",
        max_batch_size=served.max_batch_size,
        default_model_filename=PREPROCESS_FILE,
        input=[pb.ModelInput(name="input", data_type=pb.TYPE_UINT8, dims=[-1])],
        output=[tensor(pb.ModelOutput, replace(image, name="output"))],
    )
    config.instance_group.add(count=served.processes, kind=pb.ModelInstanceGroup.Kind.KIND_CPU)
    text = json.dumps(asdict(preprocessing), sort_keys=True)
    config.parameters[PARAMETER].string_value = text
    return config


def ensemble_config(served: ServedEnsemble, scores: tuple[int, ...]) -> pb.ModelConfig:
    """Return the Triton configuration of the ensemble, which converts images into scores."""
    config = pb.ModelConfig(
        name=served.tenant,
        platform="ensemble",
        max_batch_size=served.max_batch_size,
        input=[pb.ModelInput(name="input", data_type=pb.TYPE_UINT8, dims=[-1])],
        output=[pb.ModelOutput(name="output", data_type=pb.TYPE_FP32, dims=scores)],
    )
    tensors = ("input", "images", "output")
    steps = zip((served.preprocess, served.network), tensors, tensors[1:], strict=False)
    for model, given, made in steps:
        config.ensemble_scheduling.step.add(
            model_name=model,
            model_version=-1,  # the latest version
            input_map={"input": given},
            output_map={"output": made},
        )
    return config
