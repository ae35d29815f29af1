"""Define the section `scenarios` of a configuration: models that share a server, and experiments
with these models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from perseus.study.base import Different, Name, Part, Text
from perseus.study.experiments import KINDS, settings_of
from perseus.study.experiments.base import ExperimentSettings
from perseus.study.grid import Grid
from perseus.study.measurement import PresetName
from perseus.study.tenant import Tenant

if TYPE_CHECKING:
    Experiment = ExperimentSettings
else:
    _UNION = settings_of(KINDS[0])
    for _kind in KINDS[1:]:
        _UNION |= settings_of(_kind)
    Experiment = Annotated[_UNION, Field(discriminator="kind")]


class ScenarioSettings(Part):
    """Models that share a server, the servers on which Perseus measures these models, and the
    experiments."""

    name: Name = Field(
        description="The name of the scenario. In files and tables, a scenario of one tenant has"
        " the name of its tenant.",
        examples=["shared"],
    )
    servers: Annotated[tuple[Text, ...], Field(min_length=1), Different] = Field(
        description="The servers on which Perseus measures the scenario, one after another.",
        examples=[["cpu1"]],
        json_schema_extra={"uniqueItems": True},
    )
    tenants: Annotated[tuple[Tenant, ...], Field(min_length=1)] = Field(
        description=(
            "The models that share the server, each with its settings. A scenario with one tenant"
            " is a dedicated scenario."
        ),
        examples=[[{"model": "resnet50"}]],
    )
    experiments: Annotated[tuple[Experiment, ...], Field(min_length=1)] = Field(
        default=(),
        description=(
            "The experiments with these tenants. A scenario of several tenants needs at least one"
            " experiment. Default for a scenario of one tenant: the search for the dedicated peak."
        ),
    )
    preset: PresetName | None = Field(
        default=None,
        description=(
            "How much evidence Perseus collects in this scenario. Default: the preset of"
            " `measurement`. If you choose another preset, Perseus also measures each tenant of the"
            " scenario alone with this preset, because a sharing ratio must compare peaks of the"
            " same preset."
        ),
    )
    grid: Grid | None = Field(
        default=None,
        description=(
            "Keys of servers and tenants that Perseus varies, to find the cheapest setting. A"
            " setting is one value for each key. With each setting, Perseus measures all"
            " experiments of the scenario and the dedicated peaks of its tenants. The report"
            " recommends one setting for each tenant alone and one setting for each mix."
        ),
    )

    @property
    def searches_dedicated_peaks(self) -> bool:
        """True if Perseus searches the dedicated peaks of the tenants.

        A survey (experiment `catalogue`) replaces this search, unless the scenario also has an
        experiment `peak`, or another experiment that needs the dedicated peaks.
        """
        runs = [run for each in self.experiments for run in each.runs()]
        return (
            not any(run.is_survey for run in runs)
            or any(run.needs_dedicated_peaks for run in runs)
            or any(each.kind == "peak" for each in self.experiments)
        )

    @property
    def result_name(self) -> str:
        """Name of the scenario in files and tables. For a scenario of one tenant, this is the name
        of the tenant."""
        return self.tenants[0].name if len(self.tenants) == 1 else self.name
