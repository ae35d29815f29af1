"""The import of this module does, once for all tests, two things that are slow the first time.

Snakemake searches all installed packages for its plugins, and matplotlib draws a first figure.
"""

from snakemake.cli import get_argument_parser

from perseus.report.rehearsal import rehearse
from perseus.study.tasks.figure import FigureTask

get_argument_parser()
rehearse(FigureTask(width_mm=160, font_pt=9, dpi=60, pricing="on_demand"))
