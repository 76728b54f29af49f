"""The two-line hook, ``loupe import`` and ``loupe push``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli import main
from app.config import Settings
from app.database import look
from app.models import Trace
from tests.app.capturing import PROGRAMS, ROOT, SECRET, Captured
from tests.app.helpers import PATIENCE
from tests.app.test_serve import serve

TWO_LINES = """
import os, sys
import triton, kernels, standin
standin.install()
x = standin.Tensor("fp32", (1000,))
kernels.total[(1,)](x, x, BLOCK=64)
sys.path.append({path!r})
import loupe_hook; loupe_hook.start({folder!r})
kernels.total[(1,)](x, x, BLOCK=64)
kernels.total[(1,)](x, x, BLOCK=128)
print(sorted(name for name in sys.modules if name.startswith(("pydantic", "pipelines", "app", "click"))))
"""


def two_lines(folder: Path, recorded: str, path: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(TWO_LINES.format(path=path, folder=recorded))
    environment = {**os.environ, "PYTHONPATH": str(PROGRAMS), "TRITON_CACHE_DIR": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "program.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def hook_path() -> str:
    """The folder that the command names, and which ``loupe_hook`` is in."""
    done = CliRunner().invoke(main, ["capture", "--hook-path"])
    return done.stdout.strip()


def copied_hook(folder: Path) -> str:
    """A folder with a copy of the hook, as on a machine without Loupe."""
    shutil.copytree(ROOT / "pipelines" / "hook", folder / "copied" / "loupe_hook")
    return str(folder / "copied")


@pytest.mark.parametrize("copied", [False, True])
def test_two_lines_record_what_comes_after_them(tmp_path: Path, copied: bool) -> None:
    ended = two_lines(tmp_path, "recorded", copied_hook(tmp_path) if copied else hook_path())
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[]\n", "")
    done = CliRunner().invoke(main, ["import", str(tmp_path / "recorded"), "--home", str(tmp_path / "home"), "--json"])
    assert done.exit_code == 0, done.output
    (trace,) = json.loads(done.stdout)["traces"]
    assert (trace["kernel"], trace["status"]) == ("total", "ok")
    assert trace["kept_at"].startswith("/t/")
    with look(Settings(tmp_path / "home").database) as session:
        row = session.get_one(Trace, trace["kept_at"].removeprefix("/t/"))
    assert (row.compile_key, row.cacheable) == (None, False)
    shown = CliRunner().invoke(main, ["show", trace["kept_at"], "--home", str(tmp_path / "home"), "--json"])
    assert json.loads(shown.stdout)["kernel"]["arguments"][-1]["value"] == 128


def test_hook_that_cannot_write_leaves_the_program_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = two_lines(tmp_path, str(tmp_path / "file" / "recorded"), hook_path())
    assert (ended.returncode, ended.stdout) == (0, "[]\n")
    assert ended.stderr.count("loupe: ") == 1
    assert "the program goes on" in ended.stderr


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(tmp_path_factory.mktemp("server") / "home") as served:
        yield f"http://127.0.0.1:{served.port}"


def test_push_gives_permalinks_and_groups_there(trained: Captured, server: str, tmp_path: Path) -> None:
    folder = trained.folder / "out"
    done = CliRunner().invoke(main, ["push", str(folder), "--server", server, "--home", str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)["traces"]
    assert sorted(t["content"] for t in told) == sorted(t["content"] for t in trained.told["traces"])
    again = CliRunner().invoke(main, ["show", told[0]["kept_at"], "--json", "--home", str(tmp_path)])
    assert json.loads(again.stdout)["kernel"]["origin"] == "captured"


def test_captured_configs_are_a_group_on_the_server(server: str, tmp_path: Path) -> None:
    code = (PROGRAMS / "train.py").read_text().replace("add()\nadd()\n", "")
    project = tmp_path / "home" / SECRET / "project"
    shutil.copytree(PROGRAMS, project)
    (project / "program.py").write_text(code)
    command = [
        sys.executable,
        "-m",
        "app.cli",
        "capture",
        "--json",
        "--push",
        server,
        "--",
        sys.executable,
        "program.py",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LOUPE_HOME": str(tmp_path / "loupe")}
    ended = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=110, check=False
    )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout.splitlines()[-1])["traces"]
    groups = {trace["group"] for trace in told if trace["kernel"] == "tuned"}
    assert len(groups) == 1
    (group,) = groups
    assert group.startswith(f"{server}/g/")
    with urllib.request.urlopen(f"{group}.json") as answer:
        members = json.loads(answer.read())["traces"]
    assert [member["config"].split(",")[0] for member in members] == ["BLOCK: 128", "BLOCK: 256"]


@pytest.mark.parametrize(
    ("address", "words"),
    [("http://127.0.0.1:9", "cannot be reached"), ("ftp://here", "is no server"), ("nowhere", "is no server")],
)
def test_push_to_no_server_says_so(trained: Captured, tmp_path: Path, address: str, words: str) -> None:
    done = CliRunner().invoke(main, ["push", str(trained.folder / "out"), "--server", address, "--home", str(tmp_path)])
    assert done.exit_code != 0
    assert words in done.output
