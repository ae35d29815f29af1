"""Plan fleets: find the cheapest servers that carry a demand, given the measured capacity of each
type of server (docs/explanation/fleets.md)."""
