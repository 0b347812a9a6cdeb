"""Mistakes in what all frontends share: calls, groups, objects, stores, and the launcher."""

from __future__ import annotations

from campaigns.mutants.mutant import Mutant

_STORES = (
    "tests/core/job/test_stores.py",
    "tests/core/job/test_store_processes.py",
    "tests/frontends/torch/test_torch_stores.py",
)
_GROUPS = (
    "tests/core/groups/test_group_agreement.py",
    "tests/core/groups/test_groups_apart.py",
    "tests/core/test_limits.py",
    "tests/frontends/torch/groups/test_torch_groups.py",
)


def _in_calls(name: str, before: str, after: str) -> Mutant:
    tests = (
        "tests/core/test_refusals.py",
        "tests/frontends/paddle/test_paddle_membership.py",
        "tests/core/engines",
        "tests/frontends/torch/test_torch_errors.py",
    )
    return Mutant(f"core/calls/{name}", "shim/core/calls.py", before, after, tests)


def _in_groups(file: str, name: str, before: str, after: str) -> Mutant:
    return Mutant(f"core/groups/{name}", f"shim/core/groups/{file}", before, after, _GROUPS)


def _in_objects(name: str, before: str, after: str) -> Mutant:
    tests = ("tests/core/test_objects.py", "tests/frontends/torch/collectives/test_torch_objects.py")
    return Mutant(f"core/objects/{name}", "shim/core/objects.py", before, after, tests)


def _in_tables(name: str, before: str, after: str) -> Mutant:
    return Mutant(f"core/stores/{name}", "shim/core/job/stores/table.py", before, after, _STORES)


def _in_launch(name: str, file: str, before: str, after: str) -> Mutant:
    tests = ("tests/launch", "tests/cli/test_run_ends.py", "tests/cli/test_run.py")
    return Mutant(f"launch/{name}", f"shim/launch/{file}", before, after, tests)


MUTANTS = (
    _in_calls(
        "refusal-not-told",
        "    if group.is_alive:\n        group.engine.refuse(reason)",
        "    if False:\n        group.engine.refuse(reason)",
    ),
    _in_calls(
        "mismatch-told-again",
        "isinstance(error, (MismatchError, EngineError, OutOfMemoryError))",
        "isinstance(error, (EngineError, OutOfMemoryError))",
    ),
    _in_calls("outsider-raises", 'caller.outsider == "warn"', 'caller.outsider == "warns"'),
    _in_calls(
        "reduce-without-factor",
        "operation = group.engine.reduce(output, input, op, root, factor, now)",
        "operation = group.engine.reduce(output, input, op, root, 1.0, now)",
    ),
    _in_calls(
        "splits-swapped",
        "group.engine.all_to_all(outputs, inputs, output_splits, input_splits, now, whole)",
        "group.engine.all_to_all(outputs, inputs, input_splits, output_splits, now, whole)",
    ),
    Mutant(
        "core/callers/role-unnamed",
        "shim/core/callers.py",
        "self.parameters.get(match[1], match[1])",
        "match[1]",
        ("tests/core/test_callers.py", "tests/frontends/torch/test_torch_errors.py"),
    ),
    Mutant(
        "core/callers/class-of-the-base",
        "shim/core/callers.py",
        "explained = self._class_for(type(error))(text)",
        "explained = type(error)(text)",
        ("tests/core/test_callers.py", "tests/frontends/torch/test_torch_errors.py"),
    ),
    Mutant(
        "core/callers/ranks-forgotten",
        "shim/core/callers.py",
        "            explained.ranks = error.ranks  # type",
        "            pass  # type",
        ("tests/core", "tests/frontends/torch/groups/test_torch_survivors.py"),
    ),
    _in_groups(
        "process_group.py",
        "group-rank-of-the-world",
        "            return self.ranks.index(world_rank)",
        "            self.ranks.index(world_rank)\n            return world_rank",
    ),
    _in_groups(
        "process_group.py",
        "rank-past-the-end",
        "group_rank not in range(self.size)",
        "group_rank not in range(self.size + 1)",
    ),
    _in_groups(
        "world.py",
        "name-taken-twice",
        "        if name in STATE.groups:\n",
        "        if name in STATE.groups and False:\n",
    ),
    _in_groups("process_group.py", "engine-not-closed", "            engine.close(why)\n", "            pass\n"),
    _in_groups(
        "world.py",
        "forked-child-goes-on",
        "    if STATE.process != os.getpid():\n",
        "    if STATE.process != os.getpid() and False:\n",
    ),
    _in_groups(
        "world.py",
        "world-closed-with-the-first",
        "    if not STATE.frontends:\n        _close_all()",
        "    if True:\n        _close_all()",
    ),
    Mutant(
        "core/agreement/numbers-differ",
        "shim/core/groups/agreement.py",
        "number = max(row[0] for row in rows)",
        "number = mine[0]",
        _GROUPS,
    ),
    Mutant(
        "core/agreement/lists-not-compared",
        "shim/core/groups/agreement.py",
        "    if all(lists[member] == theirs for theirs in lists.values() for member in theirs):",
        "    if all(True for theirs in lists.values() for member in theirs):",
        _GROUPS,
    ),
    Mutant(
        "core/agreement/ranks-twice",
        "shim/core/groups/agreement.py",
        "if len(set(members)) != len(members):",
        "if len(set(members)) > len(members):",
        _GROUPS,
    ),
    Mutant(
        "core/agreement/refusal-not-told",
        "shim/core/groups/agreement.py",
        "            self._everyone.engine.refuse(told)",
        "            pass",
        ("tests/core/groups/test_group_agreement.py", "tests/frontends/torch"),
    ),
    Mutant(
        "core/work/batch-error-lost",
        "shim/core/work.py",
        "                failure = failure or error",
        "                failure = failure",
        (
            "tests/core/test_batch.py",
            "tests/frontends/torch/collectives/test_torch_coalescing.py",
            "tests/core/engines",
        ),
    ),
    Mutant(
        "core/work/batch-waits-for-each",
        "shim/core/work.py",
        "work.wait(timeout if timeout < 0 else max(0.0, deadline - time.monotonic()))",
        "work.wait(timeout)",
        (
            "tests/core/test_batch.py",
            "tests/core/engines",
            "tests/frontends/mindspore/primitives/test_mindspore_messages.py",
        ),
    ),
    Mutant(
        "core/work/batch-reads-late",
        "shim/core/work.py",
        "        read_before_others_write(works)\n        self._works = works",
        "        self._works = works",
        ("tests/core/test_batch.py", "tests/frontends/torch/collectives/test_torch_coalesced_lists.py"),
    ),
    _in_objects(
        "sizes-of-the-root-alone",
        "return _unpack(group, everything, sizes, form) if group.rank == root else None",
        "return _unpack(group, everything, sizes, form)",
    ),
    _in_objects(
        "not-told-of-the-unpicklable",
        "        calls.refuse(caller, group, unpicklable(error))",
        "        raise unpicklable(error)",
    ),
    _in_objects("other-number-taken", "    if sent != count:\n", "    if sent < count:\n"),
    _in_objects("forbidden-and-sent", '    if said == "0":\n', '    if said == "00":\n'),
    _in_objects("starts-of-the-next", "view[end - size : end]", "view[max(end - size - 1, 0) : end]"),
    _in_tables("queue-last-first", "value = queue.popleft()", "value = queue.pop()"),
    _in_tables("compare-with-nothing", "        if there is None and expected:\n            return [expected]\n", ""),
    _in_tables("add-starts-at-one", 'self._values.get(key, b"0")', 'self._values.get(key, b"1")'),
    _in_tables("sum-overflows", "if not -(2**63) <= total < 2**63:", "if not -(2**64) <= total < 2**64:"),
    _in_tables(
        "waits-for-one",
        "        return None if self.missing(keys) else []",
        "        return None if len(self.missing(keys)) == len(keys) else []",
    ),
    Mutant(
        "core/stores/barrier-once",
        "shim/core/job/stores/base.py",
        "use = (arrived - 1) // world_size",
        "use = 0",
        _STORES,
    ),
    Mutant(
        "core/stores/half-written",
        "shim/core/job/stores/base.py",
        "if len(keys) != len(values):",
        "if len(keys) > len(values):",
        _STORES,
    ),
    Mutant(
        "core/stores/answer-of-another",
        "shim/core/job/stores/connections.py",
        "            _close(connection)\n            raise\n        self._keep(connection)",
        "            if connection: self._keep(connection)\n            raise\n        self._keep(connection)",
        ("tests/core/job/test_tcp_store.py",),
    ),
    Mutant(
        "core/stores/waits-forgotten",
        "shim/core/job/stores/server.py",
        "            self._look_at(min(client.deadline for client in waiting))\n",
        "            pass\n",
        ("tests/core/job/test_tcp_store.py",),
    ),
    Mutant(
        "core/stores/asks-twice",
        "shim/core/job/stores/server.py",
        "if client in self._table.waiting or client.line.unsent:",
        "if False:",
        ("tests/core/job/test_tcp_store.py",),
    ),
    _in_launch(
        "victim-taken-for-the-cause",
        "endings.py",
        "causes = [rank for rank in failed if not rank.is_victim]",
        "causes = failed",
    ),
    _in_launch(
        "status-of-signals",
        "processes.py",
        "status = 128 - status if status < 0 else status",
        "status = -status if status < 0 else status",
    ),
    _in_launch(
        "others-go-on",
        "processes.py",
        "                self._term_at = time.monotonic() + NOTICE\n            elif late",
        "                pass\n            elif late",
    ),
    _in_launch(
        "no-grace",
        "processes.py",
        "self._kill_at = min(self._kill_at, time.monotonic() + self._rules.grace)\n                self.end_all(signal.SIGTERM)",
        "self.end_all(signal.SIGKILL)",
    ),
    _in_launch("orphans", "endings.py", "        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)\n", ""),
    _in_launch(
        "restarted-once-more",
        "processes.py",
        "if not ranks.may_start_again or restart == rules.max_restarts:",
        "if not ranks.may_start_again:",
    ),
    Mutant(
        "core/mpi/one-number-for-all-groups",
        "shim/core/engines/mpi/communicators.py",
        "secrets.randbits(63)",
        "7",
        ("tests/core/engines/mpi/test_link.py",),
    ),
)
