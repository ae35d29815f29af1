"""Test the libraries for figures and report before a study measures anything.

Without this test, a study would detect a missing library only after all its measurements.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from perseus.report.style import drawing, panels, save
from perseus.study.tasks.figure import FigureTask

LAST_MODULES: Final = ("perseus.results.check", "perseus.report.page")


def rehearse(style: FigureTask) -> None:
    """Write a small figure as SVG and PNG into a temporary folder, and import the modules that
    check tables and write the report.

    If a library is missing, the function raises an error, so that the study ends at once.
    """
    for module in LAST_MODULES:
        import_module(module)
    with TemporaryDirectory() as folder, drawing(style):
        figure, (axes,) = panels(style, 1, 1, 30)
        axes.bar([-1, 1], [0.1, 10], hatch="///", label="a \N{MINUS SIGN} b")
        axes.set_yscale("log")
        axes.legend()
        save(figure, style, Path(folder, "figure.svg"), Path(folder, "figure.png"))
