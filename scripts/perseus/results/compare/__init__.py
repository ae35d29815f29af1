"""Compare two studies: pair what both measured, and judge each pair
(docs/explanation/comparison.md). Reads folders or archives of results, and makes a table."""
