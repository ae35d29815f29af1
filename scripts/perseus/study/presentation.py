"""Define the sections `costs` and `figures` of a configuration. Neither affects a measurement."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from perseus.study.base import Different, Part, Real, Text, Whole

Pricing = Literal["on_demand", "spot", "committed"]
Font = Literal["sans", "serif"]
CURRENCY: Final = r"^[A-Z]{3}$"
DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


class Costs(Part):
    """The price list and other prices from which Perseus computes costs."""

    pricing: Annotated[tuple[Pricing, ...], Field(min_length=1), Different] = Field(
        default=("on_demand", "spot"),
        description=(
            "The kinds of price for which Perseus computes costs. Figures use the first kind in"
            " this list. Fleets and the table `break_even` use on-demand prices, also if this list"
            " does not contain `on_demand`. With `demand.spot`, fleets may also use spot prices."
        ),
        json_schema_extra={"uniqueItems": True},
    )
    prices: Text | None = Field(
        default=None,
        description=(
            "The path of the price list: a CSV file with the same columns as the catalogues of"
            " SkyPilot. The file may contain prices of any cloud. Default: config/prices.csv in the"
            " folder of the Snakefile."
        ),
    )
    currency: Annotated[Text, Field(pattern=CURRENCY)] = Field(
        default="USD", description="The currency of the price list, in three capital letters."
    )
    usd_per_currency_unit: Annotated[Real, Field(gt=0)] | None = Field(
        default=None,
        description=(
            "Value of one unit of `currency` in USD; required if `currency` is not USD, because all"
            " costs in the results are in USD."
        ),
    )
    priced_on: Annotated[Text, Field(pattern=DATE)] | None = Field(
        default=None,
        description=(
            "The day on which the prices in the price list were valid, such as 2026-09-01. If a row"
            " of the price list has a date in its column Date, Perseus uses the date of the row."
            " Perseus stores the day with every cost."
        ),
    )
    committed_discount: Annotated[Real, Field(gt=0, lt=1)] | None = Field(
        default=None,
        description=(
            "The share (0 to 1) of the on-demand price that you save with a commitment. Perseus"
            " uses this share for machines without a price in the column CommittedPrice of the"
            " price list. The catalogues of SkyPilot do not have this column."
        ),
    )
    usd_per_kwh: Annotated[Real, Field(ge=0)] | None = Field(
        default=None,
        description=(
            "Price of electricity in USD per kWh. If you set this key, Perseus also computes the"
            " cost of the energy that the energy counters of the hardware measure."
        ),
    )


class FigureStyle(Part):
    """The style of the figures."""

    width_mm: Annotated[Real, Field(ge=60, le=400)] = Field(
        default=160.0,
        description=(
            "Width of a figure in print, in millimetres. In a paper with two columns, one column is"
            " 84.6 mm wide (3.33 inches), and both columns together are 177.8 mm wide (7 inches)."
        ),
    )
    font: Font = Field(
        default="sans",
        description=(
            "The font of the labels. `serif` is similar to Times, the usual font of papers."
        ),
    )
    font_pt: Annotated[Real, Field(ge=5, le=24)] = Field(
        default=9.0, description="Font size of the labels, in points."
    )
    dpi: Annotated[Whole, Field(ge=72, le=600)] = Field(
        default=200, description="Resolution of the PNG files, in dots per inch."
    )
