"""Plan fleets: the cheapest whole servers for a demand, from measured capacities
(docs/explanation/fleets.md)."""
