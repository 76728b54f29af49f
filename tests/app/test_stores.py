import os
import sqlite3
import threading
import time
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from app import analyses, leftovers
from app.blobs import PARSED, BlobStore, DamagedError
from app.cache import DiskCache, KeyedLocks, MemoryCache
from app.compile_queue import CompileQueue
from app.models import Trace
from app.services import Services
from pipelines.analysis.summary import Summary
from tests.app.helpers import BROKEN, Built, until


def put(store: BlobStore, trace: Built) -> str:
    store.put(trace.manifest.content, trace.data)
    return trace.manifest.content


def test_stored_trace_opens_and_stays_open(tmp_path: Path, built: Built) -> None:
    store = BlobStore(tmp_path)
    content = put(store, built)
    assert store.path(content) == tmp_path / content[:2] / f"{content}.loupe"
    opened = store.open(content)
    assert opened.manifest == built.manifest
    assert store.open(content) is opened


def test_putting_again_changes_nothing(tmp_path: Path, built: Built) -> None:
    store = BlobStore(tmp_path)
    content = put(store, built)
    before = store.path(content).stat()
    put(store, built)
    assert store.path(content).stat().st_ino == before.st_ino
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [f"{content}.loupe"]


@pytest.mark.parametrize("kind", ["text", *BROKEN])
@pytest.mark.parametrize("way", ["put", "adopt"])
def test_sound_file_takes_the_place_of_a_damaged_one(tmp_path: Path, built: Built, kind: str, way: str) -> None:
    store = BlobStore(tmp_path)
    content = put(store, built)
    path = store.path(content)
    path.write_bytes(BROKEN[kind](built.data) if kind in BROKEN else built.data[:-20] + bytes(20))
    if way == "put":
        store.put(content, built.data)
    else:
        received = tmp_path / "received"
        received.write_bytes(built.data)
        received.chmod(0o644)
        store.adopt(content, received)
    assert path.read_bytes() == built.data
    assert path.stat().st_mode & 0o777 == 0o600
    store.open(content).verify()


def test_open_files_are_bounded(tmp_path: Path, built: Built, failed: Built) -> None:
    store = BlobStore(tmp_path, open_bytes=len(built.data) + 10)
    first, second = put(store, built), put(store, failed)
    opened = store.open(first)
    store.open(second)
    assert store.open(first) is not opened


def test_open_files_count_with_their_manifests(tmp_path: Path, built: Built, failed: Built) -> None:
    files = len(built.data) + len(failed.data)
    manifests = len(built.manifest.canonical()) + len(failed.manifest.canonical())
    for limit, held in ((files + 10, False), (files + PARSED * manifests, True)):
        store = BlobStore(tmp_path, open_bytes=limit)
        first, second = put(store, built), put(store, failed)
        opened = store.open(first)
        store.open(second)
        assert (store.open(first) is opened) is held


@pytest.mark.parametrize("kind", BROKEN)
def test_damaged_trace_does_not_open(tmp_path: Path, built: Built, kind: str) -> None:
    store = BlobStore(tmp_path)
    content = put(store, built)
    store.path(content).write_bytes(BROKEN[kind](built.data))
    with pytest.raises(DamagedError, match="is damaged"):
        store.open(content)
    assert not store.opens(content)


def test_missing_trace_is_said_to_be_missing(tmp_path: Path, built: Built) -> None:
    store = BlobStore(tmp_path)
    with pytest.raises(DamagedError, match="is missing"):
        store.open(built.manifest.content)
    assert not store.opens(built.manifest.content)


def age(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds, time.time() - seconds))


def test_only_what_nothing_names_is_swept_and_only_after_the_grace(
    services: Services, built: Built, failed: Built
) -> None:
    store, settings = services.blobs, services.settings
    shown, unnamed = put(store, built), put(store, failed)
    with services.database.write() as session:
        session.add(Trace(status="ok", target="sm_80", content=shown))
    left = store.path(shown).parent / ".new-left"
    foreign = store.path(shown).parent / "notes.txt"
    received = settings.uploads / "upload-left"
    for path in (left, foreign, received):
        path.write_bytes(b"")
    everything = [store.path(shown), store.path(unnamed), left, foreign, received]
    assert leftovers.remove(services) == 0
    for path in everything:
        age(path, leftovers.GRACE_SECONDS + 5)
    assert leftovers.remove(services) == 3
    assert [path.exists() for path in everything] == [True, False, False, True, False]


def test_what_is_stored_again_is_not_swept(services: Services, built: Built) -> None:
    content = put(services.blobs, built)
    age(services.blobs.path(content), leftovers.GRACE_SECONDS + 5)
    put(services.blobs, built)
    assert leftovers.remove(services) == 0
    assert services.blobs.opens(content)


@pytest.mark.parametrize("content", ["", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "\n"])
def test_only_hashes_name_files(tmp_path: Path, content: str) -> None:
    with pytest.raises(ValueError, match="is not a content hash"):
        BlobStore(tmp_path).path(content)


def test_disk_cache_drops_what_was_read_least_recently(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, limit=1000)
    for number in range(9):
        cache.put("wire", f"{number}", bytes(100))
        path = next(p for p in tmp_path.rglob("*") if p.is_file() and p.stat().st_mtime > 1e9)
        os.utime(path, (number, number))
    assert cache.get("wire", "0") == bytes(100)
    cache.put("wire", "more", bytes(300))
    kept = [number for number in range(9) if cache.get("wire", f"{number}") is not None]
    assert 0 in kept
    assert len(kept) < 9
    assert cache.get("wire", "more") is not None
    assert sum(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file()) <= 1000


def test_disk_cache_counts_what_was_there_before(tmp_path: Path) -> None:
    DiskCache(tmp_path, limit=10_000).put("keys", "old", bytes(900))
    DiskCache(tmp_path, limit=1000).put("keys", "new", bytes(200))
    assert sum(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file()) <= 1000


def test_disk_cache_key_never_leaves_the_folder(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache", limit=1000)
    cache.put("wire", "../../outside", b"x")
    assert cache.get("wire", "../../outside") == b"x"
    assert [p.name for p in tmp_path.iterdir()] == ["cache"]


def test_memory_cache_is_bounded() -> None:
    cache: MemoryCache[str] = MemoryCache(10)
    cache.put("a", "A", 4)
    cache.put("b", "B", 4)
    assert cache.get("a") == "A"
    cache.put("c", "C", 4)
    assert [cache.get(key) for key in "abc"] == ["A", None, "C"]
    cache.put("huge", "H", 11)
    assert cache.get("huge") is None
    cache.put("a", "A2", 10)
    assert [cache.get(key) for key in "ac"] == ["A2", None]


@pytest.mark.parametrize("kind", ["text", "page", "empty"])
def test_queue_that_is_damaged_is_moved_away_and_replaced(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "queue.db"
    queue = CompileQueue(path)
    for number in range(300):
        queue.send(f"{number}")
    queue.close()
    data = path.read_bytes()
    path.write_bytes(
        {"text": b"no database" * 900, "page": data[:4096] + bytes(8192) + data[12288:], "empty": b""}[kind]
    )
    again = CompileQueue(path)
    again.send("sent")
    assert again.pending() == 1
    again.close()
    away = list(tmp_path.glob("queue.db.damaged-*"))
    assert len(away) == (kind != "empty")


def test_queue_is_opened_on_first_use_and_follows_its_file(tmp_path: Path) -> None:
    path = tmp_path / "queue.db"
    first, second = CompileQueue(path), CompileQueue(path)
    assert list(tmp_path.iterdir()) == []
    first.send("a")
    assert second.pending() == 1
    for file in tmp_path.glob("queue.db*"):
        file.unlink()
    assert not first.is_sound()
    second.send("b")
    assert first.pending() == 1
    first.close()
    second.close()


def test_message_that_cannot_be_sent_waits_for_the_sweep(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    queue = CompileQueue(tmp_path / "queue.db")
    queue.send("a")
    other = sqlite3.connect(tmp_path / "queue.db")
    other.execute("DROP TABLE task")
    other.close()
    queue.send("b")
    assert "waits for the next sweep" in caplog.text
    queue.send("c")
    assert queue.pending() == 1
    queue.close()


def test_locks_are_by_key_and_go_with_their_users() -> None:
    locks = KeyedLocks()
    order: list[str] = []
    with locks.hold("a"), locks.hold("b"):
        waiting = threading.Thread(target=work, args=(locks, order))
        waiting.start()
        until(lambda: "begin" in order)
        order.append("first")
        assert len(locks) == 2
    waiting.join()
    assert order == ["begin", "first", "second"]
    assert len(locks) == 0


def work(locks: KeyedLocks, order: list[str]) -> None:
    order.append("begin")
    with locks.hold("a"):
        order.append("second")


def test_one_long_summary_holds_up_no_other(
    services: Services, built: Built, failed: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = put(services.blobs, built), put(services.blobs, failed)
    started, go_on = threading.Event(), threading.Event()
    computed: list[str] = []
    compute = services.analyses._summarize

    def slowly(content: str) -> Summary:
        computed.append(content)
        if content == first:
            started.set()
            assert go_on.wait(30)
        return compute(content)

    monkeypatch.setattr(services.analyses, "_summarize", slowly)
    threads = [threading.Thread(target=services.analyses.summary, args=(first,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert started.wait(30)
    assert services.analyses.summary(second).rows
    go_on.set()
    for thread in threads:
        thread.join()
    assert sorted(computed) == sorted([first, second])


def test_request_summarizes_a_bounded_text_and_a_worker_any(
    services: Services, client: FlaskClient, built: Built, stored: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyses, "REQUEST_BYTES", services.blobs.open(built.manifest.content).text_size - 1)
    assert client.get(f"/t/{stored}").status_code == 200
    assert services.analyses.summary_on_request(built.manifest.content) is None
    assert services.analyses.summary(built.manifest.content).rows
    assert services.analyses.summary_on_request(built.manifest.content)
