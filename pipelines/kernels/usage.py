"""How a kernel uses its parameters: an abstract interpretation of its syntax tree that knows no types.

Variables hold what they may carry of the parameters, joined over all their assignments, so that loops and branches
need no order. The body is walked until nothing new is learnt, at most ``MAX_ROUNDS`` times.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from pipelines.kernels.callsites import Calls
from pipelines.kernels.flow import NOTHING, Usage, Value
from pipelines.kernels.syntax import File

MAX_ROUNDS = 4
MAX_DEPTH = 6
MAX_EXPRESSIONS = 1_000_000
"""How many expressions are evaluated for all kernels together, some seconds; what comes after tells nothing."""


class Reader:
    """Reads the functions of a file and its package; each is read once, and ``left`` bounds the work."""

    def __init__(self) -> None:
        self._known: dict[ast.FunctionDef, Usage | None] = {}
        self.left = MAX_EXPRESSIONS

    def read(self, file: File, function: ast.FunctionDef, depth: int = 0) -> Usage:
        """Return how a function uses its parameters, through the helpers it calls."""
        known = self._known.get(function)
        if known is not None:
            return known
        walk = _Walk(self, file, function, depth)
        if function in self._known or depth > MAX_DEPTH:  # it calls itself, or too deeply to follow
            return walk.usage
        self._known[function] = None
        walk.run()
        self._known[function] = walk.usage
        return walk.usage


class _Walk(Calls):
    """One function."""

    def __init__(self, reader: Reader, file: File, function: ast.FunctionDef, depth: int) -> None:
        super().__init__(file, function)
        self.reader, self.depth, self.loops = reader, depth, 0

    def usage_of(self, found: tuple[File, ast.FunctionDef]) -> Usage:
        """Return how a helper uses its parameters."""
        return self.reader.read(*found, self.depth + 1)

    def value(self, node: ast.expr | None) -> Value:
        """Return what an expression carries, nothing once too many were evaluated."""
        if self.reader.left <= 0:
            return NOTHING
        self.reader.left -= 1
        return super().value(node)

    def run(self) -> None:
        """Walk the body until the variables no longer change."""
        for round_ in range(MAX_ROUNDS):
            before = dict(self.variables)
            self.usage.pairs.clear()
            self.body(self.function.body)
            if round_ and before == self.variables:  # what is learnt of a parameter may matter before it is learnt
                break

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Walk statements; those that tell nothing are passed over."""
        for statement in statements:
            walk = self._WALK.get(type(statement))
            if walk is not None:
                walk(self, statement)

    def assignment(self, node: ast.Assign) -> None:
        """Let every target hold the value."""
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, node.value, value)

    def annotated(self, node: ast.AnnAssign) -> None:
        """Let the target hold the value, where there is one."""
        if node.value:
            self.assign(node.target, node.value, self.value(node.value))

    def augmented(self, node: ast.AugAssign) -> None:
        """Let the target hold what the operation gives."""
        target = self.value(node.target) if isinstance(node.target, ast.Name) else NOTHING
        self.assign(node.target, None, self.combine(node.op, target, self.value(node.value)))

    def counted(self, node: ast.For) -> None:
        """Walk a loop over a range."""
        value = self.value(node.iter)
        self.assign(node.target, None, Value(mentions=value.mentions, index=True))
        self.loop(node.body, node.orelse)

    def conditional(self, node: ast.While) -> None:
        """Walk a loop with a condition."""
        self.test(node.test)
        self.loop(node.body, node.orelse)

    def branch(self, node: ast.If) -> None:
        """Walk both branches."""
        self.test(node.test)
        self.body(node.body)
        self.body(node.orelse)

    def within(self, node: ast.With) -> None:
        """Walk what stands in a context."""
        for item in node.items:
            self.value(item.context_expr)
        self.body(node.body)

    def give(self, node: ast.Return) -> None:
        """Keep what is returned; the items of a tuple are not told apart."""
        if node.value is not None:
            self.usage.returned |= self.value(node.value)

    def loop(self, body: Sequence[ast.stmt], after: Sequence[ast.stmt]) -> None:
        """Walk a loop's body, and what comes after its last round."""
        self.loops += 1
        self.body(body)
        self.loops -= 1
        self.body(after)

    def assign(self, target: ast.expr, source: ast.expr | None, value: Value) -> None:
        """Let a variable hold a value, too; ``source`` is the expression where it is written out."""
        if isinstance(target, ast.Tuple | ast.List):
            written = source.elts if isinstance(source, ast.Tuple | ast.List) else []
            for at, item in enumerate(target.elts):
                if len(written) == len(target.elts):
                    self.assign(item, written[at], self.value(written[at]))
                else:
                    self.assign(item, None, value)
        elif isinstance(target, ast.Name):
            before = self.variables.get(target.id, NOTHING)
            if self.loops and before.element and value.wide and not before.wide:
                # A variable keeps its type around a loop: what it is loaded as at first must be what it becomes.
                self.need_single(before.element, "kept in fp32 around a loop")
            self.variables[target.id] = before | value

    _WALK: ClassVar[dict[type, Callable[[Any, Any], object]]] = {
        ast.Assign: assignment,
        ast.AnnAssign: annotated,
        ast.AugAssign: augmented,
        ast.For: counted,
        ast.While: conditional,
        ast.If: branch,
        ast.With: within,
        ast.Return: give,
        ast.Assert: lambda self, node: self.test(node.test),
        ast.Expr: lambda self, node: self.value(node.value),
    }
