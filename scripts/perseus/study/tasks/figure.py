"""The task of drawing one figure."""

from __future__ import annotations

from perseus.study.base import Part
from perseus.study.presentation import Font


class FigureTask(Part):
    """The width in print, the letters and their size, and which price counts."""

    width_mm: float
    font: Font = "sans"
    font_pt: float
    dpi: int
    pricing: str
