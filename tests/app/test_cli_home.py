"""The command line over homes that are read-only, full, or left by a signal."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from app.config import Settings
from app.services import Services
from tests.app.helpers import SOURCE, Built, Home, until
from tests.conftest import EXAMPLES, ROOT

SLOW = "import time\n\ntime.sleep(60)\n"
# Root may write anywhere; without this capability it is bound by permissions as everybody is.
WITHOUT_OVERRIDE = (
    "import ctypes, os, sys\n"
    "for capability in (1, 2):\n    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)\n"
    "os.execv(sys.executable, [sys.executable, '-m', 'app.cli', *sys.argv[1:]])"
)


def as_anybody(*words: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_OVERRIDE, *map(str, words)]
    env = {**os.environ, "LOUPE_HOME": str(home)}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=90, check=False)


@pytest.fixture
def read_only(softmax: Home, tmp_path: Path) -> Home:
    """A copy of the compiled home that cannot be written to."""
    home = tmp_path / "home"
    shutil.copytree(softmax.path, home)
    for path in (*home.rglob("*"), home):
        path.chmod(0o500 if path.is_dir() else 0o400)
    return Home(home, softmax.group, softmax.trace)


def test_reading_needs_no_write(read_only: Home, tmp_path: Path) -> None:
    before = sorted(read_only.path.rglob("*"))
    for words in (("show", read_only.trace, "--json"), ("diff", read_only.trace, "ttir:0", "ttir:1", "--json")):
        ended = as_anybody(*words, home=read_only.path)
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout)
    assert as_anybody("export", read_only.trace, "--dir", tmp_path / "out", home=read_only.path).returncode == 0
    assert sorted(read_only.path.rglob("*")) == before


def check_words(ended: subprocess.CompletedProcess[str], words: str) -> None:
    assert ended.returncode == 1, ended.stderr
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words", [("compile", EXAMPLES / "softmax.py"), ("serve", "--port", "0"), ("worker", "compile")]
)
def test_home_that_cannot_be_written_is_told_in_a_sentence(read_only: Home, words: tuple[str | Path, ...]) -> None:
    check_words(as_anybody(*words, home=read_only.path), "cannot hold Loupe's data: it cannot be written to")


@pytest.mark.parametrize("size", [0, 2000, 20_000])
@pytest.mark.parametrize("words", [("compile", EXAMPLES / "softmax.py"), ("serve", "--port", "0")])
def test_full_disk_is_told_in_a_sentence(tmp_path: Path, words: tuple[str | Path, ...], size: int) -> None:
    """A bound on the size of files stands for the disk: the database cannot be made."""
    command = [sys.executable, "-m", "app.cli", *map(str, words)]
    env = {**os.environ, "LOUPE_HOME": str(tmp_path / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=90,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )
    check_words(ended, "database cannot be used")


def start(home: Path, source: str, *words: str) -> subprocess.Popen[str]:
    path = home.parent / "slow.py"
    path.write_text(source)
    command = [sys.executable, "-m", "app.cli", "compile", str(path), "--target", "sm_80", "--target", "sm_90", *words]
    env = {**os.environ, "LOUPE_HOME": str(home)}
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def statuses(home: Path) -> list[str]:
    try:
        rows = sqlite3.connect(f"file:{home}/loupe.db?mode=ro", uri=True)
    except sqlite3.OperationalError:
        return []
    try:
        return [row[0] for row in rows.execute("SELECT status FROM traces ORDER BY id")]
    except sqlite3.OperationalError:
        return []
    finally:
        rows.close()


def is_starting(home: Path) -> bool:
    return (home / "loupe.db").exists()


def is_running(home: Path) -> bool:
    return statuses(home) == ["running", "running"]


@pytest.mark.parametrize("reached", [is_starting, is_running])
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_a_compilation_and_leaves_nothing(
    tmp_path: Path, signum: signal.Signals, reached: Callable[[Path], bool]
) -> None:
    home = tmp_path / "home"
    process = start(home, SLOW)
    until(lambda: reached(home))
    below = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signum)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 128 + signum
    assert "Traceback" not in stderr
    assert psutil.wait_procs(below, 5)[1] == []
    assert statuses(home) == []
    assert [path.name for path in (home / "slots").iterdir()] == []


def test_second_signal_does_not_disturb_the_first(tmp_path: Path) -> None:
    home = tmp_path / "home"
    process = start(home, SLOW)
    until(lambda: is_running(home))
    for _ in range(3):
        process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert statuses(home) == []


def test_slots_may_be_a_link_to_another_disk(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir(mode=0o755)
    (home / "slots").symlink_to(elsewhere)
    process = start(home, SOURCE.decode(), "--arg", "x_ptr=*fp32", "--json")
    out, stderr = process.communicate(timeout=90)
    assert process.returncode == 0, stderr
    assert [trace["status"] for trace in json.loads(out)["traces"]] == ["ok", "ok"]
    assert (home / "slots").is_symlink()
    assert list(elsewhere.iterdir()) == []
    assert elsewhere.stat().st_mode & 0o777 == 0o755


def test_home_that_others_could_read_is_closed_to_them(tmp_path: Path, built: Built) -> None:
    home = tmp_path / "home"
    Services.open(Settings(home=home)).close()
    (home / "notes.txt").write_text("not ours")
    for path in (*home.rglob("*"), home):
        path.chmod(0o777 if path.is_dir() else 0o666)
    services = Services.open(Settings(home=home))
    services.blobs.put(built.manifest.content, built.data)
    services.close()
    open_to_others = [path.name for path in home.iterdir() if path.stat().st_mode & 0o077]
    assert open_to_others == ["notes.txt"]
    assert services.blobs.path(built.manifest.content).stat().st_mode & 0o077 == 0
