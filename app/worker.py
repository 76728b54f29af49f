"""The compile worker's process: one warm compiler, jobs from the queue in two threads, and the sweep after the dead."""

from __future__ import annotations

import logging
import signal
import threading
import time
from types import FrameType

from sqlalchemy.exc import SQLAlchemyError

from app import leftovers, workers
from app.config import Settings
from app.processes import die_with_parent, owner_only
from app.runner import Runner
from app.services import Services
from pipelines.sandbox import SandboxUnavailable
from pipelines.triton_path.compile import Compiler

log = logging.getLogger(__name__)

THREADS = 2
GRACE_SECONDS = 5.0
SWEEP_SECONDS = 5.0
TIDY_SECONDS = 600.0

REFUSED = 3
"""Exit code where this machine cannot confine code; starting again would not help."""


class Worker:
    """A worker from start to stop; ``stop`` may be called from a signal handler."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stop = threading.Event()

    def stop(self, _signum: int = 0, _frame: FrameType | None = None) -> None:
        """End the worker soon."""
        self._stop.set()

    def run(self) -> int:
        """Work until stopped; return the exit code."""
        die_with_parent()
        with owner_only():
            return self._run()

    def _run(self) -> int:
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, self.stop)
        services = Services.open(self._settings)
        with services.database.write() as session:
            worker = workers.register(session, "compile")
        compiler = Compiler(self._settings.sandbox, trust_code=self._settings.trust_code)
        try:
            return self._work(services, compiler, worker)
        finally:
            compiler.close()
            with services.database.write() as session:
                workers.retire(session, worker)
            services.close()

    def _work(self, services: Services, compiler: Compiler, worker: str) -> int:
        try:
            compiler.start()
        except SandboxUnavailable as error:
            log.error("cannot compile here: %s", error)
            with services.database.write() as session:
                workers.report(session, worker, "refused", message=str(error))
            # Stays, so that the pages say why; a restart would end the same way.
            self._stop.wait()
            return REFUSED
        with services.database.write() as session:
            workers.report(session, worker, "ready", facts=workers.facts_of(compiler))
        runner = Runner(services, compiler, worker)
        log.info("ready to compile")
        while not self._stop.is_set():
            consumer = services.queue.consumer(runner.run, threads=THREADS)
            consumer.start()
            for signum in (signal.SIGTERM, signal.SIGINT):
                signal.signal(signum, self.stop)  # the consumer set its own
            self._watch(services, worker, runner)
            consumer.stop()
            services.queue.close()
        runner.stop(GRACE_SECONDS)
        return 0

    def _watch(self, services: Services, worker: str, runner: Runner) -> None:
        """Beat and sweep until stopped, or until the queue's file has to be opened again."""
        lost_after = 0.0
        swept = -SWEEP_SECONDS
        tidied = -TIDY_SECONDS
        while not self._stop.is_set() and services.queue.is_sound():
            try:
                with services.database.write() as session:
                    workers.beat(session, worker)
                    due = time.monotonic() - swept >= SWEEP_SECONDS
                    send = workers.sweep(session, lost_after=lost_after) if due else []
                for trace_id in [*send, *(runner.put_back_lost() if due else [])]:
                    services.queue.send(trace_id)
                if due:
                    swept, lost_after = time.monotonic(), workers.LOST_MESSAGE_SECONDS
                if time.monotonic() - tidied >= TIDY_SECONDS:
                    tidied = time.monotonic()
                    leftovers.remove(services)
            except (SQLAlchemyError, OSError):
                log.exception("the sweep failed")
            self._stop.wait(workers.HEARTBEAT_SECONDS)
