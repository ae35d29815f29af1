"""What a server stands for in a price list: a row of it, or a machine at rates of one's own."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from perseus.study.base import Part, Real, Text, Whole

ACCELERATORS: Final = r"^[^:{}\s]+(:[1-9][0-9]{0,3})?$"
NotNegative = Annotated[Real, Field(ge=0)]


class Rates(Part):
    """What each part of a machine costs in an hour."""

    usd_per_vcpu_hour: Annotated[Real, Field(gt=0)] = Field(
        description="USD per vCPU.", examples=[0.033174]
    )
    usd_per_gib_hour: NotNegative = Field(
        default=0.0, description="USD per GiB of memory.", examples=[0.004446]
    )


class CustomMachine(Part):
    """A machine that is in no price list: so many vCPUs and so much memory, at rates in USD."""

    vcpus: Annotated[Whole, Field(ge=1)] = Field(description="vCPUs.", examples=[6])
    memory_gib: NotNegative = Field(default=0.0, description="Memory in GiB.", examples=[12.0])
    on_demand: Rates = Field(
        description="Rates without any commitment.", examples=[{"usd_per_vcpu_hour": 0.033174}]
    )
    spot: Rates | None = Field(default=None, description="Rates of spot instances.")
    committed: Rates | None = Field(default=None, description="Rates of a commitment.")
    source: Text | None = Field(default=None, description="Where the rates were read.")


class PriceRow(Part):
    """The row of the price list that a server stands for."""

    instance: Text = Field(
        description="InstanceType in the price list (`costs.prices`); with `custom` any name.",
        examples=["n1-standard-1"],
    )
    region: Text = Field(description="Region in the price list.", examples=["us-central1"])
    zone: Text | None = Field(
        default=None,
        description="AvailabilityZone in the price list. Without it that of the lowest price is"
        " taken, and said.",
    )
    accelerator: Annotated[Text, Field(pattern=ACCELERATORS)] | None = Field(
        default=None,
        description="What is priced apart from the machine, as GPUs are on GCP: AcceleratorName and"
        " how many, such as T4:1, of a row without an instance; its price is added.",
    )
    share: Annotated[Real, Field(gt=0, le=1)] | None = Field(
        default=None,
        description="The share of the instance that the server has, and pays for: 0.25 where three"
        " like it have the rest, 1 where nobody does. To be stated where the instance has other"
        " vCPUs than the server has `cores`, or other accelerators than it has `gpus`.",
    )
    custom: CustomMachine | None = Field(
        default=None,
        description="A machine of one's own make in place of a row, such as GCP's custom types.",
    )
