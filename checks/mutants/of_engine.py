"""Mistakes in the engine: the C++ sources."""

from __future__ import annotations

from checks.mutants.mutant import Mutant

__all__ = ["MUTANTS"]

_ORACLE = ("tests/core/engines/test_against_oracle.py",)
_REFUSALS = ("tests/core/test_refusals.py", "tests/core/engines")
_MESSAGES = ("tests/core/engines/test_against_oracle.py", "tests/frontends/torch/test_torch_point_to_point.py")


def _in_reduce(name: str, before: str, after: str) -> Mutant:
    return Mutant(f"engine/reduce/{name}", "native/collectives/reduce.cpp", before, after, _ORACLE)


def _in_kernels(name: str, file: str, before: str, after: str) -> Mutant:
    tests = (*_ORACLE, "tests/frontends/torch/test_torch_reductions.py")
    return Mutant(f"engine/kernels/{name}", f"native/kernels/{file}", before, after, tests)


def _in_arguments(name: str, before: str, after: str) -> Mutant:
    return Mutant(f"engine/arguments/{name}", "native/tensors/arguments.cpp", before, after, _REFUSALS)


def _in_agreement(name: str, before: str, after: str) -> Mutant:
    tests = ("tests/core/engines/test_failures.py", "tests/core/test_ranks_in_messages.py")
    return Mutant(f"engine/agreement/{name}", "native/agreement/agreement.cpp", before, after, tests)


def _in_messages(name: str, before: str, after: str) -> Mutant:
    return Mutant(f"engine/messages/{name}", "native/messages/point_to_point.cpp", before, after, _MESSAGES)


MUTANTS = (
    Mutant(
        "engine/broadcast/lines-of-rank-0",
        "native/collectives/broadcast.cpp",
        "group.arrival(root_, agreement.sequence).payload",
        "group.arrival(0, agreement.sequence).payload",
        _ORACLE,
    ),
    Mutant(
        "engine/broadcast/ring-of-rank-0",
        "native/collectives/broadcast.cpp",
        "exchange.slot_of(root_, step)",
        "exchange.slot_of(0, step)",
        _ORACLE,
    ),
    Mutant(
        "engine/broadcast/share-lost",
        "native/collectives/broadcast.cpp",
        "start < share; start += direct_chunk",
        "start + direct_chunk < share; start += direct_chunk",
        ("tests/core/test_moving_to_shared_memory.py", "tests/core/test_shared_tensors.py", *_ORACLE),
    ),
    _in_reduce(
        "peers-shifted",
        "for (std::size_t i = 1; i < size; ++i) {\n      const std::size_t peer = (static_cast<std::size_t>(group.rank()) + i) % size;\n      const Part piece = piece_of({input_",
        "for (std::size_t i = 2; i < size; ++i) {\n      const std::size_t peer = (static_cast<std::size_t>(group.rank()) + i) % size;\n      const Part piece = piece_of({input_",
    ),
    _in_reduce(
        "own-of-other-step",
        "const std::byte* own = input_.data() + exchange.start_of(step);",
        "const std::byte* own = input_.data();",
    ),
    _in_reduce(
        "copies-input-late",
        "if (!in_place && input_.shares_memory_with(*output_)) input_.detach();",
        "if (!in_place && false) input_.detach();",
    ),
    _in_reduce(
        "slices-without-the-third-rank",
        "for (std::size_t i = 2; i < size; ++i) copy_bytes(output_of(i), output_of(0), bytes);",
        "for (std::size_t i = 3; i < size; ++i) copy_bytes(output_of(i), output_of(0), bytes);",
    ),
    _in_reduce("result-not-stored", "    if (output_) output_->store();\n", ""),
    _in_reduce("root-unchecked", '  check_rank("root", root, seat.size);\n  check_op', "  check_op"),
    Mutant(
        "engine/reductions/factor-of-this-rank",
        "native/collectives/reductions.hpp",
        "factors_.push_back(group.call(rank, sequence).factor)",
        "factors_.push_back(group.call(group.rank(), sequence).factor)",
        ("tests/frontends/torch/test_torch_reductions.py", *_ORACLE),
    ),
    Mutant(
        "engine/reduce-scatter/part-of-rank-0",
        "native/collectives/reduce_scatter.cpp",
        "const std::size_t start = static_cast<std::size_t>(rank_) * output_.bytes();",
        "const std::size_t start = 0 * output_.bytes();",
        _ORACLE,
    ),
    Mutant(
        "engine/reduce-scatter/input-not-kept",
        "native/collectives/reduce_scatter.cpp",
        "if (input.shares_memory_with(output_)) input.detach();",
        "if (input.shares_memory_with(output_) && false) input.detach();",
        _ORACLE,
    ),
    Mutant(
        "engine/all-to-all/own-part-lost",
        "native/collectives/all_to_all.cpp",
        "copy_out(outputs_[rank_].data, inputs_[rank_].data, inputs_[rank_].bytes);",
        "",
        _ORACLE,
    ),
    Mutant(
        "engine/all-to-all/own-parts-unchecked",
        "native/collectives/all_to_all.cpp",
        "if (receives[own] != sends[own])",
        "if (receives[own] != sends[own] && false)",
        _REFUSALS,
    ),
    Mutant(
        "engine/all-to-all/line-of-part-0",
        "native/collectives/all_to_all.cpp",
        "payload + static_cast<std::size_t>(rank_) * part.bytes",
        "payload + static_cast<std::size_t>(0) * part.bytes",
        _ORACLE,
    ),
    Mutant(
        "engine/gather/unequal-parts-of-this-rank",
        "native/collectives/gather.cpp",
        "group.arrival(peer, agreement.sequence).payload, outputs_[peer].bytes",
        "group.arrival(rank_, agreement.sequence).payload, outputs_[peer].bytes",
        _ORACLE,
    ),
    Mutant(
        "engine/gather/own-part-lost",
        "native/collectives/gather.cpp",
        "copy_out(own.data, mine.data + exchange.start_of(step), own.bytes);",
        "",
        _ORACLE,
    ),
    Mutant(
        "engine/gather/claims-more-than-it-reads",
        "native/collectives/gather.cpp",
        "!input_.goes_through_copy() && !buffers[i].goes_through_copy() &&",
        "!buffers[i].goes_through_copy() &&",
        _ORACLE,
    ),
    Mutant(
        "engine/scatter/part-of-rank-0",
        "native/collectives/scatter.cpp",
        "access.tensors(static_cast<std::size_t>(rank_), own)[static_cast<std::size_t>(root_)]",
        "access.tensors(0, own)[static_cast<std::size_t>(root_)]",
        ("tests/core/test_moving_to_shared_memory.py", "tests/core/test_shared_tensors.py", *_ORACLE),
    ),
    _in_kernels("nan-loses-in-min", "operations.hpp", "return b < a || b != b ? b : a;", "return b < a ? b : a;"),
    _in_kernels("max-is-min", "operations.hpp", "return b > a || b != b ? b : a;", "return b < a || b != b ? b : a;"),
    _in_kernels(
        "average-of-two",
        "combine.hpp",
        "[by](auto sum) { return sum / by; }",
        "[by](auto sum) { return sum / (by - 1); }",
    ),
    _in_kernels(
        "average-is-sum",
        "combine.hpp",
        "[inverse](auto sum) { return sum * inverse; }",
        "[inverse](auto sum) { return sum + 0 * inverse; }",
    ),
    _in_kernels(
        "int64-as-int32",
        "combine.hpp",
        "case Dtype::int64:\n      return kernel_of<std::int64_t>(op);",
        "case Dtype::int64:\n      return kernel_of<std::int32_t>(op);",
    ),
    _in_kernels(
        "uint8-signed", "combine.hpp", "return kernel_of<std::uint8_t>(op);", "return kernel_of<std::int8_t>(op);"
    ),
    _in_kernels(
        "bool-xor-is-or",
        "combine.hpp",
        "return combine<Bool, Xor, Finish::plain>;",
        "return combine<Bool, Or, Finish::plain>;",
    ),
    _in_kernels(
        "bool-of-other-bits",
        "formats.hpp",
        "return element<std::uint8_t>(from, index) != 0 ? 1 : 0;",
        "return element<std::uint8_t>(from, index);",
    ),
    _in_kernels("complex-product-conjugated", "combine.hpp", "a * real - b * imaginary", "a * real + b * imaginary"),
    _in_kernels("complex-half-counted", "combine.hpp", "factors, 2 * count);", "factors, count);"),
    _in_kernels(
        "no-factor-of-third",
        "combine.hpp",
        "total[i] = Combine()(total[i], scaled(value));",
        "total[i] = Combine()(total[i], value);",
    ),
    _in_kernels(
        "bfloat16-cut-off",
        "../tensors/half_floats.hpp",
        "(bits + 0x7fff + ((bits >> 16) & 1)) >> 16;  // to nearest",
        "bits >> 16;  // to nearest",
    ),
    _in_arguments("op-undefined", "if (is_defined(op, dtype)) return;", "if (is_defined(op, dtype) || true) return;"),
    _in_arguments("read-only-written", "if (view.read_only)", "if (view.read_only && false)"),
    _in_arguments("expanded-written", "if (view.overlaps_itself())", "if (view.overlaps_itself() && false)"),
    _in_arguments(
        "dtypes-mixed",
        "if (!a.views().empty() && view.dtype != a.tensor().dtype)",
        "if (false && view.dtype != a.tensor().dtype)",
    ),
    _in_arguments("splits-not-added-up", "if (overflows || wanted != available)", "if (overflows)"),
    _in_arguments("splits-negative", "if (row < 0) reject", "if (row < -1) reject"),
    _in_arguments(
        "list-too-long",
        "if (tensors.list.size() != static_cast<std::size_t>(size))",
        "if (tensors.list.size() < static_cast<std::size_t>(size))",
    ),
    _in_arguments("not-divisible", "if (rows % size != 0)", "if (rows % size == size)"),
    _in_arguments("own-part-of-other-size", "if (count != own.tensor().count())", "if (count < own.tensor().count())"),
    _in_arguments("root-past-the-end", "if (rank < 0 || rank >= size)", "if (rank < 0 || rank > size)"),
    _in_agreement(
        "dtypes-differ",
        "if (!all_equal(calls, [](const CallDescriptor& call) { return call.dtype; })) return &dtype;",
        "",
    ),
    _in_agreement(
        "roots-differ",
        "if (takes_root(kind) && !all_equal(calls, [](const CallDescriptor& call) { return call.root; })) return &root;",
        "",
    ),
    _in_agreement("parts-differ", "  if (!same_counts(calls)) return &parts;\n", ""),
    Mutant(
        "engine/arrival/fingerprint-without-root",
        "native/agreement/arrival.cpp",
        "static_cast<std::uint64_t>(static_cast<std::uint32_t>(said.root)) << 32",
        "std::uint64_t{0} << 32",
        ("tests/core/engines",),
    ),
    Mutant(
        "engine/arrival/fingerprint-without-shape",
        "native/agreement/arrival.cpp",
        "for (std::size_t d = 0; d < dimensions; ++d) hash = mixed(hash, static_cast<std::uint64_t>(said.shape[d]));",
        "",
        ("tests/core/engines", "tests/core/test_refusals.py"),
    ),
    Mutant(
        "engine/arrival/sequence-not-waited-for",
        "native/agreement/arrival.cpp",
        "if (group.confirmed < group.sequence) wait_for_arrivals(group, group.sequence);",
        "",
        ("tests/core/engines", "tests/core/test_refusals.py"),
    ),
    Mutant(
        "engine/exchange/slot-used-too-early",
        "native/collectives/exchange.hpp",
        "static void wait_for_first_slot(Group& group) { wait_until_free(group, group.steps + 1); }",
        "static void wait_for_first_slot(Group& group) { wait_until_free(group, 0); }",
        (*_ORACLE, "tests/conformance/soak"),
    ),
    Mutant(
        "engine/operation/result-not-stored",
        "native/collectives/operation.cpp",
        "    throw;\n  }\n  store();\n}",
        "    throw;\n  }\n}",
        _ORACLE,
    ),
    Mutant(
        "engine/operation/failure-kept-to-itself",
        "native/collectives/operation.cpp",
        'arrive_refused(group, {reason, ""});',
        "",
        ("tests/core/test_limits.py", "tests/core/test_memory_of_calls.py", "tests/core/engines"),
    ),
    Mutant(
        "engine/progress/wake-up-lost",
        "native/progress/progress.cpp",
        "void Progress::wake_thread() {\n  wanted_.store(true);\n  changed_.notify_all();",
        "void Progress::wake_thread() {\n  wanted_.store(true);",
        ("tests/core/test_batch.py", "tests/frontends/torch/test_torch_work.py"),
    ),
    Mutant(
        "engine/progress/out-of-order",
        "native/progress/progress.cpp",
        "queue_.push_back({&task, {}});",
        "queue_.push_front({&task, {}});",
        ("tests/core/test_batch.py", "tests/core/engines", "tests/frontends/torch/test_torch_work.py"),
    ),
    Mutant(
        "engine/progress/failure-swallowed",
        "native/progress/progress.cpp",
        "  end_turn();\n  if (task.failure_) throw *task.failure_;\n}",
        "  end_turn();\n}",
        ("tests/core/engines", "tests/frontends/torch/test_torch_work.py"),
    ),
    _in_messages(
        "any-tag",
        "[&](const Aside& message) { return message.tag == transfer.tag; }",
        "[&](const Aside&) { return true; }",
    ),
    _in_messages(
        "sizes-differ",
        "if (dtype == transfer.dtype && bytes == transfer.buffer.bytes()) return true;",
        "if (dtype == transfer.dtype && bytes <= transfer.buffer.bytes()) return true;",
    ),
    _in_messages(
        "dtypes-differ",
        "if (dtype == transfer.dtype && bytes == transfer.buffer.bytes()) return true;",
        "if (bytes == transfer.buffer.bytes()) return true;",
    ),
    _in_messages("not-stored", "    if (!incoming.dropped) target->buffer.store();\n", ""),
    _in_messages("source-unknown", "  transfer.source = peer;\n", ""),
    Mutant(
        "engine/tensors/strides-ignored",
        "native/tensors/tensor_view.cpp",
        "if (shape[i] != 1 && strides[i] != expected) return false;",
        "if (shape[i] != 1 && strides[i] < expected) return false;",
        (*_ORACLE, "tests/core/test_tensors.py"),
    ),
    Mutant(
        "engine/tensors/negative-strides",
        "native/tensors/tensor_view.cpp",
        "(copied_->strides[d] < 0 ? low : high) +=",
        "high +=",
        (*_ORACLE, "tests/core/test_tensors.py"),
    ),
    Mutant(
        "engine/tensors/overlap-at-the-end",
        "native/tensors/tensor_view.cpp",
        "return std::less<>()(low, other_high) && std::less<>()(other_low, high);",
        "return low == other_low;",
        (*_ORACLE, "tests/core/test_batch.py"),
    ),
    Mutant(
        "engine/tensors/batch-reads-late",
        "native/tensors/tensor_view.cpp",
        "          buffer->detach();\n          buffer->load();\n",
        "",
        ("tests/core/test_batch.py", "tests/frontends/torch/test_torch_coalesced_lists.py"),
    ),
    Mutant(
        "engine/loans/freed-and-still-lent",
        "native/group/loans.cpp",
        "group_.lent_by(group_.rank(), use_)[slot].number.store(0);\n  group_.direct(group_.rank()).taken_back.fetch_add(1);",
        "group_.direct(group_.rank()).taken_back.fetch_add(1);",
        ("tests/core/test_shared_allocations.py", "tests/core/test_shared_tensors.py"),
    ),
)
