"""Find models that use Triton's response cache.

The cache answers repeated requests in place of the model, so the latency of these requests says
nothing about the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tritonclient.grpc import model_config_pb2 as pb


def cached_models(
    config_of: Callable[[str], pb.ModelConfig], config: pb.ModelConfig
) -> Iterator[str]:
    """Yield the name of the model with the configuration `config` if the model uses the response
    cache.

    If the model is an ensemble, also yield the names of its models that use the response cache.
    `config_of` returns the configuration of a model by its name.
    """
    if config.response_cache.enable:
        yield config.name
    for name in dict.fromkeys(step.model_name for step in config.ensemble_scheduling.step):
        yield from cached_models(config_of, config_of(name))
