"""How results are priced and drawn; nothing of it is measured."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from perseus.study.base import Different, Part, Real, Whole

Pricing = Literal["on_demand", "spot"]


class Costs(Part):
    """How results are priced."""

    pricing: Annotated[tuple[Pricing, ...], Field(min_length=1), Different] = Field(
        default=("on_demand", "spot"),
        description="Which prices the cost table lists; figures show the first.",
        json_schema_extra={"uniqueItems": True},
    )


class FigureStyle(Part):
    """The style of the figures."""

    width_mm: Annotated[Real, Field(ge=60, le=400)] = Field(
        default=160.0, description="Width of a figure on paper."
    )
    font_pt: Annotated[Real, Field(ge=5, le=24)] = Field(
        default=9.0, description="Size of the labels."
    )
    dpi: Annotated[Whole, Field(ge=72, le=600)] = Field(
        default=200, description="Resolution of the PNG files."
    )
