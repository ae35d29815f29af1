"""Present a comparison of two results: differences of settings, a Markdown summary, lines for the
terminal, a figure and a page."""
