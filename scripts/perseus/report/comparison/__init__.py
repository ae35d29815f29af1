"""Present a comparison of two results: settings that differ, a Markdown summary, terminal lines,
a figure and a page."""
