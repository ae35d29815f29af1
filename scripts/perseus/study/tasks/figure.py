"""Define the task: draw one figure."""

from __future__ import annotations

from perseus.study.base import Part
from perseus.study.presentation import Font


class FigureTask(Part):
    """Style of a figure (width in print, font, font size, resolution), and the pricing of the costs
    in the figure."""

    width_mm: float
    font: Font = "sans"
    font_pt: float
    dpi: int
    pricing: str
