"""Define the settings of prices and figures, which never affect a measurement."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from perseus.study.base import Different, Part, Real, Text, Whole

Pricing = Literal["on_demand", "spot", "committed"]
Font = Literal["sans", "serif"]
CURRENCY: Final = r"^[A-Z]{3}$"
DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


class Costs(Part):
    """The prices from which Perseus computes costs."""

    pricing: Annotated[tuple[Pricing, ...], Field(min_length=1), Different] = Field(
        default=("on_demand", "spot"),
        description=(
            "The pricings for which Perseus computes costs. Figures show the costs of the first"
            " pricing in this list. Fleets and the table `break_even` always use on-demand prices;"
            " with `demand.spot`, fleets may also use spot prices."
        ),
        json_schema_extra={"uniqueItems": True},
    )
    prices: Text | None = Field(
        default=None,
        description=(
            "The path of the price list: a CSV file with the columns of the catalogues of SkyPilot,"
            " for any cloud. Default: config/prices.csv in the folder of the Snakefile."
        ),
    )
    currency: Annotated[Text, Field(pattern=CURRENCY)] = Field(
        default="USD", description="The currency of the price list, in three capital letters."
    )
    usd_per_currency_unit: Annotated[Real, Field(gt=0)] | None = Field(
        default=None,
        description=(
            "Value of one unit of `currency` in USD; required if `currency` is not USD. The results"
            " are in USD."
        ),
    )
    priced_on: Annotated[Text, Field(pattern=DATE)] | None = Field(
        default=None,
        description=(
            "The day on which the prices in the price list were valid, such as 2026-09-01. A date"
            " in the column Date of the price list overrides this day. Perseus stores the day with"
            " every cost."
        ),
    )
    committed_discount: Annotated[Real, Field(gt=0, lt=1)] | None = Field(
        default=None,
        description=(
            "The share (0 to 1) of the on-demand price that a commitment saves. Perseus uses this"
            " share if a row of the price list has no CommittedPrice. The catalogues of SkyPilot"
            " have no CommittedPrice."
        ),
    )
    usd_per_kwh: Annotated[Real, Field(ge=0)] | None = Field(
        default=None,
        description=(
            "Price of electricity in USD per kWh. Perseus computes the cost of the energy that the"
            " hardware's counters measure."
        ),
    )


class FigureStyle(Part):
    """The style of the figures."""

    width_mm: Annotated[Real, Field(ge=60, le=400)] = Field(
        default=160.0,
        description=(
            "Width of a figure in print, in millimetres. In a paper with two columns, 84.6 (3.33"
            " inches) is one column and 177.8 (7 inches) is both columns."
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
