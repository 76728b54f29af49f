"""Everything between a kernel and a trace, and everything computed from a trace."""
