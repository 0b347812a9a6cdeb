"""Judgements and a matrix that nobody has run, with everything that can be in one."""

from __future__ import annotations

from shim.conformance.examples.example import EVERY_RANK, Example, Step, Wanted
from shim.conformance.examples.judging import Judgement, Record, Verdict
from shim.conformance.examples.running.rank import Sight, StepSight
from shim.conformance.examples.running.runner import Outcome
from shim.conformance.examples.suite import CASE, REFERENCE, SHIM, Source, SourceRun
from shim.conformance.matrix.cells import Cell, Column, Failure, Matrix, Row, Seen, engine_in_use
from shim.conformance.matrix.rows import rows_of_examples, subject_of

# Text that would become something else in a page, an XML document or a table of Markdown, were it not for the right escapes.
NASTY = "</script><script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\"> & | `a` *b* [bold]\x1b"
TRACEBACK = f"""Traceback (most recent call last):
  File "<example>", line 3, in <module>
    raise ValueError({NASTY!r})
ValueError: {NASTY}
"""


def an_example(name, ranks=2, framework="torch", shown="[1, 2]"):
    function, _, number = name.partition("#")
    steps = (
        Step("import something", 3, 0),
        Step(f"{function.rpartition('.')[2]}(\n    tensor)", 4, 0, Wanted({EVERY_RANK: shown}, 6)),
        Step("tensor", 8, 0, Wanted({0: "[0]", 1: "[1]"}, 9)),
    )
    return Example(framework, function, int(number or 1), name, f"docstring of {function}", steps, ranks)


def an_outcome(example, failures=(), seen="[1, 2]", changes=(), seconds=0.25):
    told = {rank: text for rank, _, text in failures}
    sights = {
        rank: Sight(
            (StepSight(3, ()), StepSight(4, (seen,), told.get(rank)), StepSight(8, (f"[{rank}]",))), tuple(changes)
        )
        for rank in range(example.ranks)
        if "Traceback" not in told.get(rank, "")
    }
    return Outcome(example, tuple(failures), tuple(changes), seconds, sights)


def a_judgement(name, verdict=Verdict.PASS, reason="", change=None, failures=(), **rest):
    example = an_example(name, **{key: rest.pop(key) for key in ("ranks", "framework", "shown") if key in rest})
    return Judgement(an_outcome(example, failures, **rest), verdict, reason, change)


def a_source_run(judgements, framework="torch", side=SHIM, unseen=(), recorded=True, tensors=None):
    examples = tuple(judgement.outcome.example for judgement in judgements)
    records = {example.name: Record(example.fingerprint, Verdict.PASS) for example in examples}
    source = Source(framework, "1.2.3", examples, {side: records} if recorded else {})
    kind = "" if side == REFERENCE else tensors or framework
    return SourceRun(source, side, tuple(judgements), tuple(unseen), 1.5, kind)


def source_runs():
    """Return runs with every verdict, on both sides."""
    lost = [(0, 3, TRACEBACK), (1, 3, TRACEBACK)]
    torch = a_source_run(
        [
            a_judgement("torch.distributed.all_gather", changes=["tensors stay on the CPU here"]),
            a_judgement(
                "torch.distributed.all_gather#2", Verdict.FAIL, failures=lost, change="fails, and the record says: pass"
            ),
            a_judgement(
                "torch.distributed.broadcast",
                Verdict.DOCUMENT_WRONG,
                f"it shows {NASTY}",
                failures=[(1, 4, "item 1: shown 1, seen 2")],
            ),
            a_judgement("torch.distributed.zeta", Verdict.NOT_RUNNABLE, "it needs two nodes", ranks=8, failures=lost),
        ],
        unseen=["torch.distributed.gone"],
    )
    itself = a_source_run(
        [
            a_judgement("torch.distributed.all_gather"),
            a_judgement("torch.distributed.all_gather#2", Verdict.HANGS, "it waits for ever", failures=lost),
            a_judgement("torch.distributed.broadcast", Verdict.CRASHES, "it aborts", failures=lost),
            a_judgement("torch.distributed.zeta", Verdict.UNSUPPORTED, "gloo has none", ranks=8, failures=lost),
        ],
        side=REFERENCE,
        recorded=False,
    )
    paddle = a_source_run(
        [a_judgement("paddle.distributed.alltoall", framework="paddle", seen=NASTY, shown=NASTY, ranks=3)], "paddle"
    )
    return [torch, itself, paddle]


def a_matrix_of_kinds(every=False):
    """Return a matrix of torch's examples with their own tensors and with NumPy's and Paddle's, which not all go with.

    With *every*, there are columns for MindSpore's and for the framework itself too.
    """
    names = [f"torch.distributed.{letter}" for letter in "abc"]
    wrong = {"verdict": Verdict.DOCUMENT_WRONG, "reason": "it is wrong", "failures": [(0, 4, "x")]}
    runs = [
        a_source_run([a_judgement(names[0]), a_judgement(names[1]), a_judgement(names[2], **wrong)]),
        a_source_run(
            [
                a_judgement(names[0], Verdict.NOT_APPLICABLE, "numpy has no bfloat16"),
                a_judgement(names[1], Verdict.NOT_APPLICABLE, "numpy has no bfloat16"),
                a_judgement(names[2], **wrong),
            ],
            tensors="numpy",
        ),
        a_source_run(
            [
                a_judgement(names[0]),
                a_judgement(
                    names[1], Verdict.FAIL, failures=[(0, 4, "another")], change="fails, and the record says: pass"
                ),
                a_judgement(names[2], Verdict.NOT_APPLICABLE, "no tensor goes there"),
            ],
            tensors="paddle",
        ),
    ]
    wide = [a_source_run([a_judgement(names[0], Verdict.NOT_RUNNABLE, "no")], side=REFERENCE)] * every
    wide += [a_source_run([a_judgement(names[0], Verdict.NOT_RUNNABLE, "no")], tensors="mindspore")] * every
    runs += wide
    return Matrix(tuple(rows_of_examples(runs)), tuple(map(subject_of, runs)), False, 1.0)


def a_case_row():
    seen = (Seen(6, (0,), "[0]", "[0]"), Seen(6, (1,), "[1]", "[2]", "tensor 1: 1 of 1 elements differ"))
    cells = {
        Column(SHIM, "numpy", engine_in_use()): Cell(Verdict.PASS, 0.01, seen=seen[:1]),
        Column(SHIM, "paddle", engine_in_use()): Cell(
            Verdict.FAIL, 0.02, seen=seen, failures=(Failure((1,), 0, "one element differs"),)
        ),
    }
    name = "paddle.distributed.alltoall: in parts"
    return Row(
        name,
        "paddle",
        CASE,
        "https://example.org",
        2,
        ((1, "def call():"), (2, "    return []")),
        cells,
        ("It says: a. True is: b.",),
    )


def a_matrix(passed=False, missing=()):
    runs = source_runs()
    rows = [*rows_of_examples(runs[:2]), *rows_of_examples(runs[2:]), a_case_row()]
    subjects = tuple(subject_of(run) for run in runs)
    return Matrix(tuple(rows), subjects, passed, 12.5, {"numpy": "1.26.4"}, ("mindspore",), tuple(missing))
