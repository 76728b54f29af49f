import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.trace import Manifest, TraceError, digest, json_safe, previous


def text(name: str) -> str:
    return digest(name.encode())


def one_pass(ordinal: int, name: str, **more: Any) -> dict[str, Any]:
    return {
        "ordinal": ordinal,
        "name": name,
        "argument": name,
        "anchor": "builtin.module",
        "text": text(f"{name}{ordinal}"),
        **more,
    }


def manifest(**more: Any) -> Manifest:
    data = {
        "schema": "loupe.trace/1",
        "pipeline": "triton",
        "status": "ok",
        "kernel": {"name": "k", "file": "kernel.py", "source": text("source"), "arguments": [], "origin": "given"},
        "launch": None,
        "target": {"arch": "sm_90", "backend": "cuda", "warp_size": 32},
        "options": {"num_warps": 4},
        "toolchain": {"name": "triton 3.9.0", "tools": []},
        "stages": [
            {
                "name": "ttir",
                "input": text("input"),
                "passes": [
                    one_pass(1, "inline"),
                    one_pass(2, "canonicalize", parent=1),
                    one_pass(3, "canonicalize", parent=1),
                    one_pass(4, "cse"),
                    one_pass(5, "broken", text=None, failed=True),
                ],
            }
        ],
        "artifacts": [{"name": "ptx", "digest": text("ptx")}],
        "launch_metadata": {},
        "resources": None,
        "diagnostics": [],
        "failure": None,
        **more,
    }
    return Manifest.parse(json.dumps(data))


def test_addresses():
    trace = manifest()
    assert trace.resolve("ttir:0").text == text("input")
    assert trace.resolve("ttir:4").text == text("cse4")
    assert trace.resolve("ptx").syntax == "ptx"
    assert trace.resolve("source").syntax == "python"


@pytest.mark.parametrize(
    "address", ["ttir:6", "ttir:5", "ttgir:1", "ttir", "ttir:-1", "", "../x", "ttir:1e3", "ttir:99999999999"]
)
def test_an_address_that_names_nothing_says_so(address: str):
    with pytest.raises(TraceError):
        manifest().resolve(address)


@pytest.mark.parametrize(
    ("address", "before"),
    [
        ("ttir:0", None),
        ("ttir:1", "ttir:0"),
        ("ttir:2", "ttir:0"),
        ("ttir:3", "ttir:2"),
        ("ttir:4", "ttir:1"),
        ("ptx", None),
    ],
)
def test_a_pass_is_compared_with_what_it_received(address: str, before: str | None):
    assert previous(manifest(), address) == before


def test_canonical_form_is_stable():
    trace = manifest()
    again = Manifest.parse(trace.canonical())
    assert again.canonical() == trace.canonical()
    assert again.content == trace.content
    assert manifest(options={"num_warps": 8}).content != trace.content


def test_each_text_is_named_once_in_order():
    names = manifest().digests()
    assert names[0] == text("source")
    assert len(set(names)) == len(names) == 7


@pytest.mark.parametrize(
    "more",
    [
        {"schema": "loupe.trace/2"},
        {"unknown": 1},
        {"status": "fine"},
        {"stages": [{"name": "ttir", "input": None, "passes": [one_pass(2, "cse")]}]},
        {"stages": [{"name": "ttir", "input": None, "passes": [one_pass(1, "cse", parent=1)]}]},
        {"stages": [{"name": "ttir", "input": None, "passes": []}] * 2},
        {"artifacts": [{"name": "../../etc", "digest": text("x")}]},
        {"artifacts": [{"name": "ptx", "digest": "x"}]},
        {"options": []},
    ],
)
def test_a_forged_manifest_is_refused(more: dict[str, Any]):
    with pytest.raises(TraceError):
        manifest(**more)


@pytest.mark.parametrize("data", ["", "[]", "null", "{", b"\xff\xfe", "[" * 100_000])
def test_what_is_no_manifest_is_refused(data: str | bytes):
    with pytest.raises(TraceError):
        Manifest.parse(data)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=8))
def test_option_values_become_json(value: Any):
    json.dumps(json_safe(value), allow_nan=False)
    assert json_safe((1, {"a": (2,)})) == [1, {"a": [2]}]
