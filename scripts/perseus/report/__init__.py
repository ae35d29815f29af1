"""Make the report of a study: conclusions, figures and one HTML page.

The input is the tables of the study and, for some figures, raw results. The output is HTML, SVG and
PNG files.
"""

import os

# This line must precede any import of matplotlib: the import fails if the kernel of a notebook has
# set a backend.
os.environ["MPLBACKEND"] = "agg"
