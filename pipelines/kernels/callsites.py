"""What calls tell of a kernel's parameters: Triton's own by tables, helpers by their bodies."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from pipelines.kernels import calls
from pipelines.kernels.expressions import Expressions, elements
from pipelines.kernels.flow import INDEX, NOTHING, TOLD, WIDE, Usage, Value, bits
from pipelines.kernels.syntax import File, dotted

MAX_NODES = 64  # of an argument, among which its dtype is looked for: names in names are not followed for ever


class Calls(Expressions):
    """Evaluates calls."""

    def usage_of(self, found: tuple[File, ast.FunctionDef]) -> Usage:
        """Return how a helper uses its parameters."""
        raise NotImplementedError

    def call(self, node: ast.Call) -> Value:
        """Return what a call gives, and learn from what it is passed."""
        full = dotted(node.func)
        name = full.rpartition(".")[2] or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
        receiver = self.receiver(node.func)
        if isinstance(node.func, ast.Name) and node.func.id in self.variables:
            for index in bits(self.variables[node.func.id].exact):
                self.facts[index].called = len(node.args)
        if receiver is not None and name in calls.DESCRIPTOR_METHODS and receiver.exact:
            return self.described(name, node, receiver)
        helper = self.file.function(full) if full and receiver is None else None
        if helper:
            return self.helper(helper, node, full)
        arguments = [self.value(item) for item in node.args]
        keywords = {item.arg or "": self.value(item.value) for item in node.keywords}
        if receiver is not None:
            arguments.insert(0, receiver)
        self.dtypes(name, node, arguments, keywords, method=receiver is not None)
        if name in calls.MEMORY:
            return self.memory(name, node, arguments, keywords)
        return self.builtin(name, node, arguments, keywords)

    def receiver(self, function: ast.expr) -> Value | None:
        """Return what a method is called on, None where a module's function is called."""
        if not isinstance(function, ast.Attribute):
            return None
        name = dotted(function.value)
        first = name.partition(".")[0]
        if name and first not in self.variables:
            return None
        return self.value(function.value)

    def builtin(self, name: str, node: ast.Call, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """Return what a function of Triton's language gives, by the table that it is in."""
        every = [*arguments, *keywords.values()]
        mentions = 0
        for value in every:
            mentions |= value.mentions
        if name in calls.COUNTED or name in calls.RANDOM:
            self.counts(name, node, every)
        if name in calls.FILLED:
            self.block(elements(node.args[:1] or [k.value for k in node.keywords if k.arg == "shape"]))
            said = _said([*node.args, *(k.value for k in node.keywords)])
            return Value(mentions=mentions, wide="float32" in said, number="float" in said)
        if name == "len":
            self.items(arguments[0].exact if arguments else 0, 2)
            return INDEX
        if name in calls.INDICES:
            return Value(mentions=mentions, index=True)
        if name in calls.SINGLE or name in calls.RANDOM:
            for value in every if name in calls.SINGLE else ():
                self.need_single(value.element, f"{name} takes fp32")
                self.meet(value, WIDE)
            return Value(mentions=mentions, wide=True, number=True)
        if name in calls.CASTS:
            return self.cast(node, arguments, mentions)
        return self.computed(name, arguments, mentions)

    def counts(self, name: str, node: ast.Call, every: list[Value]) -> None:
        """Learn from what a range, a block of indices or a generator of numbers is made of."""
        why = "a seed or what is counted with it" if name in calls.RANDOM else "bounds a range"
        for value in every:
            self.count(value.mentions, why)
            self.need_integers(value.element, why)
        if name == "arange":
            self.block(node.args[-1:])
        elif name == "static_range":
            for value in every:
                for index in bits(value.mentions):
                    self.facts[index].unrolls = True

    def computed(self, name: str, arguments: list[Value], mentions: int) -> Value:
        """Return what arithmetic on blocks gives."""
        if name == "dot" and len(arguments) > 1:
            self.usage.pairs.append((arguments[0].element, arguments[1].element))
        joined = NOTHING
        for value in arguments[1:] if name == "where" else arguments:
            self.meet(joined, value)
            joined |= value
        if name in calls.WIDENED:
            return Value(mentions=mentions, index=joined.index, wide=not joined.index, number=not joined.index)
        return replace(joined.part(), mentions=mentions) if name in calls.ALIKE else Value(mentions=mentions)

    def cast(self, node: ast.Call, arguments: list[Value], mentions: int) -> Value:
        """Return what a cast keeps: an address stays one, a number counted with stays so."""
        value = arguments[0] if arguments else NOTHING
        said = _said([*node.args[0 if len(arguments) > len(node.args) else 1 :], *(k.value for k in node.keywords)])
        if "pointer_type" in said:
            for index in bits(value.element):
                self.facts[index].addresses = True
            return Value(address=value.address, mentions=mentions)
        if "int32" in said and any(item.arg == "bitcast" for item in node.keywords):
            self.need_single(value.element, "its 32 bits are used")
        wide = "float32" in said
        return Value(address=value.address, mentions=mentions, index=value.index and not wide, wide=wide, number=wide)

    def dtypes(
        self, name: str, node: ast.Call, arguments: list[Value], keywords: dict[str, Value], *, method: bool
    ) -> None:
        """Learn which parameters are dtypes: those that values are cast to, and blocks are filled as."""
        masks = [value.exact for key, value in keywords.items() if key in calls.DTYPE_KEYWORDS]
        if name in calls.CASTS and len(arguments) > 1:
            masks.append(arguments[1].exact)
        elif name in calls.FILLED and not method and len(node.args) > 1:
            masks.append(arguments[-1].exact)
        for mask in masks:
            for index in bits(mask):
                self.facts[index].dtype = "a value is cast to it" if name in calls.CASTS else f"the dtype of {name}"
                self.facts[index].accumulates |= name in calls.FILLED or name.startswith("dot")

    def memory(self, name: str, node: ast.Call, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """Learn which parameter an address is of, and return what is loaded."""
        address = arguments[0] if arguments else next((keywords[k] for k in calls.ADDRESSES if k in keywords), NOTHING)
        chosen = self.point(address, calls.MEMORY[name])
        self.count(address.mentions & ~chosen, "part of an address")
        self.need_integers(address.element, "used as offsets")
        for index in bits(address.element & address.address):
            self.facts[index].addresses = True
        if name in calls.DESCRIBED:
            for value in [*arguments[1:], *keywords.values()]:
                self.count(value.mentions & ~chosen, "shape or stride of a block")
            last = [k.value for k in node.keywords if k.arg == "block_shape"] or node.args[3:4]
            self.block(elements(last))
            return Value(address=chosen, mentions=address.mentions)
        self.count(keywords.get("mask", NOTHING).mentions & ~chosen, "part of a mask")
        if name in calls.WORDS:
            for index in bits(chosen):
                self.facts[index].words = calls.MEMORY[name]
        elif name in calls.HALFLESS:
            self.need_single(chosen, f"{name} takes no halves")
        elif name == "store" and len(arguments) > 1:
            stored = arguments[1]
            if stored.index and not stored.element and not stored.number and not stored.wide:
                self.need_integers(chosen, "indices are stored to it")
        return Value(element=chosen)

    def described(self, name: str, node: ast.Call, receiver: Value) -> Value:
        """Read ``descriptor.load([m, n])``; a stored value comes after the offsets."""
        offsets = next((item for item in node.args if isinstance(item, ast.List | ast.Tuple)), None)
        offsets = offsets or next((k.value for k in node.keywords if isinstance(k.value, ast.List | ast.Tuple)), None)
        masks = tuple(self.value(item).mentions for item in offsets.elts) if offsets else ()
        for item in node.args:
            self.value(item)
        for index in bits(receiver.exact):
            facts = self.facts[index]
            if masks or facts.descriptor is None:
                facts.descriptor = masks or (0,)
        for mask in masks:
            self.count(mask & ~receiver.exact, "part of an offset")
        return Value(element=receiver.exact) if name in ("load", "gather") else NOTHING

    def helper(self, found: tuple[File, ast.FunctionDef], node: ast.Call, name: str) -> Value:
        """Take over what a helper does with what it is passed."""
        used = self.usage_of(found)
        bound: dict[str, Value] = {}
        for parameter, item in zip(used.names, node.args, strict=False):
            bound[parameter] = self.value(item)
        bound |= {item.arg: self.value(item.value) for item in node.keywords if item.arg in used.facts}
        self.usage.dimensions = max(self.usage.dimensions, used.dimensions)
        mentions = 0
        for parameter, value in bound.items():
            mentions |= value.mentions
            self.take(used, parameter, bound, name)
        returned = used.returned
        result = Value(mentions=mentions, index=returned.index, wide=returned.wide, number=returned.number)
        for index in bits(returned.element | returned.exact):
            passed = bound.get(used.names[index], NOTHING)
            direct = returned.exact >> index & 1
            result |= Value(element=passed.element) if direct else Value(element=self.chosen(passed))
        for index in bits(returned.address):
            result |= Value(address=bound.get(used.names[index], NOTHING).address)
        return result

    def take(self, used: Usage, parameter: str, bound: dict[str, Value], name: str) -> None:
        """Take over what a helper does with one argument."""
        told, value = used.facts[parameter], bound[parameter]
        if told.pointer:
            chosen = self.point(value, f"{name}() has it {told.pointer}")
            for index in bits(chosen):
                mine = self.facts[index]
                mine.integers, mine.single = mine.integers or told.integers, mine.single or told.single
                mine.words, mine.addresses = mine.words or told.words, mine.addresses or told.addresses
        if told.integer:
            self.need_integers(value.element, told.integer)
        if told.single:
            self.need_single(value.element, told.single)
        for index in bits(value.exact):
            mine = self.facts[index]
            for name in TOLD:
                setattr(mine, name, getattr(mine, name) or getattr(told, name))
            mine.block, mine.flag = max(mine.block, told.block), mine.flag or told.flag
            mine.called = told.called if mine.called is None else mine.called
            mine.items = told.items if mine.items is None else mine.items
            mine.accumulates |= told.accumulates
            mine.unrolls |= told.unrolls
            mine.strings |= told.strings
            mine.numbers |= told.numbers
            if told.descriptor is not None and mine.descriptor is None:
                mine.descriptor = tuple(
                    sum(1 << i for i in {i for b in bits(mask) for i in bits(bound.get(used.names[b], NOTHING).exact)})
                    for mask in told.descriptor
                )


def _said(nodes: Sequence[ast.expr]) -> str:
    """Return the names and texts in expressions, the outer ones first, ``MAX_NODES`` of their nodes at most."""
    waiting, said = deque[ast.AST](nodes), []
    for _ in range(MAX_NODES):
        if not waiting:
            break
        node = waiting.popleft()
        word = getattr(node, "id", getattr(node, "attr", getattr(node, "value", "")))
        said.append(word if isinstance(word, str) else "")
        waiting.extend(islice(ast.iter_child_nodes(node), MAX_NODES))
    return " ".join(said)
