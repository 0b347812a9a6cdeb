"""Mistakes in how ranks meet, and in what they are told of hosts that are lost."""

from __future__ import annotations

from campaigns.mutants.mutant import Mutant

_HELPERS = ("tests/core/job/test_worlds_of_helpers.py",)
_PORTS = ("tests/core/job/test_jobs_at_one_port.py",)
_FAILING = ("tests/core/control/test_meetings_that_fail.py",)
_GAPS = ("tests/core/control/test_network_gaps.py",)
_ACROSS = ("tests/core/engines/test_emulated_hosts.py",)


def _in_job(file: str, name: str, before: str, after: str, tests: tuple[str, ...]) -> Mutant:
    return Mutant(f"core/job/{name}", f"shim/core/job/{file}", before, after, tests)


def _in_control(file: str, name: str, before: str, after: str, tests: tuple[str, ...]) -> Mutant:
    return Mutant(f"core/control/{name}", f"shim/core/control/{file}", before, after, tests)


def _in_sockets(file: str, name: str, before: str, after: str, tests: tuple[str, ...]) -> Mutant:
    return Mutant(f"core/sockets/{name}", f"shim/core/sockets/{file}", before, after, tests)


def _in_native(file: str, name: str, before: str, after: str, tests: tuple[str, ...]) -> Mutant:
    return Mutant(f"engine/meeting/{name}", f"native/meeting/{file}", before, after, tests)


MUTANTS = (
    _in_job(
        "outer_job.py",
        "outer-job-by-a-helpers-own-variables",
        'text = Path("/proc/self/environ").read_bytes()',
        'text = b"\\0".join(name + b"=" + value for name, value in os.environb.items())',
        _HELPERS,
    ),
    _in_job(
        "outer_job.py",
        "outer-job-of-a-lone-process",
        "launcher.number(variables, launcher.size) > 1",
        "launcher.number(variables, launcher.size) > 0",
        _HELPERS,
    ),
    _in_job(
        "origin.py",
        "helper-taken-for-a-job-of-its-parents",
        "(not outer_job or len(_workers_of(parent)) >= size)",
        "True",
        _HELPERS,
    ),
    _in_job(
        "origin.py",
        "helper-counts-what-multiprocessing-starts",
        "if not _SERVANT.search(_command_or_nothing(child))",
        "if child",
        _HELPERS,
    ),
    _in_job(
        "meeting_at_a_store.py",
        "stranger-not-told",
        'store.compare_set(guest.answer, "", _note_of(origin))',
        "pass",
        _PORTS,
    ),
    _in_job(
        "meeting_at_a_store.py",
        "stranger-waits-on",
        "_note_of(origin), refusal)) == refusal:",
        "_note_of(origin), refusal)) != refusal:",
        _PORTS,
    ),
    _in_job(
        "meeting_at_a_store.py",
        "name-of-the-job-ignored",
        "        if self.name or name:\n",
        "        if False:\n",
        _HELPERS,
    ),
    _in_control(
        "handshakes.py",
        "mistake-told-to-one-rank-alone",
        "                self._mistaken(join.rank, text)",
        "                pass",
        _FAILING,
    ),
    _in_sockets(
        "listening.py",
        "looks-at-once-without-descriptors",
        "self._loop.call_later(_AFTER_TOO_MANY, self._reopen)",
        "self._loop.call_later(0, self._reopen)",
        _FAILING,
    ),
    _in_control(
        "rank_zero.py",
        "late-ranks-not-told",
        "min(_FOR_LATE_RANKS, patience.left()) if isinstance(error, StateError) else 0",
        "0",
        _FAILING,
    ),
    _in_control(
        "meeting.py",
        "unknown-name-waited-for",
        "        if not patience.may_name_appear():",
        "        if patience.left() == 0:",
        _FAILING,
    ),
    _in_control(
        "other_ranks.py",
        "interface-told-to-nobody",
        '        _say_why_not(replace(job, interface=""), error)\n',
        "",
        _FAILING,
    ),
    _in_sockets(
        "connection.py",
        "gap-from-the-last-sign",
        "silence = now - max(connection.unanswered_since(), self._awake_since)",
        "silence = connection.silence()",
        _GAPS,
    ),
    _in_control(
        "hub.py",
        "host-lost-rank-by-rank",
        "self._peers[rank].host_id == peer.host_id and other",
        "False and other",
        _GAPS,
    ),
    Mutant(
        "core/groups/survivors-of-a-host-that-is-ending",
        "shim/core/groups/world.py",
        "control.await_presence(",
        "list(",
        _ACROSS,
    ),
    Mutant(
        "core/groups/survivors-without-rank-0",
        "shim/core/groups/world.py",
        "        if not (control.knows_of_others and is_left(0)):",
        "        if False:",
        _ACROSS,
    ),
    _in_native(
        "rendezvous_listeners.cpp",
        "outer-job-ignored",
        "have_one_outer_job = !one.outer_job.empty() &&",
        "have_one_outer_job = false &&",
        _PORTS,
    ),
    _in_native(
        "rendezvous_listeners.cpp",
        "no-address-of-the-outer-job",
        "  if (!origin.outer_job.empty())\n",
        "  if (false)\n",
        _HELPERS,
    ),
    _in_native(
        "rendezvous_host.cpp",
        "strangers-wait-on",
        "    throw wait_in_vain(meeting_, rank, origin);",
        "    static_cast<void>(since);",
        _PORTS,
    ),
)
