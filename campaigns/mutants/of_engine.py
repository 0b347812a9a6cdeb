"""Mistakes in the engine: the C++ sources."""

from __future__ import annotations

from typing import Any

from campaigns.mutants.mutant import Mutant

_ORACLE = ("tests/core/engines/test_against_oracle.py",)
_ARGUMENTS = ("tests/core/test_wrong_arguments.py",)
_OUTCOMES = ("tests/core/engines/test_one_outcome.py",)
_DISAGREEMENTS = ("tests/core/test_disagreements.py",)
_OVERLAPS = ("tests/core/test_batch.py",)
_REDUCTIONS = ("tests/core/test_reductions.py",)
_REFUSALS = ("tests/core/test_refusals.py",)
_MESSAGES = (*_ORACLE, "tests/frontends/torch/collectives/test_torch_point_to_point.py")
_SHARED_TENSORS = (
    "tests/core/shared_tensors/test_moving_to_shared_memory.py",
    "tests/core/shared_tensors/test_shared_tensors.py",
    *_ORACLE,
)

# Of each file: the tests that should fail, then its mistakes (a name, the text before and after, its own tests if it has any).
_MISTAKES: dict[str, tuple[Any, ...]] = {
    "native/collectives/broadcast.cpp": (
        _ORACLE,
        (
            "broadcast/lines-of-rank-0",
            "group.arrival(root_, agreement.sequence).payload",
            "group.arrival(0, agreement.sequence).payload",
        ),
        ("broadcast/ring-of-rank-0", "exchange.slot_of(root_, step)", "exchange.slot_of(0, step)"),
        (
            "broadcast/share-lost",
            "start < share; start += direct_chunk",
            "start + direct_chunk < share; start += direct_chunk",
            _SHARED_TENSORS,
        ),
        ("broadcast/root-unchecked", '  check_rank("root", root, seat.size);\n', "", _ARGUMENTS),
    ),
    "native/collectives/reduce.cpp": (
        _ORACLE,
        (
            "reduce/peers-shifted",
            "for (std::size_t i = 1; i < size; ++i) {\n      const std::size_t peer = (static_cast<std::size_t>(group.rank()) + i) % size;\n      const Part piece = piece_of({input_",
            "for (std::size_t i = 2; i < size; ++i) {\n      const std::size_t peer = (static_cast<std::size_t>(group.rank()) + i) % size;\n      const Part piece = piece_of({input_",
        ),
        (
            "reduce/own-of-other-step",
            "const std::byte* own = input_.data() + exchange.start_of(step);",
            "const std::byte* own = input_.data();",
        ),
        (
            "reduce/copies-input-late",
            "if (!in_place && input_.shares_memory_with(*output_)) input_.detach();",
            "if (!in_place && false) input_.detach();",
            _OVERLAPS,
        ),
        (
            "reduce/slices-without-the-third-rank",
            "for (std::size_t i = 2; i < size; ++i) copy_bytes(output_of(i), output_of(0), bytes);",
            "for (std::size_t i = 3; i < size; ++i) copy_bytes(output_of(i), output_of(0), bytes);",
        ),
        ("reduce/result-not-stored", "    if (output_) output_->store();\n", ""),
    ),
    "native/collectives/reductions.hpp": (
        _REDUCTIONS,
        (
            "reductions/factor-of-this-rank",
            "factors_.push_back(group.call(rank, sequence).factor)",
            "factors_.push_back(group.call(group.rank(), sequence).factor)",
        ),
    ),
    "native/collectives/reduce_scatter.cpp": (
        _ORACLE,
        (
            "reduce-scatter/part-of-rank-0",
            "const std::size_t start = static_cast<std::size_t>(rank_) * output_.bytes();",
            "const std::size_t start = 0 * output_.bytes();",
        ),
        (
            "reduce-scatter/input-not-kept",
            "if (input.shares_memory_with(output_)) input.detach();",
            "if (input.shares_memory_with(output_) && false) input.detach();",
            _OVERLAPS,
        ),
    ),
    "native/collectives/all_to_all.cpp": (
        _ORACLE,
        ("all-to-all/own-part-lost", "copy_out(outputs_[rank_].data, inputs_[rank_].data, inputs_[rank_].bytes);", ""),
        (
            "all-to-all/own-parts-unchecked",
            "if (receives[own] != sends[own])",
            "if (receives[own] != sends[own] && false)",
            _ARGUMENTS,
        ),
        (
            "all-to-all/line-of-part-0",
            "payload + static_cast<std::size_t>(rank_) * part.bytes",
            "payload + static_cast<std::size_t>(0) * part.bytes",
        ),
    ),
    "native/collectives/gather.cpp": (
        _ORACLE,
        (
            "gather/unequal-parts-of-this-rank",
            "group.arrival(peer, agreement.sequence).payload, outputs_[peer].bytes",
            "group.arrival(rank_, agreement.sequence).payload, outputs_[peer].bytes",
        ),
        ("gather/own-part-lost", "copy_out(own.data, mine.data + exchange.start_of(step), own.bytes);", ""),
        (
            "gather/input-not-kept",
            "if (!is_in_place && input_.shares_memory_with(buffers[i])) input_.detach();",
            "if (!is_in_place && false) input_.detach();",
            _OVERLAPS,
        ),
    ),
    "native/collectives/scatter.cpp": (
        ("tests/core/shared_tensors/test_shared_tensors.py",),
        (
            "scatter/part-of-rank-0",
            "access.tensors(static_cast<std::size_t>(rank_), own)[static_cast<std::size_t>(root_)]",
            "access.tensors(0, own)[static_cast<std::size_t>(root_)]",
        ),
    ),
    "native/kernels/operations.hpp": (
        _REDUCTIONS,
        ("kernels/nan-loses-in-min", "return b < a || b != b ? b : a;", "return b < a ? b : a;"),
        ("kernels/max-is-min", "return b > a || b != b ? b : a;", "return b < a || b != b ? b : a;"),
    ),
    "native/kernels/combine.hpp": (
        _REDUCTIONS,
        ("kernels/average-of-two", "[by](auto sum) { return sum / by; }", "[by](auto sum) { return sum / (by - 1); }"),
        (
            "kernels/average-is-sum",
            "[inverse](auto sum) { return sum * inverse; }",
            "[inverse](auto sum) { return sum + 0 * inverse; }",
        ),
        ("kernels/complex-product-conjugated", "a * real - b * imaginary", "a * real + b * imaginary"),
        ("kernels/complex-half-counted", "factors, 2 * count);", "factors, count);"),
        (
            "kernels/no-factor-of-third",
            "total[i] = Combine()(total[i], scaled(value));",
            "total[i] = Combine()(total[i], value);",
        ),
    ),
    "native/kernels/every_dtype.hpp": (
        _REDUCTIONS,
        (
            "kernels/int64-as-int32",
            "case Dtype::int64:\n      return kernel_of<std::int64_t>(op);",
            "case Dtype::int64:\n      return kernel_of<std::int32_t>(op);",
        ),
        ("kernels/uint8-signed", "return kernel_of<std::uint8_t>(op);", "return kernel_of<std::int8_t>(op);"),
        (
            "kernels/bool-xor-is-or",
            "return combine<Bool, Xor, Finish::plain>;",
            "return combine<Bool, Or, Finish::plain>;",
        ),
    ),
    "native/kernels/formats.hpp": (
        _REDUCTIONS,
        (
            "kernels/bool-of-other-bits",
            "return element<std::uint8_t>(from, index) != 0 ? 1 : 0;",
            "return element<std::uint8_t>(from, index);",
        ),
    ),
    "native/tensors/half_floats.hpp": (
        _REDUCTIONS,
        (
            "kernels/bfloat16-cut-off",
            "(bits + 0x7fff + ((bits >> 16) & 1)) >> 16;  // to nearest",
            "bits >> 16;  // to nearest",
        ),
    ),
    "native/tensors/arguments.cpp": (
        _ARGUMENTS,
        ("arguments/op-undefined", "if (is_defined(op, dtype)) return;", "if (is_defined(op, dtype) || true) return;"),
        ("arguments/read-only-written", "if (view.read_only)", "if (view.read_only && false)"),
        ("arguments/expanded-written", "if (view.overlaps_itself())", "if (view.overlaps_itself() && false)"),
        (
            "arguments/dtypes-mixed",
            "if (!a.views().empty() && view.dtype != a.tensor().dtype)",
            "if (false && view.dtype != a.tensor().dtype)",
        ),
        ("arguments/splits-not-added-up", "if (overflows || wanted != available)", "if (overflows)"),
        ("arguments/splits-negative", "if (row < 0) reject", "if (row < -1) reject"),
        (
            "arguments/list-too-long",
            "if (tensors.list.size() != static_cast<std::size_t>(size))",
            "if (tensors.list.size() < static_cast<std::size_t>(size))",
        ),
        ("arguments/not-divisible", "if (rows % size != 0)", "if (rows % size == size)"),
        ("arguments/own-part-of-other-size", "if (count != own.tensor().count())", "if (count < own.tensor().count())"),
        ("arguments/root-past-the-end", "if (rank < 0 || rank >= size)", "if (rank < 0 || rank > size)"),
    ),
    "native/agreement/agreement.cpp": (
        _DISAGREEMENTS,
        (
            "agreement/dtypes-differ",
            "if (!all_equal(calls, [](const CallDescriptor& call) { return call.dtype; })) return &dtype;",
            "",
        ),
        (
            "agreement/roots-differ",
            "if (takes_root(kind) && !all_equal(calls, [](const CallDescriptor& call) { return call.root; })) return &root;",
            "",
        ),
        ("agreement/parts-differ", "  if (!same_counts(calls)) return &parts;\n", ""),
    ),
    "native/agreement/arrival.cpp": (
        _REFUSALS,
        (
            "arrival/fingerprint-without-root",
            "static_cast<std::uint64_t>(static_cast<std::uint16_t>(said.root)) << 32",
            "std::uint64_t{0} << 32",
            _DISAGREEMENTS,
        ),
        (
            "arrival/tables-hashed-as-shapes",
            "call.has_common_table() ? of_table : dimensions",
            "dimensions",
            _DISAGREEMENTS,
        ),
        (
            "arrival/withdrawals-not-seen",
            "nobody_withdrew = nobody_withdrew && line.sequence.load() == sequence;",
            "",
            _OUTCOMES,
        ),
        (
            "arrival/fingerprint-without-shape",
            "for (std::size_t d = 0; d < dimensions; ++d) sum.add(static_cast<std::uint64_t>(said.shape[d]));",
            "",
            _DISAGREEMENTS,
        ),
        (
            "arrival/sequence-not-waited-for",
            "if (group.confirmed < group.sequence) wait_for_arrivals(group, group.sequence);",
            "",
        ),
    ),
    "native/group/withdrawal.cpp": (
        _OUTCOMES,
        (
            "withdrawal/left-unsaid",
            "  mine.sequence.exchange(have_all_given ? sequence : sequence | withdrawn);\n",
            "  mine.sequence.exchange(sequence);\n",
        ),
    ),
    "native/collectives/exchange.hpp": (
        _ORACLE,
        (
            "exchange/slot-used-too-early",
            "wait_until_free(group, group.steps + 1);\n    return slot;",
            "wait_until_free(group, 0);\n    return slot;",
        ),
    ),
    "native/collectives/ring_memory.cpp": (
        ("tests/core/test_limits.py",),
        (
            "rings/lack-of-memory-not-told",
            "if (!group.progress(rank).has_ring.load())",
            "if (rank == group.rank() && !group.progress(rank).has_ring.load())",
        ),
    ),
    "native/collectives/operation.cpp": (
        _ORACLE,
        ("operation/result-not-stored", "    throw;\n  }\n  store();\n}", "    throw;\n  }\n}"),
        (
            "operation/failure-kept-to-itself",
            'arrive_refused(group, {reason, ""});',
            "",
            ("tests/core/test_limits.py", "tests/core/test_memory_of_calls.py", "tests/core/engines"),
        ),
    ),
    "native/progress/progress.cpp": (
        ("tests/core/test_batch.py", "tests/frontends/torch/collectives/test_torch_work.py"),
        (
            "progress/wake-up-lost",
            "void Progress::wake_thread() {\n  wanted_.store(true);\n  changed_.notify_all();",
            "void Progress::wake_thread() {\n  wanted_.store(true);",
        ),
        (
            "progress/out-of-order",
            "queue_.push_back({&task, {}});",
            "queue_.push_front({&task, {}});",
            ("tests/core/test_batch.py", "tests/core/engines", "tests/frontends/torch/collectives/test_torch_work.py"),
        ),
        (
            "progress/failure-swallowed",
            "  end_turn();\n  if (task.failure_) throw *task.failure_;\n}",
            "  end_turn();\n}",
            ("tests/core/engines", "tests/frontends/torch/collectives/test_torch_work.py"),
        ),
    ),
    "native/messages/point_to_point.cpp": (
        _MESSAGES,
        (
            "messages/any-tag",
            "[&](const Aside& message) { return message.said.tag == transfer.tag; }",
            "[&](const Aside&) { return true; }",
        ),
        (
            "messages/sizes-differ",
            "if (said.dtype == transfer.dtype && said.bytes == transfer.buffer.bytes()) return true;",
            "if (said.dtype == transfer.dtype && said.bytes <= transfer.buffer.bytes()) return true;",
            _DISAGREEMENTS,
        ),
        (
            "messages/dtypes-differ",
            "if (said.dtype == transfer.dtype && said.bytes == transfer.buffer.bytes()) return true;",
            "if (said.bytes == transfer.buffer.bytes()) return true;",
            _DISAGREEMENTS,
        ),
        ("messages/not-stored", "    if (!incoming.dropped) target->buffer.store();\n", ""),
        ("messages/source-unknown", "  transfer.source = peer;\n", ""),
    ),
    "native/tensors/tensor_view.cpp": (
        (*_ORACLE, "tests/core/tensors/test_tensors.py"),
        (
            "tensors/strides-ignored",
            "if (shape[i] != 1 && strides[i] != expected) return false;",
            "if (shape[i] != 1 && strides[i] < expected) return false;",
        ),
        ("tensors/negative-strides", "(copied_->strides[d] < 0 ? low : high) +=", "high +="),
        (
            "tensors/overlap-at-the-end",
            "return std::less<>()(low, other_high) && std::less<>()(other_low, high);",
            "return low == other_low;",
            (*_ORACLE, "tests/core/test_batch.py"),
        ),
        (
            "tensors/batch-reads-late",
            "          buffer->detach();\n          buffer->load();\n",
            "",
            ("tests/core/test_batch.py", "tests/frontends/torch/collectives/test_torch_coalesced_lists.py"),
        ),
    ),
    "native/group/loans.cpp": (
        ("tests/core/shared_tensors/test_shared_allocations.py", "tests/core/shared_tensors/test_shared_tensors.py"),
        (
            "loans/freed-and-still-lent",
            "group_.lent_by(group_.rank(), use_)[slot].number.store(0);\n  group_.direct(group_.rank()).taken_back.fetch_add(1);",
            "group_.direct(group_.rank()).taken_back.fetch_add(1);",
        ),
    ),
    "native/meeting/meeting_watch.cpp": (
        ("tests/core/groups/test_group_agreement.py",),
        ("meeting/one-for-all-names", "Digest(drawn_by_the_world).add(meeting_.name)", "Digest(drawn_by_the_world)"),
    ),
}

MUTANTS = tuple(
    Mutant(f"engine/{name}", file, before, after, *(own or [tests]))
    for file, (tests, *mistakes) in _MISTAKES.items()
    for name, before, after, *own in mistakes
)
