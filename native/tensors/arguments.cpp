#include "tensors/arguments.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "platform/failure.hpp"

namespace shim {
namespace {

std::string braced(std::string_view role) { return "{" + std::string(role) + "}"; }

[[noreturn]] void reject(const std::string& message) { throw Failure(FailureKind::argument, message); }

std::string name_of_view(const TensorArgument& argument, std::size_t index) {
  return argument.is_list ? braced(argument.role) + "[" + std::to_string(index) + "]" : braced(argument.role);
}

std::span<const std::int64_t> shape_of(const TensorArgument& argument) {
  const TensorView& view = argument.tensor();
  return {view.shape.data(), static_cast<std::size_t>(view.dimensions)};
}

// Of dimensions `first` and those of `rest`, as Python writes it.
std::string text_of(std::int64_t first, std::span<const std::int64_t> rest) {
  std::string text = "(" + std::to_string(first);
  for (const std::int64_t extent : rest) text += ", " + std::to_string(extent);
  return text + (rest.empty() ? ",)" : ")");
}
std::string text_of(std::span<const std::int64_t> shape) {
  return shape.empty() ? "()" : text_of(shape.front(), shape.subspan(1));
}

void check_list(const TensorArgument& tensors, const SplitArgument& splits, int size) {
  if (tensors.list.size() != static_cast<std::size_t>(size))
    reject(braced(tensors.role) + " must hold " + std::to_string(size) + " tensors, one for each rank, got " +
           std::to_string(tensors.list.size()));
  for (const TensorView& view : tensors.list)
    if (view.dtype != tensors.list.front().dtype)
      reject(braced(tensors.role) + " must hold tensors of one dtype, got " +
             std::string(name_of(tensors.list.front().dtype)) + " and " + std::string(name_of(view.dtype)));
  if (splits.rows)
    reject(braced(splits.role) + " cuts one tensor, but " + braced(tensors.role) + " is a list of tensors");
}

Counts counts_of_list(const TensorArgument& tensors) {
  std::vector<std::uint64_t> counts;
  for (const TensorView& view : tensors.list) counts.push_back(view.count());
  return Counts(std::move(counts));
}

Counts counts_of_splits(const TensorArgument& tensor, const SplitArgument& splits, int size) {
  const std::vector<std::int64_t>& rows = *splits.rows;
  const TensorView& view = tensor.tensor();
  if (rows.size() != static_cast<std::size_t>(size))
    reject(braced(splits.role) + " must hold " + std::to_string(size) + " sizes, one for each rank, got " +
           std::to_string(rows.size()));
  const std::int64_t available = view.dimensions == 0 ? 1 : view.shape[0];
  std::int64_t wanted = 0;
  bool overflows = false;
  for (const std::int64_t row : rows) {
    if (row < 0) reject(braced(splits.role) + " must not be negative, got " + std::to_string(row));
    overflows = __builtin_add_overflow(wanted, row, &wanted) || overflows;
  }
  if (overflows || wanted != available)
    reject(braced(splits.role) + " must add up to the " + std::to_string(available) + " rows of dimension 0 of " +
           braced(tensor.role) + ", got " + (overflows ? "more than 64 bits hold" : std::to_string(wanted)) +
           "\nSplit sizes are counted in rows, not elements.");
  std::vector<std::uint64_t> counts;
  for (const std::int64_t row : rows) counts.push_back(static_cast<std::uint64_t>(row) * view.row_count());
  return Counts(std::move(counts));
}

}  // namespace

void check_rank(std::string_view role, int rank, int size) {
  if (rank < 0 || rank >= size)
    throw Failure(FailureKind::rank, braced(role) + " must be a rank of the group, 0.." + std::to_string(size - 1) +
                                         ", got " + std::to_string(rank));
}

void check_op(ReduceOp op, Dtype dtype) {
  if (is_defined(op, dtype)) return;
  reject("{op} " + std::string(name_of(op)) + " is not defined for elements of type " + std::string(name_of(dtype)) +
         (is_float8(dtype) ? "\nConvert to a wider float before reducing." : ""));
}

void check_writable(const TensorArgument& output) {
  const std::span<const TensorView> views = output.views();
  for (std::size_t i = 0; i < views.size(); ++i) {
    const TensorView& view = views[i];
    if (view.read_only)
      throw Failure(FailureKind::tensor,
                    name_of_view(output, i) +
                        " must be writable, got read-only memory\nPass a copy of it, and read the result there.");
    if (view.overlaps_itself())
      throw Failure(FailureKind::tensor,
                    name_of_view(output, i) + " must not hold the same memory twice, got an expanded tensor " +
                        view.describe() + "\nPass a contiguous copy of it, and read the result there.");
  }
}

void check_same_dtype(const TensorArgument& a, const TensorArgument& b) {
  for (const TensorView& view : b.views())
    if (!a.views().empty() && view.dtype != a.tensor().dtype)
      reject(braced(a.role) + " and " + braced(b.role) + " must have the same dtype, got " +
             std::string(name_of(a.tensor().dtype)) + " and " + std::string(name_of(view.dtype)));
}

void check_same_count(const TensorArgument& a, const TensorArgument& b) {
  if (a.tensor().count() != b.tensor().count())
    reject(braced(a.role) + " and " + braced(b.role) + " must hold the same number of elements, got " +
           a.tensor().describe() + " and " + b.tensor().describe());
}

void check_whole(const TensorArgument& whole, const TensorArgument& part, int ranks) {
  const std::span<const std::int64_t> given = shape_of(whole);
  const std::span<const std::int64_t> one = shape_of(part);
  if (given.size() == 1 && one.size() == 1) return;
  const auto is_given = [given](std::int64_t first, std::span<const std::int64_t> rest) {
    return !given.empty() && given.front() == first && std::ranges::equal(given.subspan(1), rest);
  };
  std::int64_t rows = 0;  // of all ranks; none where there are too many to count
  const bool can_be_joined = !one.empty() && !__builtin_mul_overflow(one.front(), std::int64_t{ranks}, &rows);
  if (is_given(ranks, one) || (can_be_joined && is_given(rows, one.subspan(1)))) return;
  const std::string joined = can_be_joined ? text_of(rows, one.subspan(1)) + " or " : "";
  reject(braced(whole.role) + " must have shape " + joined + text_of(ranks, one) + " for " + braced(part.role) +
         " of shape " + text_of(one) + ", got " + text_of(given));
}

Counts part_counts(const TensorArgument& tensors, const SplitArgument& splits, int size) {
  if (tensors.is_list) {
    check_list(tensors, splits, size);
    return counts_of_list(tensors);
  }
  if (splits.rows) return counts_of_splits(tensors, splits, size);
  const TensorView& view = tensors.tensor();
  const std::int64_t rows = view.dimensions == 0 ? 1 : view.shape[0];
  if (rows % size != 0)
    reject("dimension 0 of " + braced(tensors.role) + " must be divisible by the " + std::to_string(size) +
           " ranks of the group, got " + view.describe() +
           "\nParts of different sizes need split sizes, where the function takes them.");
  return Counts(size, view.count() / static_cast<std::size_t>(size));
}

Counts gathered_counts(const TensorArgument& outputs, const SplitArgument& splits, int size,
                       const TensorArgument& input) {
  if (outputs.is_list || splits.rows) return part_counts(outputs, splits, size);
  const std::size_t each = input.tensor().count();
  const std::size_t needed = each * static_cast<std::size_t>(size);
  if (outputs.tensor().count() != needed)
    reject(braced(outputs.role) + " must hold " + std::to_string(needed) + " elements, " + std::to_string(size) +
           " times the " + std::to_string(each) + " of " + braced(input.role) + ", got " + outputs.tensor().describe());
  return Counts(size, each);
}

void check_own_part(const TensorArgument& parts, const Counts& counts, int rank, const TensorArgument& own) {
  const std::uint64_t count = counts[static_cast<std::size_t>(rank)];
  if (count != own.tensor().count())
    reject("this rank's part of " + braced(parts.role) + " must be as large as " + braced(own.role) + ", got " +
           std::to_string(count) + " elements for " + own.tensor().describe());
}

}  // namespace shim
