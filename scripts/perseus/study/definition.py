"""Define all keys of the configuration of a study, with their types and descriptions.

The module `generated_docs` writes config/schema.json and config/README.md from this definition.
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
    """A configuration file: the models, servers and scenarios that Perseus measures."""

    model_config = ConfigDict(title="A Perseus study")

    study: Name = Field(
        description="The name of the study. Its results are in results/<study>/.",
        examples=["default"],
    )
    seed: Annotated[Whole, Field(ge=0, lt=2**63)] = Field(
        default=1,
        description=(
            "The seed of the random numbers: random weights, random inputs, arrival times and the"
            " resampling of results."
        ),
    )
    models: Annotated[tuple[Model, ...], Field(min_length=1)] = Field(
        description="The models, each with its SLA (response-time target).",
        examples=[[{"name": "resnet50", "sla": {"latency_ms": 100.0}}]],
    )
    servers: Annotated[tuple[Server, ...], Field(min_length=1)] = Field(
        description=(
            "The servers, each with its hardware, the way to start it (`launcher`), the program"
            " that executes the networks (`runtime`), and the cloud instance whose price Perseus"
            " uses."
        ),
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
        description=(
            "The scenarios: models that share a server, and the experiments with these models. You"
            " need not list scenarios of one model: Perseus also measures every tenant alone, on"
            " each server of the scenario."
        ),
        examples=[[{"name": "resnet50", "servers": ["cpu1"], "tenants": [{"model": "resnet50"}]}]],
    )
    measurement: Measurement = Field(
        default=Measurement(),
        description=(
            "How Perseus measures: how much evidence it collects (`preset`, `repeats`), when the"
            " requests arrive (`arrivals`), and how the client sends the requests (`client`)."
        ),
    )
    demand: Demand | None = Field(
        default=None,
        description=(
            "The requests per second that the models get in production. Perseus plans a fleet: the"
            " servers that carry this demand at the lowest cost. If you leave this section out, the"
            " report shows how the costs grow with the demand. If you edit the demand, Perseus"
            " makes new tables and repeats no measurement, with one exception: if the ratio of the"
            " typical rates changes, Perseus measures one new mix for each experiment"
            " `frontier` with three or more tenants."
        ),
    )
    costs: Costs = Field(
        default=Costs(),
        description=(
            "The prices from which Perseus computes costs. If you edit the prices, Perseus repeats"
            " no measurement."
        ),
    )
    figures: FigureStyle = Field(
        default=FigureStyle(),
        description=(
            "The style of the figures. If you edit the style, Perseus repeats no measurement."
        ),
    )
    track: Track = Field(
        default=Track(),
        description=(
            "The MLflow store to which Perseus logs the results of the study. If you edit this"
            " section, Perseus repeats no measurement."
        ),
    )
