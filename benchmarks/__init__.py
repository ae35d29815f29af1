"""Perseus beside its peers: what `make bench` measures. See docs/benchmarks.md."""
