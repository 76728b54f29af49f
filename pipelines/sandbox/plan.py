"""Find what this machine confines with, by trying it in a child."""

from __future__ import annotations

import json
import os

from pipelines.sandbox import landlock, probe, procfs, seccomp
from pipelines.sandbox.bounds import MECHANISMS, Bound, ByOrdinaryUser, Unbounded
from pipelines.sandbox.execute import execute
from pipelines.sandbox.home import Home
from pipelines.sandbox.model import Confinement, Limits, SandboxUnavailable
from pipelines.sandbox.spawn import ZygoteProcess

MIN_LANDLOCK = 2
"""ABI 1 cannot move a file between directories, which compilers' caches do."""
_TRIAL = Limits(processes=4, wall_s=20)
_FORKS = 64
"""Tried by the trial; a mechanism that lets all of them happen bounds nothing."""
_REPORT_LIMIT = 1 << 16


def landlock_abi(*, trust_code: bool) -> int:
    """The Landlock ABI to confine with; 0, when code is trusted, for none.

    Raises:
        SandboxUnavailable: this kernel's is missing or too old.
    """
    found = landlock.abi()
    if found >= MIN_LANDLOCK:
        return found
    if trust_code:
        return 0
    why = f"this kernel's Landlock ABI is {found}" if found else "this kernel has no Landlock, or it is not enabled"
    raise SandboxUnavailable(
        f"Code cannot be confined: {why}. Loupe needs ABI {MIN_LANDLOCK} (Linux 5.19 with landlock among the "
        "security modules, see /sys/kernel/security/lsm). Start with --trust-code to run code unconfined, "
        "when everyone who can submit it is trusted."
    )


def filter_program(abi: int, *, trust_code: bool) -> bytes | None:
    """The seccomp filter to load; None, when code is trusted and libseccomp is missing.

    Raises:
        SandboxUnavailable: libseccomp is missing.
    """
    try:
        return seccomp.build(scopes=abi >= landlock.SCOPES_SINCE)
    except SandboxUnavailable:
        if trust_code:
            return None
        raise


def choose_bound(zygote: ZygoteProcess, home: Home, *, trust_code: bool) -> Bound:
    """The first mechanism that bounds processes here and confines in all other respects too.

    Raises:
        SandboxUnavailable: none does; the message says what was wrong with each.
    """
    reasons = []
    for name, make in MECHANISMS:
        try:
            bound = make(home.token)
        except OSError as error:
            reasons.append(f"{name}: {error}")
            continue
        bounded, failures = _try(zygote, home, bound)
        if bounded and (trust_code or not failures):
            return bound
        bound.close()
        reasons.append(f"{name}: {'; '.join(failures)}")
    if trust_code:
        return Unbounded()
    raise SandboxUnavailable(
        "Code cannot be confined. " + ". ".join(reasons) + ". Give this process a writable pids cgroup, or run it "
        "as an ordinary user, or start with --trust-code when everyone who can submit code is trusted."
    )


def _try(zygote: ZygoteProcess, home: Home, bound: Bound) -> tuple[bool, list[str]]:
    """Run the probe: whether processes are bounded, and all that does not hold."""
    with home.slot() as slot:
        request = {
            "outside": str(home.path),
            "readable": [*zygote.readable, *map(str, zygote.spec.executables)],
            "forks": _FORKS,
            "count": isinstance(bound, ByOrdinaryUser),
        }
        call = {"function": probe.FUNCTION, "request": request, "env": {}}
        try:
            outcome = execute(zygote, bound, slot, call, _TRIAL, watched=Limits(processes=10 * _FORKS, wall_s=20))
        except (SandboxUnavailable, OSError) as error:
            return False, str(error).splitlines()[:1]
        report = slot.read(probe.REPORT, _REPORT_LIMIT)
        counted = json.loads(slot.read(probe.FORKS, _REPORT_LIMIT) or b"null")
        if report is None:
            error_text = (slot.read("stderr", 2000, cut=True) or b"").decode(errors="replace")
            return False, [f"the trial ended as {outcome.kind}: {error_text}"]
    failures: list[str] = json.loads(report)
    if isinstance(bound, ByOrdinaryUser):
        bounded = counted is not None
        bound.hidden = max(0, (counted or 0) - procfs.tasks_of_user(os.geteuid()))
    else:
        bounded = outcome.kind == "processes" if counted is None else counted < _FORKS
    return bounded, failures if bounded else [*failures, "it does not bound processes"]


def describe(abi: int, program: bytes | None, bound: Bound) -> Confinement:
    """Name what is in force."""
    return Confinement(
        landlock=abi,
        scopes=abi >= landlock.SCOPES_SINCE,
        seccomp=program is not None,
        processes=bound.processes,
        memory=bound.memory,
        trusted=not abi or program is None or isinstance(bound, Unbounded),
    )
