"""The task of drawing one figure."""

from __future__ import annotations

from perseus.study.base import Part


class FigureTask(Part):
    """The width in print, the size of text, and which price counts."""

    width_mm: float
    font_pt: float
    dpi: int
    pricing: str
