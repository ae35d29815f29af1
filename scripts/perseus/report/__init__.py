"""Make the report: conclusions, figures and one HTML page.

In: tables, and raw results for a few figures. Out: SVG, PNG and HTML.
"""

import os

# Before any module imports matplotlib, which fails on a backend of a notebook's kernel.
os.environ["MPLBACKEND"] = "agg"
