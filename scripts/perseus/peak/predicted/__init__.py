"""Predict the sharing ratio of a mix from measurements of each tenant alone
(docs/explanation/frontier.md)."""
