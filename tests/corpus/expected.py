"""What the corpus's sources launch, and what Triton itself cannot compile."""

# Distinct launches of each kernel, by source.
LAUNCHES = {}

# Why a kernel's first launch cannot be compiled for a target, in Triton's own words.
REFUSED = {}
