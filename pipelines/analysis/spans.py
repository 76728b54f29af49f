"""Whole-array helpers on spans of a byte buffer; nothing here loops over lines or bytes.

Every buffer ends with a newline and ``PADDING`` zero bytes, so looking a few bytes ahead never leaves it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Index = NDArray[np.int64]
Keys = NDArray[np.uint64]

PADDING = 64

_STEPS = 48
_CHUNK = 1 << 15
_SPAN_LIMIT = 4096
_MASK = (1 << 64) - 1
_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)


def _powers(base: int, count: int) -> Keys:
    out = np.full(count, base, np.uint64)
    out[0] = 1
    return np.multiply.accumulate(out)


_POWERS = _powers(_BASE, _CHUNK)
_INVERSES = _powers(_INVERSE, _CHUNK)
_CHUNK_POWER = pow(_BASE, _CHUNK, 1 << 64)
_CHUNK_INVERSE = pow(_INVERSE, _CHUNK, 1 << 64)


def table(characters: bytes) -> Flags:
    """Return a 256-entry membership table."""
    out = np.zeros(256, np.bool_)
    out[np.frombuffer(characters, np.uint8)] = True
    return out


def padded(text: bytes) -> Bytes:
    """Return the text as an array, closed with a newline and the padding."""
    return np.frombuffer(text + b"\n" + bytes(PADDING), np.uint8)


def matches(buffer: Bytes, at: Index, word: bytes) -> Flags:
    """Say for each position whether ``word`` (shorter than the padding) starts there; never for one below zero."""
    found = at >= 0
    at = np.maximum(at, 0)
    for offset, byte in enumerate(word):
        found &= buffer[at + offset] == byte
    return found


def run_end(buffer: Bytes, at: Index, members: Flags) -> Index:
    """Return where the run of member bytes that starts at each position ends; the newline is never a member."""
    end = at.copy()
    active = np.flatnonzero(members[buffer[end]])
    for _ in range(_STEPS):
        if not active.size:
            return end
        end[active] += 1
        active = active[members[buffer[end[active]]]]
    if active.size:
        stops = np.flatnonzero(~members[buffer])
        end[active] = stops[np.searchsorted(stops, end[active])]
    return end


def run_start(buffer: Bytes, end: Index, members: Flags, limit: int) -> Index:
    """Return where the run of member bytes before each end starts, looking back at most ``limit`` bytes."""
    start = end.copy()
    active = np.flatnonzero(start > 0)
    for _ in range(limit):
        active = active[(start[active] > 0) & members[buffer[np.maximum(start[active] - 1, 0)]]]
        if not active.size:
            break
        start[active] -= 1
    return start


def expand(starts: Index, lengths: Index) -> Index:
    """Return all indices of the spans, one span after the other."""
    total = int(lengths.sum())
    if not total:
        return np.empty(0, np.int64)
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(total)


def merge(starts: Index, ends: Index) -> tuple[Index, Index]:
    """Return the spans sorted and without overlap, so that their total length is bounded by the buffer's."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    if starts.size:
        starts = starts.copy()
        starts[1:] = np.maximum(starts[1:], np.maximum.accumulate(ends)[:-1])
    full = starts < ends
    return starts[full], ends[full]


def inside(positions: Index, starts: Index, ends: Index) -> Flags:
    """Say which positions lie in one of the merged spans."""
    if not starts.size:
        return np.zeros(positions.size, np.bool_)
    nearest = np.searchsorted(starts, positions, side="right") - 1
    return (nearest >= 0) & (positions < ends[np.maximum(nearest, 0)])


def mix(values: Keys) -> Keys:
    """Spread every bit over the word (the finalizer of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def hash_lines(buffer: Bytes, ends: Index) -> Keys:
    """Hash the consecutive pieces of a buffer that end at each of ``ends`` (exclusive, ascending).

    A polynomial in an odd base modulo 2**64: the sum up to each end is taken chunk by chunk, which stays in the
    cache, and a piece is the difference of two sums, shifted to its own start.
    """
    sums = np.zeros(ends.size + 1, np.uint64)
    boundaries = np.concatenate((np.zeros(1, np.int64), ends))
    chunk_of = np.searchsorted(ends, np.arange(0, buffer.size + _CHUNK, _CHUNK), side="right")
    product = np.empty(_CHUNK, np.uint64)
    total, scale = 0, 1
    for number, start in enumerate(range(0, buffer.size, _CHUNK)):
        piece = buffer[start : start + _CHUNK]
        part = product[: piece.size]
        np.multiply(_POWERS[: piece.size], piece, out=part)
        np.cumsum(part, out=part)
        low, high = int(chunk_of[number]), int(chunk_of[number + 1])
        sums[low + 1 : high + 1] = part[ends[low:high] - start - 1] * np.uint64(scale) + np.uint64(total)
        total = (total + int(part[-1]) * scale) & _MASK
        scale = scale * _CHUNK_POWER & _MASK
    return mix((sums[1:] - sums[:-1]) * _inverse_at(boundaries[:-1]) + np.diff(boundaries).astype(np.uint64))


def _inverse_at(positions: Index) -> Keys:
    """Return the inverse of the base to the power of each position."""
    chunks = int(positions[-1]) // _CHUNK + 1 if positions.size else 1
    return _powers(_CHUNK_INVERSE, chunks)[positions // _CHUNK] * _INVERSES[positions % _CHUNK]


def hash_spans(buffer: Bytes, starts: Index, ends: Index) -> Keys:
    """Hash each span by its content; of a span over 4096 bytes its head and its length count."""
    lengths = np.minimum(ends - starts, _SPAN_LIMIT)
    out = np.zeros(starts.size, np.uint64)
    full = np.flatnonzero(lengths)
    if full.size:
        sizes = lengths[full]
        values = buffer[expand(starts[full], sizes)] * _POWERS[expand(np.zeros_like(sizes), sizes)]
        out[full] = np.add.reduceat(values, np.cumsum(sizes) - sizes)
    return mix(out + (ends - starts).astype(np.uint64) * np.uint64(_INVERSE))
