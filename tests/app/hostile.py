"""A trace that tries to leave the elements that it is shown in."""

from __future__ import annotations

from dataclasses import replace

from pipelines.trace import Diagnostic, digest
from tests.app.helpers import Built

MARKUP = b"</script><script>alert(1)</script>\0<!--<script>\r\n\xff\xfe"
HOSTILE = MARKUP + b"x" * 300_000 + b"\n\"'&`</style></noscript>"


def hostile(built: Built) -> Built:
    """A trace whose names, messages and texts try to leave the elements that they stand in."""
    words = HOSTILE[:60].decode(errors="replace")
    stage = built.manifest.stages[0]
    first = stage.passes[0].model_copy(update={"name": words, "argument": words, "text": digest(HOSTILE)})
    said = Diagnostic(severity="error", message=words, file=words, line=1, column=1)
    kernel = built.manifest.kernel.model_copy(update={"name": words, "file": words, "source": digest(HOSTILE[:2000])})
    stages = (stage.model_copy(update={"passes": (first, *stage.passes[1:])}),)
    update = {"stages": stages, "diagnostics": (said,), "kernel": kernel, "options": {words: words}}
    blobs = built.blobs | {digest(HOSTILE): HOSTILE, digest(HOSTILE[:2000]): HOSTILE[:2000]}
    return replace(built, manifest=built.manifest.model_copy(update=update), blobs=blobs)
