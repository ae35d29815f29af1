"""Define the key `price` of a server. The key names a row of the price list, or a custom machine
with prices per vCPU and per GiB of memory."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from perseus.study.base import Part, Real, Text, Whole

ACCELERATORS: Final = r"^[^:{}\s]+(:[1-9][0-9]{0,3})?$"
NotNegative = Annotated[Real, Field(ge=0)]


class Rates(Part):
    """Prices of one vCPU and of one GiB of memory, in USD per hour."""

    usd_per_vcpu_hour: Annotated[Real, Field(gt=0)] = Field(
        description="Price of one vCPU, in USD per hour.", examples=[0.033174]
    )
    usd_per_gib_hour: NotNegative = Field(
        default=0.0, description="Price of one GiB of memory, in USD per hour.", examples=[0.004446]
    )


class CustomMachine(Part):
    """A machine that is not in the price list, with prices in USD per vCPU and per GiB of
    memory."""

    vcpus: Annotated[Whole, Field(ge=1)] = Field(description="Number of vCPUs.", examples=[6])
    memory_gib: NotNegative = Field(default=0.0, description="Memory in GiB.", examples=[12.0])
    on_demand: Rates = Field(
        description="On-demand prices: without a commitment to a period.",
        examples=[{"usd_per_vcpu_hour": 0.033174}],
    )
    spot: Rates | None = Field(
        default=None, description="Spot prices: the cloud may revoke the machine at any time."
    )
    committed: Rates | None = Field(
        default=None, description="Prices with a commitment to a period, such as one year."
    )
    source: Text | None = Field(
        default=None, description="Where you found these prices, for example a URL."
    )


class PriceRow(Part):
    """The keys that select the row of the price list with the price of a server."""

    instance: Text = Field(
        description="The machine type, as in the column InstanceType of the price list"
        " (`costs.prices`). With `custom`, write a name of your choice.",
        examples=["n1-standard-1"],
    )
    region: Text = Field(
        description="The region, as in the column Region of the price list.",
        examples=["us-central1"],
    )
    zone: Text | None = Field(
        default=None,
        description=(
            "The zone, as in the column AvailabilityZone of the price list. Default: the zone of"
            " the region in which the instance has the lowest price. The table `costs` states the"
            " zone that Perseus used."
        ),
    )
    accelerator: Annotated[Text, Field(pattern=ACCELERATORS)] | None = Field(
        default=None,
        description=(
            "Name and number of accelerators that the instance price does not include, such as T4:1"
            " for a GPU on GCP. These accelerators have a row of their own in the price list,"
            " without an InstanceType. Perseus adds the price in this row to the price of the"
            " instance."
        ),
    )
    share: Annotated[Real, Field(gt=0, le=1)] | None = Field(
        default=None,
        description=(
            "The share (0 to 1) of the instance's price that the server pays. Example: for a server"
            " on 1 of 4 vCPUs, write 0.25 if other servers use the remaining vCPUs, and 1 if no"
            " other server uses them. Required if the instance has more vCPUs than `cores`, or more"
            " accelerators than `gpus`."
        ),
    )
    custom: CustomMachine | None = Field(
        default=None,
        description=(
            "A machine that is not in the price list, such as a custom machine type of GCP, with"
            " its own prices per vCPU and per GiB of memory."
        ),
    )
