"""Define the task of a job that draws one figure."""

from __future__ import annotations

from perseus.study.base import Part
from perseus.study.presentation import Font


class FigureTask(Part):
    """Style of a figure: width in print, font, font size and resolution. `pricing` is the kind of
    price ("on_demand", "spot" or "committed") of the costs in the figure."""

    width_mm: float
    font: Font = "sans"
    font_pt: float
    dpi: int
    pricing: str
