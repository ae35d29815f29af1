"""Perseus beside its peers: what `make bench` measures. See docs/explanation/benchmarks.md."""
