"""Mistakes in the MindSpore frontend."""

from __future__ import annotations

from checks.mutants.mutant import Mutant

__all__ = ["MUTANTS"]

_TESTS = "tests/frontends/mindspore/test_mindspore_"


def _in(file: str, name: str, before: str, after: str, *tests: str) -> Mutant:
    return Mutant(
        f"mindspore/{name}",
        f"shim/frontends/mindspore/{file}",
        before,
        after,
        tuple(f"{_TESTS}{test}.py" for test in tests),
    )


MUTANTS = (
    _in(
        "_arguments.py",
        "root-of-the-world",
        "    return group.ranks.index(rank)\n",
        "    return rank\n",
        "groups",
        "mint",
    ),
    _in(
        "_reduce_ops.py",
        "prod-is-sum",
        '"prod": reduce_ops.ReduceOp.PRODUCT',
        '"prod": reduce_ops.ReduceOp.SUM',
        "reductions",
        "mint",
    ),
    _in(
        "_arguments.py",
        "list-too-long",
        "    if len(listed) != group.size:\n",
        "    if len(listed) < group.size:\n",
        "mistakes",
        "errors",
        "mint",
    ),
    _in(
        "_arguments.py",
        "shapes-differ",
        "and _shape_of(tensor) == _shape_of(first)):",
        "and True):",
        "mistakes",
        "errors",
        "mint",
    ),
    _in(
        "_arguments.py",
        "tracing-taken",
        "    if module is not None and module.jit_context():\n",
        "    if False:\n",
        "compiled",
    ),
    _in(
        "_gradients/slopes.py",
        "average-of-gradients",
        "return g * scale if mean else g",
        "return g",
        "reduction_gradients",
        "gradients",
        "function_gradients",
    ),
    _in(
        "_gradients/slopes.py",
        "extremum-of-several",
        "return g * has_it / total(has_it)",
        "return g * has_it",
        "reduction_gradients",
    ),
    _in(
        "_gradients/slopes.py",
        "product-with-its-own",
        "numpy.delete(exact, group.rank, 0)",
        "numpy.delete(exact, 0, 0)",
        "reduction_gradients",
        "gradients",
    ),
    _in(
        "_gradients/recording.py",
        "gradient-forgotten",
        "    if is_recorded(tensors):\n        calls.refuse(caller, group, _NONE)",
        "    if False:\n        calls.refuse(caller, group, _NONE)",
        "refused_gradients",
    ),
    _in(
        "_gradients/recording.py",
        "view-overwritten",
        "    if any(map(_is_part, outputs)):\n",
        "    if False:\n",
        "in_place",
        "refused_gradients",
    ),
    _in(
        "_gradients/differentiable.py",
        "splits-not-swapped",
        "gradients, shapes, input_splits, output_splits)[0]",
        "gradients, shapes, output_splits, input_splits)[0]",
        "function_gradients",
        "gradients",
        "splits",
    ),
    _in(
        "_gradients/differentiable.py",
        "gradient-of-broadcast-everywhere",
        "return [total if group.rank == root else zeros(gradients[0], shape)]",
        "return [total]",
        "function_gradients",
        "gradients",
    ),
    _in(
        "_gradients/differentiable.py",
        "gather-elsewhere",
        "output = new(caller, group, tensor, whole) if group.rank == root else zeros(tensor, _NOTHING)",
        "output = new(caller, group, tensor, whole)",
        "functional",
    ),
    _in(
        "_functional/functional.py",
        "rows-of-one-rank",
        "whole = (shape[0] * found.size, *shape[1:])",
        "whole = (found.size, *shape)",
        "functional",
    ),
    _in(
        "_functional/functional.py",
        "not-divisible",
        "    if shape[0] % group.size:\n",
        "    if False:\n",
        "functional",
        "mistakes",
    ),
    _in(
        "_in_place/rooted.py",
        "op-ignored",
        "calls.reduce(caller, found, tensor, tensor, kind, root, now=not async_op)",
        "calls.reduce(caller, found, tensor, tensor, REDUCE_SUM, root, now=not async_op)".replace(
            "REDUCE_SUM", "type(kind)(0)"
        ),
        "mint",
        "reductions",
    ),
    _in(
        "_in_place/batches.py",
        "tag-taken",
        "    if tag != 0:\n",
        "    if False:\n",
        "messages",
        "mistakes",
        "point_to_point",
    ),
    _in(
        "_in_place/point_to_point.py",
        "gradient-of-sent-lost",
        "    if is_recorded([tensor]):\n        wanted = (",
        "    if False:\n        wanted = (",
        "message_gradients",
        "refused_gradients",
        "point_to_point",
    ),
)
