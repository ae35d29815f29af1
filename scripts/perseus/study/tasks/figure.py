"""Task: draw one figure."""

from __future__ import annotations

from perseus.study.base import Part
from perseus.study.presentation import Font


class FigureTask(Part):
    """Width in print, font and size, and the pricing to draw."""

    width_mm: float
    font: Font = "sans"
    font_pt: float
    dpi: int
    pricing: str
