"""What is learnt of a kernel's parameters while its body is walked."""

from __future__ import annotations

import ast

from pipelines.kernels import names
from pipelines.kernels.flow import Facts, Usage, Value, bits
from pipelines.kernels.syntax import File

MAX_PARAMETERS = 1000
MAX_ALTERNATIVES = 8

TYPE_READ = "its element type is read"


class Learner:
    """One function's parameters and variables, and the facts so far."""

    def __init__(self, file: File, function: ast.FunctionDef) -> None:
        written = function.args
        listed = [*written.posonlyargs, *written.args, *written.kwonlyargs][:MAX_PARAMETERS]
        self.file, self.function = file, function
        self.usage = Usage(tuple(item.arg for item in listed), {item.arg: Facts() for item in listed})
        # Facts by position, as the masks count.
        self.facts = [self.usage.facts[item.arg] for item in listed]
        constants = {i.arg for i in listed if i.annotation is not None and "constexpr" in ast.dump(i.annotation)}
        self.constant = [item.arg in constants for item in listed]
        self.variables: dict[str, Value] = {}
        for index, name in enumerate(self.usage.names):
            bit = 1 << index
            self.variables[name] = Value(exact=bit, address=0 if self.constant[index] else bit, mentions=bit)

    def chosen(self, value: Value) -> int:
        """Return which of the parameters that were added up to an address is the pointer.

        Several that are named as pointers are one address's alternatives: nobody adds pointers up.
        """
        candidates = [i for i in bits(value.address) if not self.constant[i]]
        named = [i for i in candidates if names.has(names.POINTER, self.usage.names[i])]
        free = [i for i in candidates if not self.facts[i].integer]
        letters = [i for i in free if self.usage.names[i].lower() in names.TENSORS]
        best = (named or letters)[:MAX_ALTERNATIVES] or (free or candidates)[:1]
        return sum(1 << i for i in best)

    def point(self, value: Value, why: str) -> int:
        """Learn that an address is one, and return whose it is."""
        chosen = self.chosen(value)
        for index in bits(chosen):
            facts = self.facts[index]
            facts.pointer = why if facts.pointer in ("", TYPE_READ) else facts.pointer
        return chosen

    def count(self, mask: int, why: str) -> None:
        """Learn that parameters are whole numbers."""
        for index in bits(mask):
            self.facts[index].integer = self.facts[index].integer or why

    def need_integers(self, mask: int, why: str) -> None:
        """Learn that the elements of pointers are whole numbers."""
        for index in bits(mask):
            self.facts[index].integers = self.facts[index].integers or why

    def need_single(self, mask: int, why: str) -> None:
        """Learn that the elements of pointers are fp32."""
        for index in bits(mask):
            self.facts[index].single = self.facts[index].single or why

    def items(self, exact: int, count: int) -> None:
        """Learn that parameters are tuples of so many items at least."""
        for index in bits(exact):
            facts = self.facts[index]
            facts.items = max(facts.items or 0, min(count, 64))

    def meet(self, one: Value, other: Value, *, counts: bool = True) -> None:
        """Learn what a scalar is from what it is compared or computed with."""
        for index in bits(one.exact):
            facts = self.facts[index]
            if other.index and not other.element:
                facts.integer = facts.integer or ("counted with" if counts else "")
            elif (other.element or other.number) and not other.index:
                facts.number = facts.number or "computed with loaded values"
