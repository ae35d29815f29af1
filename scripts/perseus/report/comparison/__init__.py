"""Present the comparison of two studies as a page, a figure, a Markdown summary and lines for the
terminal."""
