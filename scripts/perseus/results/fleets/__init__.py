"""Fleets: the cheapest whole servers for a demand, of the loads that servers were measured to carry
(docs/explanation/fleets.md)."""
