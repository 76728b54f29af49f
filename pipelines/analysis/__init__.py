"""What is computed from a trace: line keys, diffs, operation counts, the summary of all passes."""
