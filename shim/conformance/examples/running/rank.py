"""What happens in a rank process: run an example step by step, and say what this rank saw."""

from __future__ import annotations
import __future__

import ast
import builtins
import contextlib
import functools
import inspect
import io
import operator
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shim.conformance.examples.adapting import as_program, begin_of, names_of, preamble_of, rewritten, variables_of
from shim.conformance.examples.border import Border
from shim.conformance.examples.comparing import Output, differs, is_handle, output_of, unwaited
from shim.conformance.examples.example import Example, Step, Wanted
from shim.conformance.examples.reading.printed_values import contains_tensor, may_be_result, shape_shown, shows
from shim.core import groups
from shim.core.callers import Caller
from shim.core.job import rendezvous
from shim.frontends.mindspore._groups.numpy_versions import take_first_error
from shim.substitution.imports import scoped_builtins
from shim.substitution.own_modules import substitute_below

_ME = Caller("shim conformance")
_kept: list[dict[str, Any]] = []  # the names of examples, until the process ends: what they serve, other ranks may need


@dataclass(frozen=True)
class StepSight:
    """What one step gave: what was seen, how that differs from what is shown, and the error it ended with.

    It is ``silent`` where it shows something under a condition only, as on one rank, and the document does not say on which.
    It has ``raised`` where it is documented to. ``unread`` is the line of a comment that may be a remark and was not compared, 0 for none.
    """

    line: int
    outputs: tuple[str, ...]
    difference: str | None = None
    error: str | None = None
    silent: bool = False
    raised: bool = False
    unread: int = 0


@dataclass(frozen=True)
class Sight:
    """What one rank saw of an example, and why its code was changed for this machine.

    With another kind of tensor than the example makes, ``crossed`` counts those that became one, and ``refusal`` says why one cannot.
    ``printed`` is all that stood on the screen.
    """

    steps: tuple[StepSight, ...]
    changes: tuple[str, ...]
    crossed: int = 0
    refusal: str = ""
    printed: str = ""

    @property
    def failures(self) -> list[StepSight]:
        """The steps that did not do as the document says."""
        return [step for step in self.steps if step.error is not None or step.difference is not None]


class _Screen(io.TextIOBase):
    """What the example shows, in place of a terminal: what it prints or displays itself, and what is written to it."""

    def __init__(self) -> None:
        self.printed: list[str] = []
        self._outputs: list[Output] = []
        self._written: list[str] = []

    def write(self, text: str) -> int:
        self._written.append(text)
        return len(text)

    def writable(self) -> bool:
        return True

    @property
    def outputs(self) -> list[Output]:
        text, self._written = "".join(self._written).rstrip("\n"), []
        self._outputs += [Output(text, text)] if text else []
        return self._outputs

    def print(
        self, *things: Any, sep: str | None = " ", end: str | None = "\n", file: Any = None, flush: bool = False
    ) -> None:
        if file is not None:
            builtins.print(*things, sep=sep, end=end, file=file, flush=flush)
            return
        text = (" " if sep is None else sep).join(map(str, things))
        self.outputs.append(output_of(text, things))

    def display(self, value: Any) -> None:
        self.outputs.append(output_of(repr(value), [value], echo=True))

    def take(self) -> list[Output]:
        taken, self._outputs = self.outputs, []
        self.printed += [output.text for output in taken if not output.echo]
        return taken


def see_example(example: Example, rank: int, substituted: bool = True, tensors: str | None = None) -> Sight:
    """Run *example* on this rank, on the frontends or (not *substituted*) on the framework itself; leave the world after it.

    The frontends get tensors of the kind *tensors*, None for those that the example makes.
    What it sets for the whole process stays: the process is a copy for this example.
    """
    take_first_error()
    screen = _Screen()
    border = None if tensors in (None, example.framework) else Border(example.framework, tensors)
    built = scoped_builtins(None if border is None else border.through) if substituted else dict(vars(builtins))
    built["print"] = screen.print
    if substituted and example.folder:
        substitute_below(Path(example.folder))
    try:
        with (
            contextlib.redirect_stdout(screen),
            as_program(example, variables_of(example, rank), built) as program,
        ):
            _kept.append(program.__dict__)
            sight = _Run(example, rank, program.__dict__, screen).carried_out()
            return sight if border is None else replace(sight, crossed=border.crossed, refusal=border.refusal)
    finally:
        if groups.is_initialized():  # the others may wait for this rank, whose process stays until they have ended
            groups.close_group(groups.world(_ME))


class _Run:
    def __init__(self, example: Example, rank: int, names: dict[str, Any], screen: _Screen) -> None:
        self.example = example
        self.rank = rank
        self.names = names
        self.screen = screen
        self.changes: list[str] = []
        self.pending: list[Output] = []  # seen, and not compared yet
        self.absent: set[str] = set()  # names that only other ranks have
        self.prepared: frozenset[str] = frozenset()  # names that there were before the example
        self.future = 0  # the compiler's flags for what the example has imported of __future__

    def carried_out(self) -> Sight:
        example = self.example
        if not example.is_case:
            begin = preamble_of(example) + begin_of(example) + names_of(example)
            exec(compile(begin, "<before the example>", "exec", dont_inherit=True), self.names)
        self.prepared = frozenset(self.names)
        seen = []
        for index, step in enumerate(example.steps):
            if not example.is_case and not self._is_mine(step):
                continue
            sight = self._see(index, step)
            seen.append(sight)
            if sight.error is not None:
                break
        return Sight(tuple(seen), tuple(dict.fromkeys(self.changes)), printed="\n".join(self.screen.printed))

    def _is_mine(self, step: Step) -> bool:
        mine = step.ranks is None or self.rank in step.ranks
        tree = ast.parse(step.source)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if mine and not used & self.absent:
            return True
        self.absent |= _stored(step)
        return False

    def _see(self, index: int, step: Step) -> StepSight:
        raised: Exception | None = None
        expected = step.error_on(self.rank)
        wanted = step.wanted
        try:
            is_read = self._execute(index, step)
        except BaseException as error:  # an example's own exit or interrupt is its failure, not the end of the process
            if not isinstance(error, Exception) or not (step.raises or expected is not None):
                outputs = [*self.pending, *self.screen.take()]
                return StepSight(step.line, tuple(output.text for output in outputs), None, traceback.format_exc())
            raised, is_read = error, True
        unread = 0 if wanted is None or is_read else wanted.line
        if unread:
            wanted = None
        own = self.screen.take()
        if wanted is None:  # documents leave out values that statements display
            own = [output for output in own if not output.echo]
        self.pending += own
        outputs = self.pending
        text = None if wanted is None else wanted.on(self.rank)
        if wanted is not None:
            self.pending = []
        silent = not (outputs or self.example.is_case) and text is not None and _may_be_silent(step, self.rank)
        difference = None if expected is None else _other_error(expected, raised)
        if difference is None and wanted is not None and text is not None and not step.raises and not silent:
            # where a comment beside other code shows a value, what that code has printed may be left out
            shows_value = wanted.of is not None and bool(own) and own[-1].echo
            last = 1 if shows_value else len(own)
            difference = self._unsure(index) or differs(text, outputs, last, self.example.is_case)
        told = [output.text for output in outputs] + ([] if raised is None else [f"raised {_in_words(raised)}"])
        return StepSight(step.line, tuple(told), difference, None, silent, raised is not None, unread)

    def _unsure(self, index: int) -> str | None:
        name = unwaited(self.names, [step.source for step in self.example.steps[: index + 1]])
        return f"shown before {name} has been waited for" if name else None

    def _execute(self, index: int, step: Step) -> bool:
        """Carry *step* out and display what its document shows of it; return False where that may be a remark, which is not compared."""
        if not self.example.is_case and self._take_as_given(index, step):
            return True
        source, reasons = rewritten(self.example.framework, step.source)
        self.changes += reasons
        file = self.names["__file__"]
        tree = ast.parse(source, file)
        ast.increment_lineno(tree, step.line - 1)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, file, "exec", self.future, dont_inherit=True), self.names)
        self.future |= _future_in(tree)
        wanted = step.wanted
        if isinstance(last, ast.Expr):
            expression = compile(ast.Expression(last.value), file, "eval", self.future, dont_inherit=True)
            value = eval(expression, self.names)
            if wanted is not None and wanted.of is not None:
                return self._display_of_call(wanted, wanted.of, value)
            if value is not None or isinstance(last.value, ast.Name):  # some documents show that a name is None
                self.screen.display(value)
        elif wanted is not None and wanted.of is not None:
            return self._display_assigned(wanted, wanted.of)
        elif wanted is not None and not self.screen.outputs and isinstance(tree.body[-1], ast.Assign):
            target = tree.body[-1].targets[0]  # what is shown after an assignment is the value
            if isinstance(target, ast.Name):
                self.screen.display(self.names[target.id])
        return True

    def _display_of_call(self, wanted: Wanted, names: Sequence[str], result: Any) -> bool:
        """Display the *result* of a call, or what it has written to where it returns nothing, if *wanted* shows that; tell whether it does."""
        if (text := wanted.on(self.rank)) is None:
            return True
        printed = bool(self.screen.outputs)
        is_sure = not wanted.bare or (printed and contains_tensor(text))
        if result is not None and not is_handle(result):
            value, is_shown = result, is_sure or may_be_result(text, result)
        elif printed or (value := self._first_variable(names)) is None:
            return is_sure
        else:
            is_shown = shows(text, value)
        if is_shown:
            self.screen.display(value)
        return is_shown

    def _display_assigned(self, wanted: Wanted, names: Sequence[str]) -> bool:
        """Display a variable that has been assigned, or its shape, if *wanted* shows that; tell whether it does: ``x = ones(2, 3)  # (2, 3)``.

        ``# Output:`` below the assignment is about what has been printed.
        """
        if (text := wanted.on(self.rank)) is None or (self.screen.outputs and not wanted.bare):
            return True
        value = self._first_variable(names)
        if (shape := shape_shown(text, value)) is not None:
            self.screen.outputs.append(Output(shape, shape, echo=True))
        elif shows(text, value) and text != "[1]":  # which may be the shape of a single element
            self.screen.display(value)
        else:
            return False
        return True

    def _first_variable(self, names: Sequence[str]) -> Any:
        """Return the value of the first of *names* that is no module's, None where there is none."""
        values = (self.names[name] for name in names if name in self.names)
        return next((value for value in values if not inspect.ismodule(value)), None)

    def _take_as_given(self, index: int, step: Step) -> bool:
        """Give a name the value that the document shows for it, where the example shows it before it has one.

        So documents say what a reader is to begin with. ``name = ...`` is an empty tensor like the one that is shown next.
        """
        wanted = None if step.wanted is None else step.wanted.on(self.rank)
        name = _bare_name(step)
        if name is not None:
            if wanted is None or not self._is_given(index):
                return False
            self.names[name] = self._value_of(wanted)
            self.screen.display(self.names[name])
            return True
        tree = ast.parse(step.source).body[0]
        if isinstance(tree, ast.Assign) and isinstance(tree.value, ast.Constant) and tree.value.value is ...:
            name = ast.unparse(tree.targets[0])
            later = (other for other in self.example.steps[index:] if other.source.strip() == name)
            shown = next((other.wanted.on(self.rank) for other in later if other.wanted is not None), None)
            if shown is not None:
                self.names[name] = _emptied(self._value_of(shown))
                return True
        return False

    def _is_given(self, index: int) -> bool:
        """Tell whether the name that is shown at step *index* is what the reader begins with.

        It is where it has had no value before. So is every name that is shown in the same run as such a one, as documents begin anew with a
        name that they have used; but not one that the code right before has made what it is.
        """
        steps = self.example.steps
        first, last = index, index
        while first and _is_shown_name(steps[first - 1]):
            first -= 1
        while last + 1 < len(steps) and _is_shown_name(steps[last + 1]):
            last += 1
        known = self.prepared.union(*(_stored(step) for step in steps[:first]))
        name = _bare_name(steps[index])
        if name not in known and name not in self.names:
            return True
        made = first > 0 and any(name == node.id for node in _names_in(steps[first - 1]))
        return not made and any(_bare_name(step) not in known for step in steps[first : last + 1])

    def _value_of(self, text: str) -> Any:
        framework = self.names.get(self.example.framework)
        scope = {"tensor": getattr(framework, "tensor", None)}
        return eval(text.strip(), scope)


def _other_error(expected: str, raised: Exception | None) -> str | None:
    """Return None where *raised* is of a class that is called *expected*, or made from one that is; "" is any. Else say what it is."""
    if raised is None:
        return f"documented to raise {expected or 'an error'}, and raised none"
    if expected in ("", *(kind.__name__ for kind in type(raised).__mro__)):
        return None
    return f"documented to raise {expected}, and raised {_in_words(raised)}"


def _in_words(error: Exception) -> str:
    return "".join(traceback.format_exception_only(error)).strip()


def _future_in(tree: ast.Module) -> int:
    """Return the compiler's flags for what *tree*, which has been compiled, imports of ``__future__``."""
    nodes = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    flags = (getattr(__future__, alias.name).compiler_flag for node in nodes for alias in node.names)
    return functools.reduce(operator.or_, flags, 0)


def _may_be_silent(step: Step, rank: int) -> bool:
    """Tell whether *step* may show nothing on *rank*, of which the document does not speak in particular."""
    named = step.wanted is not None and rank in step.wanted.text
    return not named and isinstance(ast.parse(step.source).body[-1], ast.If)


def _bare_name(step: Step) -> str | None:
    """Return the name that *step* is nothing but, None where it is more."""
    tree = ast.parse(step.source).body[0]
    return tree.value.id if isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Name) else None


def _is_shown_name(step: Step) -> bool:
    return step.wanted is not None and _bare_name(step) is not None


def _names_in(step: Step) -> list[ast.Name]:
    return [node for node in ast.walk(ast.parse(step.source)) if isinstance(node, ast.Name)]


def _stored(step: Step) -> set[str]:
    return {node.id for node in _names_in(step) if isinstance(node.ctx, ast.Store)}


def _emptied(value: Any) -> Any:
    return [_emptied(entry) for entry in value] if isinstance(value, list) else value.new_empty(value.shape)


def see_on_this_rank(example: Example, tensors: str) -> Sight:
    """Run *example* on the rank that this process is, on the frontends with tensors of the kind *tensors*."""
    return see_example(example, rendezvous.locate().rank, tensors=tensors)
