"""Cold start, and many requests for what is stored."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from statistics import quantiles

from bench.report import Row, Section
from bench.server import ROOT, Server, serve, unique, until_answers

REQUESTS = 1000
CONNECTIONS = 4

IDLE_S = 60.0
MAX_PROGRESS_MS = 100.0

PROGRESS_METHOD = """From the request that submits softmax for sm_90, a new source, until its stream of events has said
so; before the second one the server was left alone for a minute."""
COLD_METHOD = """`loupe serve` with an empty home, from the start of its process: the database is made, the zygote
warmed, and softmax for sm_90 submitted as soon as the port answers."""
LOAD_METHOD = f"""{REQUESTS:,} requests over {CONNECTIONS} kept-alive connections from one client on the same machine,
uncompressed and without validators, for matmul on sm_90."""


def cold_section() -> Section:
    """From nothing running and an empty home to the first trace."""
    source = (ROOT / "examples/softmax.py").read_text()
    with serve(wait=False) as server:
        until_answers(server)
        answers = time.perf_counter() - server.started
        trace = server.submit(source, "sm_90")
        server.wait(trace, "passes-ready")
        server.get(f"/t/{trace}")
        page = time.perf_counter() - server.started
        server.wait(trace, "done")
        whole = time.perf_counter() - server.started
    return Section(
        "Cold start",
        COLD_METHOD,
        [
            Row("server answers", answers, " s"),
            Row("first trace page, all passes and PTX", page, " s"),
            Row("first whole trace, SASS too", whole, " s"),
        ],
    )


def progress_section(server: Server) -> Section:
    """How soon a follower of a submission is told that it runs, at once and after an idle minute."""
    rows = []
    for name, pause in (("warm", 0.0), ("after an idle minute", IDLE_S)):
        time.sleep(pause)
        start = time.perf_counter()
        trace = server.submit(unique((ROOT / "examples/softmax.py").read_text(), f"progress, {name}"), "sm_90")
        server.wait(trace, "state", data={"status": "running"})
        rows.append(Row(f"told that it runs, {name}", 1000 * (time.perf_counter() - start), " ms", MAX_PROGRESS_MS))
        server.wait(trace, "stage")
        rows.append(Row(f"told its first stage, {name}", 1000 * (time.perf_counter() - start), " ms"))
        server.wait(trace, "done")
    return Section("Progress", PROGRESS_METHOD, rows)


def load_section(server: Server, trace: str) -> Section:
    """Requests for a stored trace's page and its manifest."""
    rows = []
    for name, path in (("page", f"/t/{trace}"), ("manifest", f"/api/v1/traces/{trace}")):
        seconds, times = hammer(server, path)
        rows.append(Row(f"{name}, requests a second", REQUESTS / seconds, "/s"))
        rows.append(Row(f"{name}, 95th percentile", 1000 * quantiles(times, n=20)[-1], " ms"))
    return Section(
        "Requests for what is stored",
        LOAD_METHOD,
        rows,
    )


def hammer(server: Server, path: str) -> tuple[float, list[float]]:
    """Return the seconds that all requests took together, and each one's."""

    def requests(count: int) -> list[float]:
        connection = server.connect()
        times = []
        for _ in range(count):
            start = time.perf_counter()
            server.get(path, connection)
            times.append(time.perf_counter() - start)
        connection.close()
        return times

    requests(CONNECTIONS)
    start = time.perf_counter()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        parts = list(pool.map(requests, [REQUESTS // CONNECTIONS] * CONNECTIONS))
    return time.perf_counter() - start, [each for part in parts for each in part]
