"""Two results compared, for people: what else differs, a summary in Markdown, lines for the
terminal, a figure."""
