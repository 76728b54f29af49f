"""What a kernel's decorators say: autotune configs as far as they are literal, and the values that heuristics fill."""

from __future__ import annotations

import ast

from pipelines.kernels.found import FoundConfig, FoundTuning
from pipelines.kernels.syntax import CONFIGS, HEURISTICS, TUNERS, File, resolve

MAX_CONFIGS = 512
MAX_TEXT = 200

_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


def read_tuning(decorators: list[ast.expr], file: File) -> FoundTuning | None:
    """Return what the innermost ``triton.autotune`` says, None where there is none."""
    for call in reversed(decorators):
        if resolve(call, file.names) in TUNERS:
            return _tuning(call, file) if isinstance(call, ast.Call) else FoundTuning(configs=(), computed=True, key=())
    return None


def read_heuristics(decorators: list[ast.expr], file: File) -> tuple[str, ...]:
    """Return the names of the values that ``triton.heuristics`` fills, in the order in which they are asked."""
    names: list[str] = []
    for call in decorators:
        if not isinstance(call, ast.Call) or resolve(call, file.names) not in HEURISTICS:
            continue
        values = _assigned(_given(call, 0, "values"), file)
        if isinstance(values, ast.Dict):
            names += [key.value for key in values.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    return tuple(dict.fromkeys(names))


def text_of(node: ast.AST) -> str:
    """Return an expression's source text, bounded."""
    text = ast.unparse(node)
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + " ..."


def _tuning(call: ast.Call, file: File) -> FoundTuning:
    listed = _assigned(_given(call, 0, "configs"), file)
    items = listed.elts if isinstance(listed, ast.List | ast.Tuple) else []
    read = [_config(item, file) for item in items[:MAX_CONFIGS]]
    configs = tuple(config for config in read if config)
    key = _assigned(_given(call, 1, "key"), file)
    keys = key.elts if isinstance(key, ast.List | ast.Tuple) else []
    return FoundTuning(
        configs=configs,
        computed=not isinstance(listed, ast.List | ast.Tuple) or len(configs) < len(items),
        key=tuple(item.value for item in keys if isinstance(item, ast.Constant) and isinstance(item.value, str)),
    )


def _config(node: ast.expr, file: File) -> FoundConfig | None:
    """Read ``triton.Config({...}, num_warps=4)``; what is not written out is None."""
    if not isinstance(node, ast.Call) or resolve(node, file.names) not in CONFIGS:
        return None
    values = _given(node, 0, "kwargs")
    if not isinstance(values, ast.Dict):
        return None
    read: dict[str, str] = {}
    for name, value in zip(values.keys, values.values, strict=True):
        if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            return None
        read[name.value] = text_of(value)
    options = {name: text_of(value) for name, value in zip(_OPTIONS, node.args[1:], strict=False)}
    options |= {item.arg: text_of(item.value) for item in node.keywords if item.arg in _OPTIONS}
    return FoundConfig(values=read, options=options)


def _given(call: ast.Call, position: int, name: str) -> ast.expr | None:
    if len(call.args) > position:
        return call.args[position]
    return next((item.value for item in call.keywords if item.arg == name), None)


def _assigned(node: ast.expr | None, file: File) -> ast.expr | None:
    """Follow a name to the only value that the module assigns it."""
    return file.assigned.get(node.id) if isinstance(node, ast.Name) else node
