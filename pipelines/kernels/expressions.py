"""What expressions carry of a kernel's parameters, and what operations tell of them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from pipelines.kernels.flow import NOTHING, Value, bits
from pipelines.kernels.learn import TYPE_READ, Learner
from pipelines.kernels.syntax import dotted

_WHOLE = (ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)
_DESCRIBING = frozenset(["shape", "strides", "block_shape", "dtype", "type", "block_type", "layout"])


class Expressions(Learner):
    """Evaluates expressions to what they carry; calls are for those that inherit from this."""

    def value(self, node: ast.expr | None) -> Value:
        """Return what an expression carries."""
        read = self._READ.get(type(node))
        return read(self, node) if read is not None else NOTHING

    def call(self, node: ast.Call) -> Value:
        """Return what a call gives."""
        raise NotImplementedError

    def joined(self, nodes: Sequence[ast.expr]) -> Value:
        """Return what any of several expressions may carry."""
        joined = NOTHING
        for node in nodes:
            joined |= self.value(node)
        return joined

    def choice(self, node: ast.IfExp) -> Value:
        """Return what a conditional expression carries."""
        self.test(node.test)
        return self.value(node.body) | self.value(node.orelse)

    def logic(self, node: ast.BoolOp) -> Value:
        """Read the sides of ``and`` and ``or``."""
        self.test(node)
        return NOTHING

    def combine(self, op: ast.operator, left: Value, right: Value) -> Value:
        """Return what an arithmetic operation carries of its sides."""
        if isinstance(op, _WHOLE):
            reason = "divided whole" if isinstance(op, ast.FloorDiv | ast.Mod) else "its bits are used"
            self.count(left.exact | right.exact, reason)
            self.need_integers(left.element | right.element, reason)
        elif isinstance(op, ast.Div):
            for index in bits(left.exact | right.exact):
                self.facts[index].number = self.facts[index].number or "divided"
        offset = isinstance(op, ast.Add | ast.Sub)  # what is added to a count may be an address
        self.meet(left, right, counts=not offset)
        self.meet(right, left, counts=not offset)
        joined = left | right
        wide = joined.wide or any(self.facts[i].is_number for i in bits(joined.exact))
        return Value(
            address=joined.address if offset else 0,
            element=0 if wide else joined.element,
            mentions=joined.mentions,
            index=joined.index and not joined.number,
            wide=wide and not joined.index,
            number=joined.number or wide,
        )

    def subscript(self, node: ast.Subscript) -> Value:
        """Return what an item or a reshaped block carries."""
        value = self.value(node.value)
        inner = node.slice
        if isinstance(inner, ast.Constant) and isinstance(inner.value, int):
            self.items(value.exact, inner.value + 1)
            return value.part()
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        shaped = any(isinstance(i, ast.Slice) or (isinstance(i, ast.Constant) and i.value is None) for i in parts)
        if shaped:
            self.usage.dimensions = max(self.usage.dimensions, len(parts))
        else:
            self.value(inner)
            self.items(value.exact, 1)
        return value.part()

    def attribute(self, node: ast.Attribute) -> Value:
        """Return what an attribute carries: a block's other view, or nothing but where it is from."""
        name = dotted(node)
        if node.attr == "element_ty":
            base = self.variables.get(name.partition(".")[0], NOTHING)
            self.point(base, TYPE_READ)
            return NOTHING
        value = self.value(node.value)
        if node.attr == "T":
            return value
        if node.attr in _DESCRIBING:
            return Value(mentions=value.mentions)
        return NOTHING if name.startswith(("tl.", "triton.")) else value

    def test(self, node: ast.expr) -> None:
        """Read a condition: what is tested by itself is a flag."""
        waiting = [node]
        while waiting:
            item = waiting.pop()
            if isinstance(item, ast.BoolOp):
                waiting += reversed(item.values)
            elif isinstance(item, ast.UnaryOp) and isinstance(item.op, ast.Not):
                waiting.append(item.operand)
            else:
                value = self.value(item)
                if isinstance(item, ast.Name):
                    for index in bits(value.exact):
                        self.facts[index].flag = True

    def compare(self, node: ast.Compare) -> Value:
        """Learn from a comparison: from literals, and from what scalars and elements are compared with."""
        sides = [(side, self.value(side)) for side in (node.left, *node.comparators)]
        for op, pair in zip(node.ops, pairwise(sides), strict=True):
            for (_, one), (side, other) in (pair, pair[::-1]):
                self.compare_literal(one.exact, side, op)
                if isinstance(op, ast.Is | ast.IsNot):
                    continue
                self.meet(one, other)
                if other.index and not one.index:
                    self.need_integers(one.element, "compared with offsets")
        mentions = 0
        for _, value in sides:
            mentions |= value.mentions
        return Value(mentions=mentions, index=any(value.index for _, value in sides))

    def compare_literal(self, exact: int, literal: ast.expr, op: ast.cmpop) -> None:
        """Learn which literals a parameter is compared with."""
        items = literal.elts if isinstance(literal, ast.Tuple | ast.List | ast.Set) else [literal]
        for index in bits(exact):
            facts = self.facts[index]
            for item in items[:32]:
                if not isinstance(item, ast.Constant):
                    continue
                if item.value is None:
                    facts.optional = facts.optional or "compared with None"
                elif isinstance(item.value, str):
                    facts.strings[item.value] = None
                elif type(item.value) is int and isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn):
                    facts.numbers[item.value] = None

    def block(self, sizes: Sequence[ast.expr]) -> None:
        """Learn that parameters are a block's sides; a side computed of several has to be small."""
        self.usage.dimensions = max(self.usage.dimensions, len(sizes))
        for item in sizes:
            value = self.value(item)
            for index in bits(value.mentions):
                facts = self.facts[index]
                facts.block = max(facts.block, len(sizes))
                facts.product |= not value.exact
                facts.integer = facts.integer or "the size of a block"

    _READ: ClassVar[dict[type, Callable[[Any, Any], Value]]] = {
        ast.Name: lambda self, node: self.variables.get(node.id, NOTHING),
        ast.Constant: lambda _, node: Value(number=True) if isinstance(node.value, float) else NOTHING,
        ast.BinOp: lambda self, node: self.combine(node.op, self.value(node.left), self.value(node.right)),
        ast.UnaryOp: lambda self, node: self.value(node.operand),
        ast.Tuple: lambda self, node: self.joined(node.elts),
        ast.List: lambda self, node: self.joined(node.elts),
        ast.Call: lambda self, node: self.call(node),
        ast.Compare: compare,
        ast.BoolOp: logic,
        ast.IfExp: choice,
        ast.Subscript: subscript,
        ast.Attribute: attribute,
    }


def elements(nodes: Sequence[ast.expr]) -> list[ast.expr]:
    """Return the items of a shape that is written out."""
    found: list[ast.expr] = []
    for node in nodes:
        found += node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    return found
