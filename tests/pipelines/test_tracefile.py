import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines import tracefile
from pipelines.trace import (
    Artifact,
    Kernel,
    Manifest,
    Pass,
    Stage,
    Target,
    Toolchain,
    TraceError,
    canonical_json,
    digest,
)
from pipelines.tracefile import TraceFile


def build(texts: list[bytes]) -> tuple[Manifest, dict[str, bytes]]:
    blobs = {digest(item): item for item in [b"source", *texts]}
    passes = tuple(
        Pass(ordinal=i, name="p", argument="p", anchor="m", text=digest(item)) for i, item in enumerate(texts, 1)
    )
    manifest = Manifest(
        pipeline="triton",
        status="ok",
        kernel=Kernel(name="k", file="k.py", source=digest(b"source"), arguments=(), origin="given"),
        launch=None,
        target=Target(arch="sm_90", backend="cuda", warp_size=32),
        options={},
        toolchain=Toolchain(name="t", tools=()),
        stages=(Stage(name="ttir", input=None, passes=passes),),
        artifacts=(Artifact(name="ptx", digest=digest(b"source")),),
        launch_metadata={},
        resources=None,
        diagnostics=(),
        failure=None,
    )
    return manifest, blobs


@given(st.lists(st.binary(max_size=300), max_size=30))
def test_what_is_written_is_read(texts: list[bytes]):
    manifest, blobs = build(texts)
    read = TraceFile(tracefile.write(manifest, blobs))
    read.verify()
    assert read.manifest == manifest
    assert read.content == manifest.content
    for name, data in blobs.items():
        assert read.blob(name) == data


def test_a_file_from_before_a_field_was_added_is_sound(monkeypatch: pytest.MonkeyPatch):
    manifest, blobs = build([b"x"])
    fields = manifest.model_dump(mode="json", by_alias=True)
    del fields["parent"]
    with monkeypatch.context() as earlier:
        earlier.setattr(Manifest, "canonical", lambda _: canonical_json(fields))
        data = tracefile.write(manifest, blobs)
    TraceFile(data).verify()
    assert TraceFile(data).content == digest(canonical_json(fields)) != manifest.content


def test_same_trace_same_bytes():
    manifest, blobs = build([b"a" * 100, b"a" * 101])
    assert tracefile.write(manifest, blobs) == tracefile.write(manifest, dict(reversed(blobs.items())))


def test_texts_that_resemble_each_other_cost_little():
    lines = [b"%%%d = arith.addi %%%d, %%c : i32" % (n, n * 7919 % 1000) for n in range(2000)]
    texts = [b"\n".join([*lines[:k], b"new", *lines[k:]]) for k in range(0, 2000, 50)]
    manifest, blobs = build(texts)
    assert len(tracefile.write(manifest, blobs)) * 30 < sum(map(len, texts))


def test_a_missing_text_is_named():
    manifest, blobs = build([b"x"])
    del blobs[digest(b"x")]
    with pytest.raises(TraceError, match="not there"):
        tracefile.write(manifest, blobs)


@given(st.data())
def test_damage_is_an_error_never_a_wrong_text(data: st.DataObject):
    manifest, blobs = build([b"module {\n" + bytes([65 + n]) * n for n in range(20)])
    whole = bytearray(tracefile.write(manifest, blobs))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(0, len(whole)) | st.just(len(whole)))
    try:
        read = TraceFile(bytes(whole[:cut]))
        read.verify()
    except TraceError:
        return
    for name, blob in blobs.items():
        assert read.blob(name) == blob


def test_a_decompression_bomb_is_refused(monkeypatch: pytest.MonkeyPatch):
    manifest, blobs = build([b"\0" * 100_000])
    data = tracefile.write(manifest, blobs)
    monkeypatch.setattr(tracefile, "MAX_TEXT", 50_000)
    with pytest.raises(TraceError, match="larger"):
        TraceFile(data)
    with pytest.raises(TraceError, match="larger"):
        tracefile.write(manifest, blobs)


def table(data: bytes) -> list[list[Any]]:
    """The rows of a file: digest, offset, stored, size, base."""
    head, count = struct.unpack_from("<II", data, 8)
    return [list(row) for row in struct.iter_unpack("<32sQIIi", data[16 + head : 16 + head + 52 * count])]


def forged(data: bytes, change: Callable[[list[list[Any]]], None]) -> bytes:
    """The file with its table changed; rows may be changed but not added."""
    head, count = struct.unpack_from("<II", data, 8)
    rows = table(data)
    change(rows)
    packed = b"".join(struct.pack("<32sQIIi", *row) for row in rows)
    return data[: 16 + head] + packed + data[16 + head + 52 * count :]


def assembled(manifest: Manifest, rows: list[tuple[bytes, bytes, int]]) -> bytes:
    """A file made by hand, frames packed as ``write`` packs them, of (blob, prefix, base)."""
    head = tracefile._compress(manifest.canonical(), b"", 1)
    frames = [tracefile._compress(blob, prefix, 1) for blob, prefix, _ in rows]
    offset = 16 + len(head) + 52 * len(rows)
    packed = b""
    for (blob, _, base), frame in zip(rows, frames, strict=True):
        packed += struct.pack("<32sQIIi", bytes.fromhex(digest(blob)), offset, len(frame), len(blob), base)
        offset += len(frame)
    return b"".join([tracefile.MAGIC, struct.pack("<II", len(head), len(rows)), head, packed, *frames])


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes that were decoded, one a frame."""
    sizes: list[int] = []
    decompress = tracefile._decompress

    def counted(frame: bytes, prefix: bytes, size: int | None) -> bytes:
        blob = decompress(frame, prefix, size)
        sizes.append(len(blob))
        return blob

    monkeypatch.setattr(tracefile, "_decompress", counted)
    return sizes


def test_verifying_decodes_every_frame_once(decoded: list[int]):
    texts = [b"module %d " % n * 50 for n in range(200)]
    manifest, blobs = build(texts)
    TraceFile(tracefile.write(manifest, blobs)).verify()
    assert sorted(decoded) == sorted([len(manifest.canonical()), *map(len, blobs.values())])


def test_reading_a_text_decodes_a_bounded_chain(decoded: list[int]):
    texts = [bytes([n]) * (2 << 20) for n in range(12)] + [b"%d" % n for n in range(40)]
    manifest, blobs = build(texts)
    file = TraceFile(tracefile.write(manifest, blobs))
    for text in texts:
        decoded.clear()
        file.blob(digest(text))
        assert len(decoded) <= tracefile.KEY_INTERVAL
        assert sum(decoded) <= tracefile.KEY_BYTES


@pytest.mark.parametrize(
    ("sizes", "bases"),
    [
        ([9] * 17, [-1, *range(16)]),
        ([9 << 20] * 2, [-1, 0]),
        ([9, 9, 9], [-1, 0, 0]),
        ([9, 9, 9], [-1, -1, 0]),
        ([9], [-2]),
        ([9], [0]),
        ([9, 9], [1, -1]),
        ([9, 9], [-1, -(2**31)]),
    ],
    ids=["links", "bytes", "fan", "skip", "below", "self", "ahead", "least"],
)
def test_prefixes_that_write_never_chooses_are_refused_undecoded(
    sizes: list[int], bases: list[int], decoded: list[int]
):
    """Many texts behind one long chain cost minutes to verify, in a file of kilobytes."""
    texts = [bytes([65 + n]) * size for n, size in enumerate(sizes)]
    manifest, _ = build(texts)
    rows = [(b"source", b"", -1)]
    shifted = [base + 1 if base >= 0 else base for base in bases]
    everything = [b"source", *texts]
    rows += [
        (text, everything[base] if 0 <= base < n else b"", base)
        for n, (text, base) in enumerate(zip(texts, shifted, strict=True), 1)
    ]
    with pytest.raises(TraceError, match="table is damaged"):
        TraceFile(assembled(manifest, rows))
    assert decoded == []


def test_the_longest_chains_that_write_chooses_are_read():
    texts = [bytes([65 + n]) * 9 for n in range(40)] + [bytes([n]) * (4 << 20) for n in range(9)] + [b"z" * (17 << 20)]
    manifest, blobs = build(texts)
    data = tracefile.write(manifest, blobs)
    assert max(row[4] for row in table(data)) > tracefile.KEY_INTERVAL
    TraceFile(data).verify()


def test_a_total_too_large_is_refused_undecoded(monkeypatch: pytest.MonkeyPatch, decoded: list[int]):
    manifest, blobs = build([bytes([n]) * 1000 for n in range(20)])
    data = tracefile.write(manifest, blobs)
    monkeypatch.setattr(tracefile, "MAX_TOTAL", 10_000)
    with pytest.raises(TraceError, match="larger"):
        TraceFile(data)
    assert decoded == []
    with pytest.raises(TraceError, match="larger"):
        tracefile.write(manifest, blobs)


def test_texts_beyond_the_manifest_and_repeated_texts_are_refused():
    manifest, _ = build([b"a"])
    TraceFile(assembled(manifest, [(b"source", b"", -1), (b"a", b"", -1)])).verify()
    for texts in ([b"source", b"a", b"more"], [b"source"], [b"a", b"source"], [b"source", b"b"]):
        with pytest.raises(TraceError, match="those that its manifest names"):
            TraceFile(assembled(manifest, [(text, b"", -1) for text in texts])).verify()
    with pytest.raises(TraceError, match="twice"):
        TraceFile(assembled(manifest, [(b"source", b"", -1), (b"a", b"", -1), (b"a", b"", -1)]))


def test_bytes_that_belong_to_no_text_are_refused():
    manifest, blobs = build([b"a" * 100, b"b" * 100])
    data = tracefile.write(manifest, blobs)
    padded = tracefile._compress(b"a" * 100, b"source", 9) + b"hidden"
    for whole in (data + b"\0", data[:-1]):
        with pytest.raises(TraceError, match="cut short"):
            TraceFile(whole)
    with pytest.raises(TraceError, match="damaged"):
        tracefile._decompress(padded, b"source", 100)


@given(st.data())
def test_any_table_is_refused_or_gives_the_texts(data: st.DataObject):
    manifest, blobs = build([b"module {\n" + bytes([65 + n]) * n for n in range(20)])
    whole = tracefile.write(manifest, blobs)
    number = data.draw(st.integers(0, 20))
    field, top = data.draw(st.sampled_from([(1, 2**64 - 1), (2, 2**32 - 1), (3, 2**32 - 1)]))
    value = data.draw(st.integers(0, top) | st.integers(0, 2000))

    def change(rows: list[list[Any]]) -> None:
        rows[number][field] = value

    same = table(whole)[number][field] == value
    try:
        TraceFile(forged(whole, change)).verify()
        sound = True
    except TraceError:
        sound = False
    assert sound == same


def test_what_contradicts_itself_is_not_written():
    manifest, blobs = build([b"a"])
    with pytest.raises(TraceError, match="failed"):
        tracefile.write(manifest.model_copy(update={"status": "failed"}), blobs)


def test_a_frame_that_lies_about_its_size_is_refused():
    manifest, blobs = build([b"\0" * 100_000])
    data = tracefile.write(manifest, blobs)

    def shrink(rows: list[list[Any]]) -> None:
        rows[1][3] = 10

    with pytest.raises(TraceError, match="not what the table says"):
        TraceFile(forged(data, shrink)).verify()


def test_files_open_from_disk(tmp_path: Path):
    manifest, blobs = build([b"x"])
    path = tmp_path / "k.loupe"
    path.write_bytes(tracefile.write(manifest, blobs))
    assert TraceFile.open(path).text(digest(b"x")) == "x"
    path.write_bytes(b"not a trace")
    with pytest.raises(TraceError, match=r"not a \.loupe file"):
        TraceFile.open(path)
