"""The price of a server: a row of the price list, or a custom machine with its own rates."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from perseus.study.base import Part, Real, Text, Whole

ACCELERATORS: Final = r"^[^:{}\s]+(:[1-9][0-9]{0,3})?$"
NotNegative = Annotated[Real, Field(ge=0)]


class Rates(Part):
    """Hourly rates of the parts of a machine."""

    usd_per_vcpu_hour: Annotated[Real, Field(gt=0)] = Field(
        description="USD per vCPU.", examples=[0.033174]
    )
    usd_per_gib_hour: NotNegative = Field(
        default=0.0, description="USD per GiB of memory.", examples=[0.004446]
    )


class CustomMachine(Part):
    """A machine that is in no price list, with vCPUs and memory at rates in USD."""

    vcpus: Annotated[Whole, Field(ge=1)] = Field(description="vCPUs.", examples=[6])
    memory_gib: NotNegative = Field(default=0.0, description="Memory in GiB.", examples=[12.0])
    on_demand: Rates = Field(
        description="Rates without any commitment.", examples=[{"usd_per_vcpu_hour": 0.033174}]
    )
    spot: Rates | None = Field(default=None, description="Rates of spot instances.")
    committed: Rates | None = Field(default=None, description="Rates of a commitment.")
    source: Text | None = Field(default=None, description="Source of the rates.")


class PriceRow(Part):
    """A row of the price list, for a server."""

    instance: Text = Field(
        description="InstanceType in the price list (`costs.prices`); with `custom` any name.",
        examples=["n1-standard-1"],
    )
    region: Text = Field(description="Region in the price list.", examples=["us-central1"])
    zone: Text | None = Field(
        default=None,
        description=(
            "AvailabilityZone in the price list. Default, the zone with the lowest price, which"
            " the table states."
        ),
    )
    accelerator: Annotated[Text, Field(pattern=ACCELERATORS)] | None = Field(
        default=None,
        description="Accelerators with a price of their own, as GPUs on GCP: AcceleratorName and"
        " count, such as T4:1, of a row without an instance. Their price is added to that of the"
        " machine.",
    )
    share: Annotated[Real, Field(gt=0, le=1)] | None = Field(
        default=None,
        description="The share of the instance that the server uses and pays for: 0.25 if three"
        " such servers use the rest, 1 if nobody does. Required if the number of vCPUs of the"
        " instance differs from `cores`, or its accelerators from `gpus`.",
    )
    custom: CustomMachine | None = Field(
        default=None,
        description="A custom machine type instead of a row, as GCP has them.",
    )
