"""Settings of prices and figures; a change never re-measures."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from perseus.study.base import Different, Part, Real, Text, Whole

Pricing = Literal["on_demand", "spot", "committed"]
Font = Literal["sans", "serif"]
CURRENCY: Final = r"^[A-Z]{3}$"
DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


class Costs(Part):
    """How results are priced."""

    pricing: Annotated[tuple[Pricing, ...], Field(min_length=1), Different] = Field(
        default=("on_demand", "spot"),
        description="Which prices the cost table lists; figures show the first.",
        json_schema_extra={"uniqueItems": True},
    )
    prices: Text | None = Field(
        default=None,
        description=(
            "The price list: an unchanged CSV file with the columns of SkyPilot's catalogues, of"
            " any cloud. Default, config/prices.csv beside the Snakefile."
        ),
    )
    currency: Annotated[Text, Field(pattern=CURRENCY)] = Field(
        default="USD", description="The currency of that file, in three capital letters."
    )
    usd_per_currency_unit: Annotated[Real, Field(gt=0)] | None = Field(
        default=None,
        description="Value of one unit of that currency in USD, the currency of the results;"
        " required if `currency` is another.",
    )
    priced_on: Annotated[Text, Field(pattern=DATE)] | None = Field(
        default=None,
        description=(
            "The day on which its prices were valid, such as 2026-09-01; a column Date of the file"
            " takes precedence. The date is stored with every cost."
        ),
    )
    committed_discount: Annotated[Real, Field(gt=0, lt=1)] | None = Field(
        default=None,
        description="The share of the on-demand price that a commitment saves, for rows without a"
        " CommittedPrice, which SkyPilot's catalogues do not have.",
    )
    usd_per_kwh: Annotated[Real, Field(ge=0)] | None = Field(
        default=None,
        description="Price of electricity, for the energy that counters have measured.",
    )


class FigureStyle(Part):
    """The style of the figures."""

    width_mm: Annotated[Real, Field(ge=60, le=400)] = Field(
        default=160.0,
        description="Width of a figure on paper; in papers of two columns 84.6 (3.33 inches) for"
        " one and 177.8 (7 inches) for both.",
    )
    font: Font = Field(
        default="sans", description="The font: `serif` is similar to Times, as in papers."
    )
    font_pt: Annotated[Real, Field(ge=5, le=24)] = Field(
        default=9.0, description="Size of the labels."
    )
    dpi: Annotated[Whole, Field(ge=72, le=600)] = Field(
        default=200, description="Resolution of the PNG files."
    )
