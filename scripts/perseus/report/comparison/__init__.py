"""Present the comparison of two studies: changed settings, a Markdown summary, lines for the
terminal, a figure and a page."""
