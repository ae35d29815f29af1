"""The definition of a study: all keys of its configuration.

config/schema.json and config/README.md are made from it (`generated_docs`).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from perseus.study.base import Name, Part, Whole
from perseus.study.demand import Demand
from perseus.study.measurement import Measurement
from perseus.study.model import Model
from perseus.study.presentation import Costs, FigureStyle
from perseus.study.scenario import ScenarioSettings
from perseus.study.server import Server
from perseus.study.track import Track


class Definition(Part):
    """A configuration file: a grid of models, servers and scenarios to measure."""

    model_config = ConfigDict(title="A Perseus study")

    study: Name = Field(
        description="The name of the study; its results lie in results/<study>/.",
        examples=["default"],
    )
    seed: Annotated[Whole, Field(ge=0, lt=2**63)] = Field(
        default=1, description="Seeds random weights, arrival times and resampling."
    )
    models: Annotated[tuple[Model, ...], Field(min_length=1)] = Field(
        description="The CNNs, each with its response-time SLA.",
        examples=[[{"name": "resnet50", "sla": {"latency_ms": 100.0}}]],
    )
    servers: Annotated[tuple[Server, ...], Field(min_length=1)] = Field(
        description="Hardware, launcher and runtime, and the cloud instance each stands for.",
        examples=[
            [
                {
                    "name": "cpu1",
                    "cores": 1,
                    "price": {"instance": "n1-standard-1", "region": "us-central1"},
                }
            ]
        ],
    )
    scenarios: Annotated[tuple[ScenarioSettings, ...], Field(min_length=1)] = Field(
        description="Which models share a server. Every tenant is also measured alone on the same"
        " server with the same settings (its dedicated peak); these scenarios need not be listed.",
        examples=[[{"name": "resnet50", "servers": ["cpu1"], "tenants": [{"model": "resnet50"}]}]],
    )
    measurement: Measurement = Field(
        default=Measurement(), description="How much evidence is collected."
    )
    demand: Demand | None = Field(
        default=None,
        description=(
            "The demand for which to plan a fleet. Without it, the report shows costs over the"
            " demand. A change re-measures only the demand's own mix of a `frontier` of three or"
            " more tenants, if the ratio of the typical rates changes; without a demand, the last"
            " point of the frontier takes its place."
        ),
    )
    costs: Costs = Field(default=Costs(), description="How results are priced. Never re-measures.")
    figures: FigureStyle = Field(
        default=FigureStyle(), description="The style of the figures. Never re-measures."
    )
    track: Track = Field(
        default=Track(), description="Where results are logged. Never re-measures."
    )
