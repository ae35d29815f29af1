"""Make the report: conclusions, figures and one HTML page.

The input is the tables of a study, and raw results for a few figures. The output is SVG, PNG and
HTML files.
"""

import os

# This line must precede any import of matplotlib: the import fails if the kernel of a notebook has
# set a backend.
os.environ["MPLBACKEND"] = "agg"
