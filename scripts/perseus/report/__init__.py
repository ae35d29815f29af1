"""Make the report: conclusions, figures and one HTML page.

In: tables, and raw results for a few figures. Out: SVG, PNG and HTML.
"""

import os

# This must precede any import of matplotlib, which fails if the kernel of a notebook has set its
# backend.
os.environ["MPLBACKEND"] = "agg"
