"""Benchmarks: ratios measured in one run, written to docs/benchmarks.md; ``python -m bench``."""
