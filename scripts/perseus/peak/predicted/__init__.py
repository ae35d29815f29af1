"""Predict the sharing ratio of a mix from measurements of each tenant alone.

The method is in docs/explanation/frontier.md.
"""
