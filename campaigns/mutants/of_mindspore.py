"""Mistakes in the MindSpore frontend."""

from __future__ import annotations

from campaigns.mutants.mutant import Mutant

_TESTS = "tests/frontends/mindspore"


def _in(file: str, name: str, before: str, after: str, *tests: str) -> Mutant:
    return Mutant(
        f"mindspore/{name}",
        f"shim/frontends/mindspore/{file}",
        before,
        after,
        tuple(f"{_TESTS}/{test}.py" for test in tests),
    )


MUTANTS = (
    _in(
        "_arguments.py",
        "root-of-the-world",
        "    return group.ranks.index(rank)\n",
        "    return rank\n",
        "test_mindspore_in_place",
    ),
    _in(
        "_reduce_ops.py",
        "prod-is-sum",
        '"prod": reduce_ops.ReduceOp.PRODUCT',
        '"prod": reduce_ops.ReduceOp.SUM',
        "primitives/test_mindspore_reductions",
        "test_mindspore_mint",
    ),
    _in(
        "_arguments.py",
        "list-too-long",
        "    if len(listed) != group.size:\n",
        "    if len(listed) < group.size:\n",
        "test_mindspore_mistakes",
        "test_mindspore_errors",
        "test_mindspore_mint",
    ),
    _in(
        "_arguments.py",
        "shapes-differ",
        "and _shape_of(tensor) == _shape_of(first)):",
        "and True):",
        "test_mindspore_mistakes",
        "test_mindspore_errors",
        "test_mindspore_mint",
    ),
    _in(
        "_arguments.py",
        "tracing-taken",
        "    if module is not None and module.jit_context():\n",
        "    if False:\n",
        "gradients/test_mindspore_compiled",
    ),
    _in(
        "_gradients/slopes.py",
        "average-of-gradients",
        "return g * scale if mean else g",
        "return g",
        "gradients/test_mindspore_reduction_gradients",
        "gradients/test_mindspore_gradients",
        "gradients/test_mindspore_function_gradients",
    ),
    _in(
        "_gradients/slopes.py",
        "extremum-of-several",
        "return g * has_it / total(has_it)",
        "return g * has_it",
        "primitives/test_mindspore_reductions",
    ),
    _in(
        "_gradients/slopes.py",
        "product-with-its-own",
        "numpy.delete(exact, group.rank, 0)",
        "numpy.delete(exact, 0, 0)",
        "gradients/test_mindspore_reduction_gradients",
        "gradients/test_mindspore_gradients",
    ),
    _in(
        "_gradients/recording.py",
        "gradient-forgotten",
        "    if is_recorded(tensors):\n        calls.refuse(caller, group, _NONE)",
        "    if False:\n        calls.refuse(caller, group, _NONE)",
        "gradients/test_mindspore_refused_gradients",
    ),
    _in(
        "_gradients/recording.py",
        "view-overwritten",
        "    if any(map(_is_part, outputs)):\n",
        "    if False:\n",
        "gradients/test_mindspore_refused_gradients",
    ),
    _in(
        "_gradients/differentiable.py",
        "splits-not-swapped",
        "gradients, shapes, input_splits, output_splits)[0]",
        "gradients, shapes, output_splits, input_splits)[0]",
        "gradients/test_mindspore_function_gradients",
        "gradients/test_mindspore_gradients",
        "primitives/test_mindspore_splits",
    ),
    _in(
        "_gradients/differentiable.py",
        "gradient-of-broadcast-everywhere",
        "return [total if group.rank == root else zeros(gradients[0], shape)]",
        "return [total]",
        "gradients/test_mindspore_function_gradients",
        "gradients/test_mindspore_gradients",
    ),
    _in(
        "_gradients/differentiable.py",
        "gather-elsewhere",
        "output = new(caller, group, tensor, whole) if group.rank == root else zeros(tensor, _NOTHING)",
        "output = new(caller, group, tensor, whole)",
        "test_mindspore_functional",
    ),
    _in(
        "_functional/functional.py",
        "rows-of-one-rank",
        "whole = (shape[0] * found.size, *shape[1:])",
        "whole = (found.size, *shape)",
        "test_mindspore_functional",
    ),
    _in(
        "_functional/functional.py",
        "not-divisible",
        "    if shape[0] % group.size:\n",
        "    if False:\n",
        "test_mindspore_functional",
        "test_mindspore_mistakes",
    ),
    _in(
        "_in_place/rooted.py",
        "op-ignored",
        "calls.reduce(caller, found, tensor, tensor, kind, root, now=not async_op)",
        "calls.reduce(caller, found, tensor, tensor, REDUCE_SUM, root, now=not async_op)".replace(
            "REDUCE_SUM", "type(kind)(0)"
        ),
        "test_mindspore_in_place",
    ),
    _in(
        "_in_place/batches.py",
        "tag-taken",
        "    if tag != 0:\n",
        "    if False:\n",
        "primitives/test_mindspore_messages",
        "test_mindspore_mistakes",
        "test_mindspore_point_to_point",
    ),
    _in(
        "_in_place/point_to_point.py",
        "gradient-of-sent-lost",
        "    if is_recorded([tensor]):\n        wanted = (",
        "    if False:\n        wanted = (",
        "gradients/test_mindspore_message_gradients",
        "gradients/test_mindspore_refused_gradients",
        "test_mindspore_point_to_point",
    ),
    _in(
        "_groups/group_names.py",
        "size-outside",
        "return of(found) if found.rank >= 0 else -1",
        "return of(found)",
        "test_mindspore_groups",
    ),
    _in(
        "_groups/membership.py",
        "name-stands-for-the-ranks",
        "if sorted(ranks) != list(found.ranks):",
        "if False:",
        "test_mindspore_groups",
    ),
)
