"""Perseus beside its peers: what `make bench` measures. See docs/evidence/benchmarks.md."""
