"""Plan fleets: from measured capacities, find the cheapest servers that carry a demand
(docs/explanation/fleets.md)."""
