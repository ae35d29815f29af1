"""The import of this module does once what is slow at its first use.

Snakemake looks for its plugins among all installed packages, and matplotlib draws a figure.
"""

from snakemake.cli import get_argument_parser

from perseus.report.rehearsal import rehearse
from perseus.study.tasks.figure import FigureTask

get_argument_parser()
rehearse(FigureTask(width_mm=160, font_pt=9, dpi=60, pricing="on_demand"))
