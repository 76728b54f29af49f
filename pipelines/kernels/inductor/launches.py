"""From Inductor's declared kernels to launches. Runs inside the confined child."""

from __future__ import annotations

from typing import Any

from pipelines.kernels.capture import Launch
from pipelines.kernels.inductor import blocks, declared
from pipelines.kernels.inductor.declared import Declared
from pipelines.kernels.inductor.hints import AttrsDescriptor

# Arguments that the autotuner fills besides blocks.
_DEFAULTS = {"RSPLIT": 1, "NUM_STAGES": 1}
_META_OPTIONS = ("enable_fp_fusion", "waves_per_eu", "matrix_instr_nonkdim")
_LAUNCH = ("num_warps", "num_stages")


class InductorError(ValueError):
    """A kernel whose decorator does not say what is needed; the message says what is missing."""


def declared_in(namespace: dict[str, Any]) -> dict[str, Declared]:
    """Return the kernels that carry one of Inductor's decorators, by variable, in order."""
    return {name: value for name, value in namespace.items() if isinstance(value, Declared)}


def launch_of(kernel: Declared) -> Launch:
    """Return the launch that a decorator describes; what it leaves to the autotuner is ``guessed``.

    Raises:
        InductorError: there is no signature, or no value for a constexpr.
    """
    function, meta = kernel.function, kernel.meta
    names = list(function.arg_names)
    written = _by_name(meta.get("signature"), names)
    constants = _by_name(meta.get("constants", {}), names)
    options, config, chosen = _config(kernel)
    signature: dict[str, Any] = {}
    values: dict[tuple[int, ...], Any] = {}
    for index, (name, parameter) in enumerate(zip(names, function.params, strict=True)):
        kind = written.get(name)
        if name in constants or name in config or kind in (None, "constexpr") or parameter.is_constexpr:
            signature[name] = "constexpr"
            values[(index,)] = _constant(function, parameter, constants, config)
        else:
            signature[name] = kind
    attributes = {path: item for path, item in _attributes(meta).items() if signature[names[path[0]]] != "constexpr"}
    used = {name for name in chosen if name in names and name not in constants}
    tuned = {name: value for name, value in config.items() if name in names} or None
    guessed = dict.fromkeys(sorted(used), "a first choice")
    return Launch(function, signature, values, attributes, options, tuned, guessed=guessed)


def _constant(function: Any, parameter: Any, constants: dict[str, Any], config: dict[str, Any]) -> Any:
    name = parameter.name
    for given in (constants, config, _DEFAULTS):
        if name in given:
            return given[name]
    if parameter.has_default:
        return parameter.default
    raise InductorError(f"the decorator of {function.__name__} gives no value for {name}; write one into its configs")


def _by_name(given: Any, names: list[str]) -> dict[str, Any]:
    """Read what is keyed by name, by position, or by a path of positions, as releases differ."""
    if not isinstance(given, dict) and given is not None:
        raise InductorError("the decorator's signature is no dictionary")
    found = {}
    for key, value in (given or {}).items():
        index = key[0] if isinstance(key, tuple) else key
        name = names[index] if isinstance(index, int) else str(index)
        found[name] = value
    return found


def _attributes(meta: dict[str, Any]) -> dict[tuple[int, ...], Any]:
    for item in meta.get("configs") or ():
        if isinstance(item, AttrsDescriptor):
            return {(int(index),): [["tt.divisibility", 16]] for index in item.divisible_by_16}
        if isinstance(item, dict):
            return {tuple(path): attributes for path, attributes in item.items()}
    return {}


def _config(kernel: Declared) -> tuple[dict[str, Any], dict[str, Any], set[str]]:
    """Return options, values of constexprs, and which of both were chosen here."""
    options = {name: kernel.meta[name] for name in _META_OPTIONS if name in kernel.meta}
    given = kernel.arguments
    if kernel.kind in ("template", "foreach"):
        return {**options, **_told(given)}, {}, set()
    if kernel.kind in ("user_autotune", "fixed_config"):
        first = given["configs"][0] if kernel.kind == "user_autotune" else given["config"]
        values = dict(first.get("kwargs", {key: value for key, value in first.items() if key not in _LAUNCH}))
        return {**options, **_told(first)}, values, set()
    made = _blocks(kernel)
    return {**options, "num_warps": made.num_warps, "num_stages": 1}, made.sizes, {*made.sizes}


def _told(given: dict[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in _LAUNCH if name in given}


def _blocks(kernel: Declared) -> blocks.Blocks:
    hints = kernel.arguments.get("size_hints") or {}
    if not isinstance(hints, dict):
        axes = ("x", "r") if kernel.kind != "pointwise" else ("x", "y", "z")
        hints = dict(zip(axes, hints if kernel.kind != "pointwise" else reversed(hints), strict=False))
    sizes = {str(axis): int(size) for axis, size in hints.items()}
    if kernel.kind == "pointwise":
        return blocks.pointwise(sizes)
    if kernel.kind == "persistent_reduction":
        return blocks.persistent(sizes, declared.hint(kernel))
    return blocks.reduction(sizes, declared.hint(kernel))
