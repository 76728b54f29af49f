import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines import tracefile
from pipelines.trace import Artifact, Kernel, Manifest, Pass, Stage, Target, Toolchain, TraceError, digest
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
        TraceFile(data).verify()


def test_a_frame_that_lies_about_its_size_is_refused():
    manifest, blobs = build([b"\0" * 100_000])
    data = bytearray(tracefile.write(manifest, blobs))
    head, count = struct.unpack_from("<II", data, 8)
    for row in range(count):
        struct.pack_into("<I", data, 16 + head + row * 52 + 44, 10)
    with pytest.raises(TraceError):
        TraceFile(bytes(data)).verify()


def test_a_table_that_chases_its_tail_is_refused():
    manifest, blobs = build([b"a" * 50, b"b" * 50])
    data = bytearray(tracefile.write(manifest, blobs))
    head, count = struct.unpack_from("<II", data, 8)
    for row in range(count):
        struct.pack_into("<i", data, 16 + head + row * 52 + 48, (row + 1) % count)
    with pytest.raises(TraceError):
        TraceFile(bytes(data)).verify()


def test_files_open_from_disk(tmp_path: Path):
    manifest, blobs = build([b"x"])
    path = tmp_path / "k.loupe"
    path.write_bytes(tracefile.write(manifest, blobs))
    assert TraceFile.open(path).text(digest(b"x")) == "x"
    path.write_bytes(b"not a trace")
    with pytest.raises(TraceError, match=r"not a \.loupe file"):
        TraceFile.open(path)
