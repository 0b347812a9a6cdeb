"""Mistakes in the recording of calls, and in what reads recordings."""

from __future__ import annotations

from campaigns.mutants.mutant import Mutant


def _in_recording(name: str, file: str, before: str, after: str) -> Mutant:
    return Mutant(f"traces/recording/{name}", f"shim/core/{file}", before, after, ("tests/core/tracing",))


def _in_reading(name: str, file: str, before: str, after: str) -> Mutant:
    return Mutant(f"traces/{name}", f"shim/trace/{file}", before, after, ("tests/trace",))


MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "traces/recording/strided_tensors_as_they_lie",
        "native/bindings/calls/tensor_keys.cpp",
        "if (!view.is_contiguous()) {",
        "if (false) {",
        ("tests/core/tracing",),
    ),
    Mutant(
        "traces/recording/pieces_count",
        "native/platform/digest.hpp",
        "const std::size_t more = count < block - filled_ ? count : block - filled_;",
        "const std::size_t more = 0;",
        ("tests/core/tracing",),
    ),
    Mutant(
        "traces/recording/one_key",
        "native/platform/digest.hpp",
        "explicit Digest(std::uint64_t key) {",
        "explicit Digest(std::uint64_t key) {\n    key = 1;",
        ("tests/core/engines/test_recorded_digests.py",),
    ),
    Mutant(
        "traces/verify/one_key",
        "shim/cli/port/verifying.py",
        '"SHIM_TRACE_DIGESTS": digest_key',
        '"SHIM_TRACE_DIGESTS": "1"',
        ("tests/cli/test_port_verification.py",),
    ),
    _in_recording(
        "no_digest_of_outputs", "engines/recording/works.py", "self._flags |= OUTPUT_DIGEST", "self._flags |= 0"
    ),
    _in_recording(
        "a_short_wait_is_an_end",
        "engines/recording/works.py",
        "timeout >= 0 and not self.under.is_completed()",
        "timeout < 0 and not self.under.is_completed()",
    ),
    _in_recording(
        "works_not_unwrapped",
        "engines/recording/works.py",
        "mover_of(other) for other",
        "other for other",
    ),
    _in_recording(
        "group_ranks_of_peers",
        "engines/recording/definitions.py",
        "made[name] = ranks[made[name]]",
        "made[name] = made[name]",
    ),
    _in_recording(
        "sizes_of_objects_are_the_users",
        "engines/recording/definitions.py",
        "is_internal, is_of_objects = True, False",
        "is_of_objects = False",
    ),
    _in_recording("children_record_too", "tracing/recorder.py", "        self.calls.leave()\n", ""),
    _in_recording(
        "one_line_for_all", "engines/recording/calls.py", "id(program.f_code), program.f_lasti", "id(program.f_code), 0"
    ),
    _in_reading("reading/groups_made_again", "reading.py", "self._occurrences[key] += 1", "self._occurrences[key] = 1"),
    _in_reading("aligning/waits_go_on", "aligning.py", "min(until, others) - since", "others - since"),
    _in_reading(
        "aligning/background_counts", "aligning.py", "call.waited if call.in_background else call.begin", "call.begin"
    ),
    _in_reading(
        "aligning/tags_ignored", "aligning.py", "peer, call.rank, shape.tag].append", "peer, call.rank, 0].append"
    ),
    _in_reading(
        "summary/first_is_blamed", "summary.py", "else (meeting.last.rank,):", "else (meeting.calls[0].rank,):"
    ),
    _in_reading(
        "differences/shapes_compared",
        "differences.py",
        "return parts[0] if len(parts) == 1 else list(parts)",
        "return parts",
    ),
    _in_reading(
        "differences/values_ignored", "differences.py", "if not found and digests and not of_objects:", "if False:"
    ),
    _in_reading("differences/keys_ignored", "differences.py", "digests and len(keys) < 2", "digests"),
    _in_reading(
        "differences/ends_ignored",
        "differences.py",
        "call.failure.kind if call.failure else",
        '"ended" if call.failure else',
    ),
    _in_reading(
        "replaying/roots_stay", "replaying/rank.py", "kept.index(shape.root) if shape.root in kept else 0", "0"
    ),
    _in_reading("replaying/no_background", "replaying/plan.py", "elif not call.in_background:", "elif True:"),
    _in_reading(
        "replaying/killed_ranks_leave",
        "replaying/rank.py",
        "        os.kill(os.getpid(), signal.SIGKILL)\n",
        "        return\n",
    ),
    _in_reading(
        "replaying/own_lines",
        "replaying/rank.py",
        'caller.__code__.replace(co_name=name or "replay")',
        "caller.__code__",
    ),
    _in_reading(
        "flight_recorder/lists_stay",
        "flight_recorder/writing.py",
        "    return [[total]]",
        "    return [[1]] * len(tensors.tensors)",
    ),
    _in_reading(
        "flight_recorder/code_runs",
        "flight_recorder/reading.py",
        "_PlainUnpickler(io.BytesIO(data))",
        "pickle.Unpickler(io.BytesIO(data))",
    ),
    _in_reading("perfetto/background_overlaps", "perfetto.py", "if call.in_background:", "if False:"),
)
