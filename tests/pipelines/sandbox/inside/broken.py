"""A preload module that cannot be imported."""

raise ImportError("the compiler is not installed")
