"""Benchmarks of Perseus and comparable tools (`make bench`). See docs/evidence/benchmarks.md."""
