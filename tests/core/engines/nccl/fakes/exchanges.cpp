#include "exchanges.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

namespace fake {

float of_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 0    ? std::ldexp(static_cast<float>(fraction), -24)
                     : exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
                                      : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

float of_bfloat(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

namespace {

// Returns false when the communicator is aborted.
template <class Condition>
bool wait_until(const ncclComm& comm, const Condition& condition) {
  while (!condition()) {
    if (comm.is_aborted) return false;
    std::this_thread::yield();
  }
  return true;
}

bool meet(ncclComm& comm) {
  const std::uint64_t mine = ++comm.step;
  comm.shared->steps[comm.rank] = mine;
  return wait_until(comm, [&] {
    for (int rank = 0; rank < comm.size; ++rank)
      if (comm.shared->steps[rank] < mine) return false;
    return true;
  });
}

}  // namespace

void begin_to_connect(ncclComm& comm, bool has_collectives, const std::vector<Message>& messages) {
  if (has_collectives && !comm.is_connected.exchange(true)) ++comm.shared->connected;
  for (const Message& one : messages)
    (one.is_send ? comm.shared->pairs[comm.rank][one.peer] : comm.shared->pairs[one.peer][comm.rank]) |=
        one.is_send ? 1 : 2;
}

bool connect(ncclComm& comm, bool has_collectives, const std::vector<Message>& messages) {
  if (has_collectives && !wait_until(comm, [&] { return comm.shared->connected >= comm.size; })) return false;
  return std::all_of(messages.begin(), messages.end(), [&](const Message& one) {
    const auto& pair = one.is_send ? comm.shared->pairs[comm.rank][one.peer] : comm.shared->pairs[one.peer][comm.rank];
    return wait_until(comm, [&] { return pair == 3; });
  });
}

namespace {

std::uint16_t to_half(float value) {
  _Float16 half = static_cast<_Float16>(value);
  std::uint16_t bits;
  std::memcpy(&bits, &half, 2);
  return bits;
}

std::uint16_t to_bfloat(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 64);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class T>
T combined(T a, T b, int op) {
  if (op == product) return static_cast<T>(a * b);
  if (op == maximum) return std::max(a, b);
  if (op == minimum) return std::min(a, b);
  return static_cast<T>(a + b);
}

// Of all ranks' areas, elements `first` to `first + count`, into `to`.
template <class T, class Wide = T, class Read, class Write>
void combine(ncclComm& comm, int op, std::size_t first, std::size_t count, std::byte* to, const Read& read,
             const Write& write) {
  for (std::size_t i = 0; i < count; ++i) {
    Wide result{};
    for (int rank = 0; rank < comm.size; ++rank) {
      T element;
      std::memcpy(&element, comm.shared->areas[rank] + (first + i) * sizeof(T), sizeof(T));
      Wide value = read(element);
      if (op >= first_own_op) value = static_cast<Wide>(value * static_cast<Wide>(comm.shared->factors[rank]));
      result = rank == 0 ? value : combined(result, value, op);
    }
    if (op == average) result = static_cast<Wide>(result / static_cast<Wide>(comm.size));
    const T element = write(result);
    std::memcpy(to + i * sizeof(T), &element, sizeof(T));
  }
}

void combine_as(ncclComm& comm, int dtype, int op, std::size_t first, std::size_t count, std::byte* to) {
  const auto same = [](auto value) { return value; };
  switch (dtype) {
    case 0:
      return combine<std::int8_t>(comm, op, first, count, to, same, same);
    case 1:
      return combine<std::uint8_t>(comm, op, first, count, to, same, same);
    case 2:
      return combine<std::int32_t>(comm, op, first, count, to, same, same);
    case 3:
      return combine<std::uint32_t>(comm, op, first, count, to, same, same);
    case 4:
      return combine<std::int64_t>(comm, op, first, count, to, same, same);
    case 5:
      return combine<std::uint64_t>(comm, op, first, count, to, same, same);
    case 6:
      return combine<std::uint16_t, float>(comm, op, first, count, to, of_half, to_half);
    case 7:
      return combine<float>(comm, op, first, count, to, same, same);
    case 8:
      return combine<double>(comm, op, first, count, to, same, same);
    case 9:
      return combine<std::uint16_t, float>(comm, op, first, count, to, of_bfloat, to_bfloat);
    default:
      wrong_use("ncclReduce", "a dtype that this fake does not reduce");
  }
}

std::size_t push(Mailbox& box, const std::byte* data, std::size_t bytes) {
  const std::size_t room = area_bytes - static_cast<std::size_t>(box.sent - box.taken);
  const std::size_t now = std::min(room, bytes);
  for (std::size_t i = 0; i < now; ++i) box.data[(box.sent + i) % area_bytes] = data[i];
  box.sent += now;
  return now;
}

std::size_t pull(Mailbox& box, std::byte* data, std::size_t bytes) {
  const std::size_t now = std::min(static_cast<std::size_t>(box.sent - box.taken), bytes);
  for (std::size_t i = 0; i < now; ++i) data[i] = box.data[(box.taken + i) % area_bytes];
  box.taken += now;
  return now;
}

// Returns whether it has ended.
bool advance(ncclComm& comm, Message& message) {
  Mailbox& box =
      message.is_send ? comm.shared->boxes[comm.rank][message.peer] : comm.shared->boxes[message.peer][comm.rank];
  if (!message.has_header) {
    std::uint64_t bytes = message.bytes;
    auto* const header = reinterpret_cast<std::byte*>(&bytes);
    if (message.is_send ? area_bytes - (box.sent - box.taken) < 8 : box.sent - box.taken < 8) return false;
    message.is_send ? push(box, header, 8) : pull(box, header, 8);
    if (bytes != message.bytes)
      wrong_use("ncclRecv", "another size than was sent: the real one would hang, or destroy data");
    message.has_header = true;
  }
  const std::size_t left = message.bytes - message.moved;
  std::byte* const at = message.data + message.moved;
  message.moved += message.is_send ? push(box, at, left) : pull(box, at, left);
  return message.moved == message.bytes;
}

}  // namespace

bool carry_out(ncclComm& comm, const Collective& call) {
  Shared& shared = *comm.shared;
  const Said& said = call.said;
  shared.said[comm.rank] = said;
  shared.factors[comm.rank] = call.factor;
  if (!meet(comm)) return false;
  for (int rank = 0; rank < comm.size; ++rank) {
    Said theirs = shared.said[rank];
    if (theirs.op >= first_own_op && said.op >= first_own_op) theirs.op = said.op;
    if (theirs != said) wrong_use("ncclGroupEnd", "the ranks' calls differ: the real one would hang, or destroy data");
  }
  const std::size_t each = dtype_bytes[said.dtype];
  const auto ranks = static_cast<std::size_t>(comm.size), me = static_cast<std::size_t>(comm.rank);
  // A rank shows `shown` elements, of which each reads what it needs; of a reduce_scatter those for all ranks.
  const bool is_scattered = said.kind == reduce_scatter;
  const std::size_t per_turn = area_bytes / each / (is_scattered ? ranks : 1);
  for (std::size_t done = 0; done < said.count || (done == 0 && said.count == 0); done += per_turn) {
    const std::size_t count = std::min(per_turn, said.count - done);
    const bool gives = said.kind != broadcast || comm.rank == said.root;
    if (gives && is_scattered)
      for (std::size_t rank = 0; rank < ranks; ++rank)
        std::memcpy(shared.areas[me] + rank * count * each, call.from + (rank * said.count + done) * each,
                    count * each);
    else if (gives && count > 0)
      std::memcpy(shared.areas[me], call.from + done * each, count * each);
    if (!meet(comm)) return false;
    if (said.kind == broadcast && count > 0) std::memcpy(call.to + done * each, shared.areas[said.root], count * each);
    if (said.kind == all_gather && count > 0)
      for (std::size_t rank = 0; rank < ranks; ++rank)
        std::memcpy(call.to + (rank * said.count + done) * each, shared.areas[rank], count * each);
    // NCCL 2.28 leaves the last elements out where a rank is alone and scales more than 16 KiB (NVIDIA/nccl#1950).
    const bool is_cut = comm.size == 1 && said.op >= average && said.count * each > 16 << 10;
    const std::size_t written = is_cut ? count / 8 * 8 : count;
    if (said.kind == all_reduce || (said.kind == reduce && comm.rank == said.root))
      combine_as(comm, said.dtype, said.op, 0, written, call.to + done * each);
    if (is_scattered) combine_as(comm, said.dtype, said.op, me * count, written, call.to + done * each);
    if (!meet(comm)) return false;
    if (said.count == 0) break;
  }
  return true;
}

bool carry_out(ncclComm& comm, std::vector<Message>& messages) {
  return wait_until(comm, [&] {
    std::set<std::pair<bool, int>> blocked;  // by one before it
    bool have_all = true;
    for (Message& message : messages) {
      if (message.has_header && message.moved == message.bytes) continue;
      const bool is_first = blocked.insert({message.is_send, message.peer}).second;
      if (!is_first || !advance(comm, message))
        have_all = false;
      else
        blocked.erase({message.is_send, message.peer});
    }
    return have_all;
  });
}

}  // namespace fake
