"""Mistakes where torch's own code meets the frontend: its dispatcher, its older versions, and what it is given."""

from __future__ import annotations

from campaigns.mutants.mutant import Mutant

_TESTS = "tests/frontends/torch"
_SEEN = "backend/test_parallel_features"
_GIVEN = "backend/test_torchs_own_calls"
_FUNCTIONAL = "functional/test_torch_seen_collectives"
_VERSIONS = "test_torch_versions"


def _in(file: str, name: str, before: str, after: str, test: str) -> Mutant:
    return Mutant(f"torchs-own/{name}", f"shim/{file}", before, after, (f"{_TESTS}/{test}.py",))


MUTANTS = (
    _in(
        "frontends/torch/_compiled_graphs.py",
        "unseen-by-modes",
        "is_there = core._len_torch_dispatch_stack() or core._autograd._profiler_enabled()",
        "is_there = core._autograd._profiler_enabled()",
        _SEEN,
    ),
    _in(
        "frontends/torch/_compiled_graphs.py",
        "unseen-by-the-profiler",
        "is_there = core._len_torch_dispatch_stack() or core._autograd._profiler_enabled()",
        "is_there = core._len_torch_dispatch_stack()",
        _SEEN,
    ),
    _in(
        "frontends/torch/_backend/c10d_operators.py",
        "reduce-op-of-a-graph",
        "    kind = ReduceOp.RedOpType(boxed.op())",
        "    kind = ReduceOp.RedOpType(0 * boxed.op())",
        _SEEN,
    ),
    _in(
        "frontends/torch/_functional/autograd.py",
        "functional-unseen",
        "        if is_seen():",
        "        if False:",
        _FUNCTIONAL,
    ),
    _in(
        "frontends/torch/_functional/seen_calls.py",
        "operator-of-torch-called-too",
        "        _thread.next = None\n        return carry_out()",
        "        _thread.next = None\n        carry_out()\n        return operator.redispatch(keys & _AFTER, *given, **named)",
        _FUNCTIONAL,
    ),
    _in(
        "frontends/torch/_functional/async_tensor.py",
        "cast-is-itself",
        "        return first if is_in_place and isinstance",
        "        return first if isinstance",
        "functional/test_torch_async_tensor",
    ),
    _in(
        "core/tensors/readers.py",
        "needs-c-functions-of-dlpack",
        'exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)',
        "exchange = torch.Tensor.__dlpack_c_exchange_api__",
        _VERSIONS,
    ),
    _in(
        "frontends/torch/_calls/deprecations.py",
        "advises-what-torch-lacks",
        "        there = instead if has(",
        "        there = instead if True or has(",
        _VERSIONS,
    ),
    _in(
        "frontends/torch/_calls/deprecations.py",
        "warns-as-no-release-does",
        "    return _numbers(since) <= followed and",
        "    return",
        _VERSIONS,
    ),
    _in(
        "frontends/torch/_calls/deprecations.py",
        "each-time-is-once",
        '            return action not in ("default", "ignore", "module", "once")',
        "            return False",
        _VERSIONS,
    ),
    _in(
        "frontends/torch/_calls/deprecations.py",
        "told-whatever-the-filters",
        "    return (id(place.f_code), place.f_lasti) in _told and filters is _filters and filters == _filters_then",
        "    return (id(place.f_code), place.f_lasti) in _told",
        _VERSIONS,
    ),
    _in(
        "frontends/_releases.py",
        "shows-what-came-later",
        "        del names[name]",
        "        pass",
        _VERSIONS,
    ),
    _in(
        "frontends/_releases.py",
        "keeps-later-parameters",
        "            names[name] = thing = _earlier[thing]",
        "            break",
        _VERSIONS,
    ),
    _in(
        "frontends/_releases.py",
        "keeps-later-methods",
        "                delattr(base, name)",
        "                pass",
        _VERSIONS,
    ),
    _in(
        "frontends/torch/_backend/making.py",
        "one-world-for-two",
        "        return _make_world(asked, options) if registry.world_view() is None else",
        "        return _make_world(asked, options) if True else",
        _GIVEN,
    ),
    _in(
        "frontends/torch/_backend/redistribution.py",
        "gathers-everything",
        '        if input.device.type != "cpu" or not isinstance(group, EngineGroup):',
        "        if True:",
        _GIVEN,
    ),
    _in(
        "frontends/torch/_groups/process_group.py",
        "backend-not-taken",
        "        self.core, self.backend = backend.core, backend.backend",
        "        self.backend = backend.backend",
        _GIVEN,
    ),
)
