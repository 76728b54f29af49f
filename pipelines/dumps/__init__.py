"""Parsers, one format a file, text in, snapshots out; they never run a compiler."""
