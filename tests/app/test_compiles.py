import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from app import jobs, submissions, workers
from app.jobs import Result
from app.models import Group, Trace
from app.services import Services
from pipelines.triton_path.spec import CompileSpec, LaunchFound
from tests.app.helpers import BROKEN, TOOLCHAIN, Built, compile_body, damage, error_of


def submit(client: FlaskClient, **more: Any) -> dict[str, Any]:
    answer = client.post("/api/v1/compiles", json=compile_body(**more))
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def finish(services: Services, trace_id: str, built: Built, *, cacheable: bool = True) -> None:
    """Do a worker's part with a trace made by hand."""
    services.blobs.put(built.manifest.content, built.data)
    with services.database.write() as session:
        job = jobs.claim(session, trace_id, "worker")
        assert job
        key = job.spec.compile_key(TOOLCHAIN)
        result = Result(built.manifest.status, built.manifest.content, "scale", key, cacheable=cacheable)
        assert jobs.finish(session, job, result)


def test_one_target_opens_a_trace_and_several_a_group(client: FlaskClient) -> None:
    one = submit(client)
    assert one["url"] == f"/t/{one['traces'][0]}"
    several = submit(client, targets=["sm_90", "sm_80", "sm_90"])
    assert several["url"] == f"/g/{several['group']}"
    told = client.get(f"/api/v1/groups/{several['group']}").get_json()
    assert [trace["target"] for trace in told["traces"]] == ["sm_90", "sm_80"]
    assert [trace["id"] for trace in told["traces"]] == several["traces"]
    assert {trace["status"] for trace in told["traces"]} == {"queued"}


def test_submission_goes_to_the_queue(client: FlaskClient, services: Services) -> None:
    submit(client, targets=["sm_80", "sm_90"])
    assert services.queue.pending() == 2


def test_permalinks_carry_owner_and_visibility(client: FlaskClient, services: Services) -> None:
    made = submit(client)
    with services.database.read() as session:
        trace, group = session.get_one(Trace, made["traces"][0]), session.get_one(Group, made["group"])
    for row in (trace, group):
        assert (row.team, row.owner, row.visibility) == ("local", "local", "link")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"source": ""}, "source"),
        ({"source": "x" * ((1 << 20) + 1)}, "source"),
        ({"source": "é" * ((1 << 19) + 1)}, "source"),
        ({"fresh": "perhaps"}, "fresh"),
        ({"file": "../kernel.py"}, "file"),
        ({"file": "kernel.txt"}, "file"),
        ({"targets": []}, "targets"),
        ({"targets": ["sm_10"]}, "targets"),
        ({"targets": [f"sm_{number}" for number in range(80, 100)]}, "targets"),
        ({"kernel": "k" * 600}, "kernel"),
        ({"args": {f"a{number}": "i32" for number in range(300)}}, "args"),
        ({"args": ["i32"]}, "args"),
        ({"options": {f"o{number}": 1 for number in range(100)}}, "options"),
        ({"option": {}}, "option"),
    ],
)
def test_bad_request_is_refused_with_its_field(client: FlaskClient, change: dict[str, Any], field: str) -> None:
    answer = client.post("/api/v1/compiles", json=compile_body(**change))
    assert answer.status_code == 422
    error = error_of(answer)
    assert error["detail"]["field"].split(".")[0] == field
    assert error["message"].startswith(field)


def test_refusal_names_what_there_is(client: FlaskClient, ready_worker: str) -> None:
    assert ready_worker
    answer = client.post("/api/v1/compiles", json=compile_body(options={"num_wraps": 4}))
    assert answer.status_code == 422
    assert "there is no option num_wraps; the backend has maxnreg, num_warps" in error_of(answer)["message"]
    both = compile_body(targets=["sm_80", "gfx942"], options={"maxnreg": 64})
    assert "there is no option maxnreg" in error_of(client.post("/api/v1/compiles", json=both))["message"]
    answer = client.post("/api/v1/compiles", json=compile_body(targets=["gfx906"]))
    assert "choose from sm_75, sm_80" in error_of(answer)["message"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"null", 422),
        (b"[]", 422),
        (b'"\xff"', 400),
        (b'{"source": "x", "constexprs": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001, 400),
        (b'{"source": "x", "constexprs": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}", 400),
        (b'{"source": "' + b"x" * (32 << 20) + b'"}', 413),
    ],
)
def test_hostile_json_is_refused(client: FlaskClient, body: bytes, status: int) -> None:
    answer = client.post("/api/v1/compiles", data=body, content_type="application/json")
    assert answer.status_code == status
    assert error_of(answer)["message"]


def test_known_input_is_answered_at_once(
    client: FlaskClient, services: Services, built: Built, ready_worker: str
) -> None:
    assert ready_worker
    first = submit(client)["traces"][0]
    finish(services, first, built)
    second = submit(client)["traces"][0]
    told = client.get(f"/api/v1/traces/{second}").get_json()
    assert second != first
    assert (told["status"], told["cached"], told["content"]) == ("ok", True, built.manifest.content)
    assert told["manifest"]["kernel"]["name"] == "scale"
    other = submit(client, options={"num_warps": 8})["traces"][0]
    assert client.get(f"/api/v1/traces/{other}").get_json()["status"] == "queued"


def test_known_launches_come_back_with_the_trace(
    client: FlaskClient, services: Services, built: Built, ready_worker: str
) -> None:
    assert ready_worker
    first = submit(client)["traces"][0]
    finish(services, first, built)
    found = [LaunchFound(kernel="scale", config=f"BLOCK: {size}", grid=(1, 1, 1)) for size in (64, 128, 256)]
    with services.database.write() as session:
        key = session.get_one(Trace, first).compile_key
        assert key
        submissions.keep_launches(session, "local", key, found)
        submissions.keep_launches(session, "local", key, found[:1])
    made = submit(client)
    told = client.get(f"/api/v1/groups/{made['group']}").get_json()["traces"]
    assert [(trace["status"], trace["config"]) for trace in told] == [
        ("ok", None),
        ("queued", "BLOCK: 128"),
        ("queued", "BLOCK: 256"),
    ]
    assert made["url"] == f"/g/{made['group']}"


def test_what_may_differ_next_time_is_compiled_again(
    client: FlaskClient, services: Services, failed: Built, ready_worker: str
) -> None:
    assert ready_worker
    finish(services, submit(client)["traces"][0], failed, cacheable=False)
    again = submit(client)["traces"][0]
    assert client.get(f"/api/v1/traces/{again}").get_json()["status"] == "queued"


@pytest.mark.parametrize("kind", ["missing", *BROKEN])
def test_known_input_whose_file_is_damaged_is_compiled_again_and_heals(
    client: FlaskClient, services: Services, built: Built, ready_worker: str, kind: str
) -> None:
    assert ready_worker
    first = submit(client)["traces"][0]
    finish(services, first, built)
    damage(services, built, kind)
    assert client.get(f"/api/v1/traces/{first}").status_code == 500
    again = submit(client)["traces"][0]
    assert client.get(f"/api/v1/traces/{again}").get_json()["status"] == "queued"
    finish(services, again, built)
    for trace in (first, again):
        assert client.get(f"/api/v1/traces/{trace}").get_json()["manifest"]["kernel"]["name"] == "scale"


def test_results_stay_within_a_team(client: FlaskClient, services: Services, built: Built, ready_worker: str) -> None:
    assert ready_worker
    finish(services, submit(client)["traces"][0], built)
    request = submissions.CompileRequest.model_validate(compile_body())
    with services.database.write() as session:
        made = submissions.submit(session, services.blobs, request, team="others")
    assert made.queued == made.traces


def test_toolchain_of_a_dead_worker_decides_nothing(
    client: FlaskClient, services: Services, built: Built, ready_worker: str
) -> None:
    finish(services, submit(client)["traces"][0], built)
    with services.database.write() as session:
        workers.retire(session, ready_worker)
    again = submit(client)["traces"][0]
    with services.database.read() as session:
        assert session.get_one(Trace, again).compile_key is None


def test_server_that_cannot_compile_says_why(client: FlaskClient, services: Services) -> None:
    with services.database.write() as session:
        workers.report(session, workers.register(session, "compile"), "refused", message="this kernel has no Landlock")
    answer = client.post("/api/v1/compiles", json=compile_body())
    assert answer.status_code == 503
    assert error_of(answer)["message"] == "this kernel has no Landlock"
    assert client.get("/about.json").get_json()["message"] == "this kernel has no Landlock"


def test_key_tells_every_input_apart() -> None:
    base = {"source": "a", "target": "sm_80"}
    specs = [
        base,
        {**base, "source": "b"},
        {**base, "target": "sm_90"},
        {**base, "file": "other.py"},
        {**base, "kernel": "k"},
        {**base, "arguments": {}},
        {**base, "arguments": {"x": "i32"}},
        {**base, "arguments": {"x": "i32:16"}},
        {**base, "constexprs": {"x": 1}},
        {**base, "constexprs": {"x": 1.0}},
        {**base, "constexprs": {"x": True}},
        {**base, "launch": 1},
        {**base, "options": {"num_warps": 8}},
    ]
    keys = [CompileSpec.model_validate(spec).compile_key(TOOLCHAIN) for spec in specs]
    other = TOOLCHAIN.model_copy(update={"name": "triton 3.8.0"})
    keys.append(CompileSpec.model_validate(base).compile_key(other))
    assert len(set(keys)) == len(keys)


def test_form_without_scripts_submits(client: FlaskClient, services: Services) -> None:
    form = {
        "source": "import triton\r\n",
        "kernel": " scale ",
        "args": "x_ptr=*fp16:16\r\nn=i32\r\n\r\nb=None\r\nBLOCK=1024\r\nALLOW=true\r\nscale=0.5",
        "targets": ["sm_80"],
        "options": "num_warps=8",
    }
    answer = client.post("/compile", data=form)
    assert answer.status_code == 303
    with services.database.read() as session:
        (trace,) = session.query(Trace).all()
        group = session.get_one(Group, trace.group_id)
    assert answer.headers["Location"] == f"/t/{trace.id}"
    assert group.request["source"] == "import triton\n"
    assert trace.spec
    assert trace.spec["kernel"] == "scale"
    assert trace.spec["arguments"] == {"x_ptr": "*fp16:16", "n": "i32", "b": "None"}
    assert trace.spec["constexprs"] == {"BLOCK": 1024, "ALLOW": True, "scale": 0.5}
    assert trace.spec["options"] == {"num_warps": 8}


@pytest.mark.parametrize(
    ("change", "field"),
    [({"args": "n"}, "args"), ({"options": "=3"}, "options"), ({"targets": []}, "targets"), ({"source": ""}, "source")],
)
def test_form_comes_back_with_what_is_wrong(client: FlaskClient, change: dict[str, Any], field: str) -> None:
    form = {"source": "import kept", "targets": ["sm_80"], **change}
    answer = client.post("/compile", data=form)
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text
    assert field == "source" or "import kept" in answer.text


def test_large_form_is_refused(client: FlaskClient) -> None:
    assert client.post("/compile", data={"source": "x" * (8 << 20)}).status_code == 413


def test_kernels_are_found_without_running_the_source(client: FlaskClient) -> None:
    source = "raise SystemExit\n@triton.jit\ndef add(x_ptr, n, BLOCK: tl.constexpr = 64):\n    pass\n"
    told = client.post("/api/v1/kernels", json={"source": source}).get_json()
    (kernel,) = told["kernels"]
    assert (kernel["name"], kernel["line"], told["error"]) == ("add", 3, None)
    assert kernel["arguments"][2] == {
        "name": "BLOCK",
        "annotation": "tl.constexpr",
        "constexpr": True,
        "default": "64",
        "guess": {
            "value": "64",
            "kind": "value",
            "origin": "default",
            "why": "its default",
            "alternatives": kernel["arguments"][2]["guess"]["alternatives"],
        },
    }
    assert "128" in kernel["arguments"][2]["guess"]["alternatives"]
    broken = client.post("/api/v1/kernels", json={"source": "def f(:\n"}).get_json()
    assert (broken["error"]["line"], broken["kernels"]) == (1, [])
    nested = client.post("/api/v1/kernels", json={"source": "(" * 50_000})
    assert nested.status_code == 200
    assert nested.get_json()["error"]


def test_targets_options_and_examples_are_told(client: FlaskClient, ready_worker: str) -> None:
    assert ready_worker
    told = client.get("/api/v1/targets").get_json()
    assert {target["arch"] for target in told["targets"]} >= {
        "sm_75",
        "sm_80",
        "sm_86",
        "sm_89",
        "sm_90",
        "sm_100",
        "sm_120",
        "gfx90a",
        "gfx942",
        "gfx950",
        "gfx1100",
        "gfx1201",
    }
    assert {backend["name"] for backend in told["backends"]} == {target["backend"] for target in told["targets"]}
    options = {option["name"]: option["defaults"] for option in told["options"]}
    assert options == {"num_warps": {"cuda": 4, "hip": 4}, "maxnreg": {"cuda": None}}
    gallery = client.get("/api/v1/examples").get_json()
    assert {"softmax", "vector_add", "matmul"} <= {example["name"] for example in gallery}
    assert all(example["title"] and example["teaches"] and example["source"] for example in gallery)


def test_home_lists_recent_traces_and_its_twin_agrees(client: FlaskClient, stored: str) -> None:
    submitted = submit(client)["traces"][0]
    data = client.get("/index.json").get_json()
    assert [trace["id"] for trace in data["recent"]] == [submitted, stored]
    assert json.loads(client.get("/.json").data) == data
    page = client.get("/?example=softmax").text
    assert f"/t/{stored}" in page
    assert "Fused softmax" in page


def test_about_tells_what_compiles(client: FlaskClient, ready_worker: str) -> None:
    assert ready_worker
    data = client.get("/about.json").get_json()
    assert (data["worker"], data["toolchain"]["name"]) == ("ready", "triton 3.9.0")
    assert data["confinement"]["files"] == "Landlock"
    assert "triton 3.9.0" in client.get("/about").text


def test_unknown_group_is_not_found(client: FlaskClient) -> None:
    for path in ("/g/" + "g" * 22, "/g/nothing.json", "/api/v1/groups/" + "g" * 22):
        assert client.get(path).status_code == 404
