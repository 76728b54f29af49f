import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.trace import (
    MAX_HEADER,
    MAX_MEMBERS_DEPTH,
    MAX_NESTING,
    MAX_PASSES,
    Manifest,
    Pass,
    TraceError,
    digest,
    predecessors,
    previous,
)
from pipelines.tracefile import TraceFile
from tests.conftest import GOLDEN

FAILURE = {"kind": "error", "stage": "ttir", "address": "ttir:5", "message": "no"}


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


def stage(*passes: dict[str, Any], name: str = "ttir") -> dict[str, Any]:
    return {"name": name, "input": text("input"), "passes": list(passes)}


def manifest(**more: Any) -> Manifest:
    return Manifest.parse(json.dumps(fields(**more)))


def fields(**more: Any) -> dict[str, Any]:
    return {
        "schema": "loupe.trace/1",
        "pipeline": "triton",
        "status": "failed",
        "kernel": {"name": "k", "file": "kernel.py", "source": text("source"), "arguments": [], "origin": "given"},
        "launch": None,
        "target": {"arch": "sm_90", "backend": "cuda", "warp_size": 32},
        "options": {"num_warps": 4},
        "toolchain": {"name": "triton 3.9.0", "tools": []},
        "stages": [
            stage(
                one_pass(1, "inline"),
                one_pass(2, "canonicalize", parent=1),
                one_pass(3, "canonicalize", parent=1),
                one_pass(4, "cse"),
                one_pass(5, "broken", text=None, failed=True),
            )
        ],
        "artifacts": [{"name": "ptx", "digest": text("ptx")}],
        "launch_metadata": {},
        "resources": None,
        "diagnostics": [],
        "failure": FAILURE,
        **more,
    }


def test_addresses():
    trace = manifest()
    assert trace.resolve("ttir:0").text == text("input")
    assert trace.resolve("ttir:4").text == text("cse4")
    assert trace.resolve("ptx").syntax == "ptx"
    assert trace.resolve("source").syntax == "python"


def package(*names: str) -> dict[str, Any]:
    files = [{"name": name, "digest": text(name)} for name in names]
    return {"schema": "loupe.trace/2", "kernel": {**fields()["kernel"], "file": "pkg/norm.py", "files": files}}


def test_every_file_of_a_package_has_an_address():
    trace = manifest(**package("pkg/a.py", "pkg/sub/b.py"))
    assert trace.resolve("source:pkg/sub/b.py").text == text("pkg/sub/b.py")
    assert trace.resolve("source:pkg/norm.py").text == trace.resolve("source").text == trace.kernel.source
    assert [snapshot.address for snapshot in trace.sources()] == ["source", "source:pkg/a.py", "source:pkg/sub/b.py"]
    assert all(snapshot.syntax == "python" and snapshot.item is None for snapshot in trace.sources())
    assert {snapshot.text for snapshot in trace.sources()} <= set(trace.digests())
    for address in ("source:", "source:none.py", "source:/etc/passwd", "source:pkg/a.py:1", "sources"):
        with pytest.raises(TraceError):
            trace.resolve(address)


@pytest.mark.parametrize(
    "address",
    ["ttir:6", "ttir:5", "ttgir:1", "ttir", "ttir:-1", "", "../x", "ttir:1e3", "ttir:99999999999", "ttir:\u0661"],
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


def test_a_file_of_the_first_schema_is_read_as_it_was():
    file = TraceFile.open(GOLDEN / "traces" / "schema-1.loupe")
    file.verify()
    manifest = file.manifest
    assert file.content == manifest.content == "383db747e7bc1befd3de0699888c6f9f47839abcf297268080455c5d47d8e157"
    assert (manifest.schema_, manifest.kernel.files, manifest.kernel.arguments[0].guessed) == (
        "loupe.trace/1",
        (),
        False,
    )
    assert file.blob(manifest.artifact("ptx").digest).startswith(b"//")


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


@st.composite
def nested(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Passes as a compiler begins them: each at the top, or inside one that has not ended."""
    passes: list[dict[str, Any]] = []
    running: list[int] = []
    for ordinal in range(1, draw(st.integers(1, 12)) + 1):
        running = running[: draw(st.integers(0, len(running)))]
        gone = draw(st.booleans())
        one = one_pass(ordinal, "p", parent=running[-1] if running else None)
        passes.append({**one, "text": None, "failed": True} if gone else one)
        running.append(ordinal)
    return passes


def received(passes: list[dict[str, Any]], ordinal: int) -> str:
    """What a pass is compared with, straight from the words: elder sibling, else what the parent received."""
    parent = passes[ordinal - 1]["parent"]
    elder = [p["ordinal"] for p in passes[: ordinal - 1] if p["parent"] == parent and p["text"]]
    if elder:
        return f"ttir:{elder[-1]}"
    return "ttir:0" if parent is None else received(passes, parent)


@given(nested())
def test_predecessors_of_any_nesting(passes: list[dict[str, Any]]):
    trace = manifest(stages=[stage(*passes)], failure={**FAILURE, "address": None})
    found = predecessors(trace)
    assert found == {f"ttir:{p['ordinal']}": received(passes, p["ordinal"]) for p in passes}
    for one in passes:
        if one["text"]:
            assert previous(trace, f"ttir:{one['ordinal']}") == found[f"ttir:{one['ordinal']}"]


def test_the_most_passes_have_predecessors_in_one_walk():
    """One step a pass: none of the shapes that a walk back from every pass would take hours for."""
    half = MAX_PASSES // 2
    gone = [one_pass(n, "p", text=None, failed=True) for n in range(1, half + 1)]
    rest = [one_pass(n, "p") for n in range(half + 1, MAX_PASSES + 1)]
    trace = manifest(stages=[stage(*gone, *rest)])
    assert predecessors(trace)[f"ttir:{half + 1}"] == "ttir:0"


OK: dict[str, Any] = {"status": "ok", "failure": None, "stages": []}


def argument(depth: int) -> dict[str, Any]:
    return {"name": "x", "type": "tuple", "members": [argument(depth - 1)] if depth else []}


def kernel(*arguments: dict[str, Any]) -> dict[str, Any]:
    return {"kernel": {**fields()["kernel"], "arguments": list(arguments)}}


def deep(levels: int) -> dict[str, Any]:
    return {"stages": [stage(*[one_pass(n, "p", parent=n - 1 if n > 1 else None) for n in range(1, levels + 1)])]}


@pytest.mark.parametrize(
    "more",
    [
        {"schema": "loupe.trace/3"},
        {"unknown": 1},
        {"status": "fine"},
        {"stages": [stage(one_pass(2, "cse"))]},
        {"stages": [stage(one_pass(1, "cse", parent=1))]},
        {"stages": [stage(one_pass(1, "a"), one_pass(2, "b"), one_pass(3, "c", parent=1))]},
        {"stages": [stage()] * 2},
        {**deep(MAX_NESTING + 1), "failure": {**FAILURE, "address": None}},
        {"artifacts": [{"name": "../../etc", "digest": text("x")}]},
        {"artifacts": [{"name": "ptx", "digest": "x"}]},
        {"artifacts": [{"name": "ptx", "digest": text("a")}, {"name": "ptx", "digest": text("b")}]},
        {"options": []},
        {"status": "ok"},
        {"status": "ok", "failure": None},
        {"failure": None},
        {"failure": {**FAILURE, "address": "ttir:6"}},
        {"failure": {**FAILURE, "address": "sass"}},
        {"failure": {**FAILURE, "address": "../x"}},
        kernel(argument(MAX_MEMBERS_DEPTH)),
        kernel(argument(60)),
        package("pkg/a.py", "pkg/a.py"),
        package("pkg/norm.py"),
        {**package("pkg/a.py"), "failure": {**FAILURE, "address": "source:none.py"}},
        {"failure": {**FAILURE, "address": "sources"}},
    ],
)
def test_a_forged_manifest_is_refused(more: dict[str, Any]):
    with pytest.raises(TraceError):
        manifest(**more)


@pytest.mark.parametrize(
    "more",
    [
        OK,
        {**OK, **deep(MAX_NESTING)},
        {"failure": {**FAILURE, "address": "source"}},
        {**package("pkg/a.py"), "failure": {**FAILURE, "address": "source:pkg/a.py"}},
        {"failure": {**FAILURE, "address": "ptx"}},
        {"failure": {**FAILURE, "address": "ttir:0"}},
        {"failure": {**FAILURE, "address": None}},
        kernel(argument(MAX_MEMBERS_DEPTH - 1)),
        kernel({"name": "x", "type": "*fp32," * 70}),
    ],
)
def test_the_sound_neighbours_of_forgeries_are_read(more: dict[str, Any]):
    trace = manifest(**more)
    assert Manifest.parse(trace.canonical()) == trace


def test_a_tuple_argument_keeps_its_elements():
    """And a manifest that says nothing of elements is the one that says there are none."""
    elements = [{"name": "0", "type": "*fp16", "divisibility": 16}, {"name": "1", "type": "constexpr", "value": 4}]
    trace = manifest(**kernel({"name": "pair", "type": "(*fp16,constexpr)", "members": elements}))
    first, second = trace.kernel.arguments[0].members
    assert (first.type, first.divisibility, second.value) == ("*fp16", 16, 4)
    plain_argument = {"name": "n", "type": "i32"}
    assert manifest(**kernel(plain_argument)).content == manifest(**kernel({**plain_argument, "members": []})).content


def test_a_pass_may_be_as_long_as_a_header():
    long = "k" * MAX_HEADER
    made = Pass(ordinal=1, name=long, argument=long, anchor=long, function=long, step=long, text=None)
    assert made.function == long


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("place", ['{"x":%s}', '{"x":[1,[%s]]}', '{"x":{"y":{"z":%s}}}'])
@pytest.mark.parametrize("field", ["options", "launch_metadata"])
def test_numbers_that_json_has_not_are_refused(number: str, place: str, field: str):
    data = fields()
    data[field] = "HERE"
    with pytest.raises(TraceError, match="not a JSON number"):
        Manifest.parse(json.dumps(data).replace('"HERE"', place % number))
    data = fields(**kernel({"name": "x", "type": "constexpr", "value": "HERE"}))
    with pytest.raises(TraceError, match="not a JSON number"):
        Manifest.parse(json.dumps(data).replace('"HERE"', place % number))


@given(
    st.recursive(
        st.none() | st.integers() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_every_manifest_that_is_read_has_a_canonical_form(value: Any):
    data = json.dumps(fields(options={"x": value}))
    try:
        trace = Manifest.parse(data)
    except TraceError:
        return
    assert Manifest.parse(trace.canonical()).canonical() == trace.canonical()


@pytest.mark.parametrize("data", ["", "[]", "null", "{", b"\xff\xfe", "[" * 100_000])
def test_what_is_no_manifest_is_refused(data: str | bytes):
    with pytest.raises(TraceError):
        Manifest.parse(data)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value, as the keys that lead to it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


FULL = fields(
    **kernel({"name": "x", "type": "t", "members": [{"name": "0", "type": "i32", "value": 1}]}),
    launch={"grid": [1], "arguments": [{"name": "x", "dtype": "f", "shape": [1], "value": None}], "config": "c"},
    diagnostics=[{"severity": "error", "message": "m", "line": 1}],
    resources={"registers": 1},
    parent={"content": text("p"), "address": "ttir:1", "edit": text("e")},
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    | st.floats()
    | st.sampled_from(["ttir", "ok", text("x"), "", "ttir:1"]),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.sampled_from(["name", "value", "members"]), x),
    max_leaves=4,
)


@given(st.lists(st.tuples(st.sampled_from(places(FULL)[1:]), JSON), min_size=1, max_size=3))
def test_any_change_of_a_manifest_is_refused_or_sound(changes: list[tuple[tuple[Any, ...], Any]]):
    data = json.loads(json.dumps(FULL))
    for (*way, last), value in changes:
        at = data
        try:
            for key in way:
                at = at[key]
            at[last] = value
        except (KeyError, IndexError, TypeError):  # an earlier change took the place away
            continue
    try:
        trace = Manifest.parse(json.dumps(data))
    except TraceError:
        return
    assert Manifest.parse(trace.canonical()) == trace
    for address in predecessors(trace):
        assert address in {f"{stage.name}:{item.ordinal}" for stage in trace.stages for item in stage.passes}
