"""What people look at: the answer in words, figures, one page.

In: tables, and raw results for a few figures. Out: SVG, PNG and HTML.
"""
