// An NCCL whose ranks are processes of one host that exchange their data through a file in memory. It keeps the
// contract of the real one: order per stream, groups, counts, dtypes, errors told later, abort. What would make the
// real one hang or destroy data ends the process.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fake_cuda.hpp"

namespace {

using fake::wrong_use;

constexpr int success = 0, system_error = 2, invalid_argument = 4, invalid_usage = 5;
constexpr int most_ranks = 16;
constexpr std::size_t area_bytes = 1 << 16;
enum Kind { all_reduce, broadcast, reduce, all_gather, reduce_scatter };
enum { sum, product, maximum, minimum, average, first_own_op };

constexpr std::size_t dtype_bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
constexpr int dtypes = std::size(dtype_bytes);

struct Said {  // of a collective, by each rank
  int kind, dtype, op, root;
  std::size_t count;
  bool operator==(const Said&) const = default;
};

struct Mailbox {
  std::atomic<std::uint64_t> sent, taken;
  std::byte data[area_bytes];
};

struct Shared {
  std::atomic<int> attached;
  std::atomic<int> size;
  std::atomic<int> devices[most_ranks];  // and 1 more; 0 for nobody
  std::atomic<std::uint64_t> steps[most_ranks];
  Said said[most_ranks];
  double factors[most_ranks];
  std::byte areas[most_ranks][area_bytes];
  Mailbox boxes[most_ranks][most_ranks];
};

}  // namespace

struct ncclUniqueId {
  char internal[128];
};

struct ncclComm {
  Shared* shared;
  int rank, size, device;
  std::atomic<bool> is_aborted{false};
  std::atomic<int> under_way{0};
  std::uint64_t step = 0;  // of the stream that carries out
  std::map<int, double> own_ops;
  int next_op = first_own_op;
};

namespace {

std::mutex comms_mutex;
std::set<ncclComm*> comms;  // that are there
thread_local std::string last_error;
thread_local int group_depth = 0;

struct Message {
  bool is_send;
  std::byte* data;
  std::size_t bytes;
  int peer;
  std::size_t moved = 0;
  bool has_header = false;
};
struct Collective {
  Said said;
  double factor;
  const std::byte* from;
  std::byte* to;
};
struct Queued {
  ncclComm* comm;
  void* stream;
  std::vector<Collective> collectives;
  std::vector<Message> messages;
};
thread_local std::vector<Queued> queued;

ncclComm& checked(const char* function, ncclComm* comm) {
  const std::lock_guard lock(comms_mutex);
  if (!comms.contains(comm)) wrong_use(function, "a communicator that is none, or was destroyed");
  if (comm->is_aborted) wrong_use(function, "a communicator that was aborted");
  if (fake::current_device(function) != comm->device)
    wrong_use(function, "another device is current than the communicator's");
  return *comm;
}

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

float of_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 0    ? std::ldexp(static_cast<float>(fraction), -24)
                     : exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
                                      : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

std::uint16_t to_half(float value) {
  _Float16 half = static_cast<_Float16>(value);
  std::uint16_t bits;
  std::memcpy(&bits, &half, 2);
  return bits;
}

float of_bfloat(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
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
    if (said.kind == all_reduce || (said.kind == reduce && comm.rank == said.root))
      combine_as(comm, said.dtype, said.op, 0, count, call.to + done * each);
    if (is_scattered) combine_as(comm, said.dtype, said.op, me * count, count, call.to + done * each);
    if (!meet(comm)) return false;
    if (said.count == 0) break;
  }
  return true;
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

void launch(Queued call) {
  ncclComm& comm = *call.comm;
  ++comm.under_way;
  auto shared = std::make_shared<Queued>(std::move(call));
  fake::put_on_stream("ncclGroupEnd", shared->stream, comm.device, [shared, &comm] {
    bool goes_on = !comm.is_aborted;
    for (const Collective& one : shared->collectives) goes_on = goes_on && carry_out(comm, one);
    if (goes_on && !shared->messages.empty()) carry_out(comm, shared->messages);
    --comm.under_way;
  });
}

Queued& in_group(ncclComm* comm, void* stream) {
  for (Queued& one : queued)
    if (one.comm == comm) {
      if (one.stream != stream) wrong_use("ncclGroupEnd", "two streams in one group of one communicator");
      return one;
    }
  return queued.emplace_back(Queued{comm, stream, {}, {}});
}

int failed(int error, const std::string& text) {
  last_error = text;
  return error;
}

int end_group() {
  std::vector<Queued> all;
  all.swap(queued);
  for (Queued& one : all) launch(std::move(one));
  return success;
}

int call(const char* function, ncclComm* handle, void* stream, Said said, const void* from, std::size_t from_count,
         void* to, std::size_t to_count) {
  ncclComm& comm = checked(function, handle);
  if (said.dtype < 0 || said.dtype >= dtypes) return failed(invalid_argument, "invalid dtype");
  if (said.root < 0 || said.root >= comm.size) return failed(invalid_argument, "invalid root");
  const bool has_own_op = said.op >= first_own_op;
  if (said.op < 0 || (has_own_op && !comm.own_ops.contains(said.op)))
    return failed(invalid_argument, "invalid reduction operation");
  const std::size_t each = dtype_bytes[said.dtype];
  const std::byte* const source =
      from_count == 0 ? nullptr : fake::memory_at(function, from, from_count * each, comm.device);
  std::byte* const target = to_count == 0 ? nullptr : fake::memory_at(function, to, to_count * each, comm.device);
  in_group(handle, stream).collectives.push_back({said, has_own_op ? comm.own_ops[said.op] : 1.0, source, target});
  return group_depth > 0 ? success : end_group();
}

int message(const char* function, bool is_send, void* data, std::size_t count, int dtype, int peer, ncclComm* handle,
            void* stream) {
  ncclComm& comm = checked(function, handle);
  if (dtype < 0 || dtype >= dtypes) return failed(invalid_argument, "invalid dtype");
  if (peer < 0 || peer >= comm.size) return failed(invalid_argument, "invalid peer");
  const std::size_t bytes = count * dtype_bytes[dtype];
  if (peer == comm.rank && group_depth == 0)
    wrong_use(function, "a message to itself outside of a group: the real one would hang");
  std::byte* const at = bytes == 0 ? nullptr : fake::memory_at(function, data, bytes, comm.device);
  in_group(handle, stream).messages.push_back({is_send, at, bytes, peer});
  return group_depth > 0 ? success : end_group();
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 22907;
  return success;
}

const char* ncclGetErrorString(int error) {
  return error == success            ? "no error"
         : error == invalid_argument ? "invalid argument"
         : error == invalid_usage    ? "invalid usage"
                                     : "unhandled system error";
}

const char* ncclGetLastError(ncclComm*) { return last_error.c_str(); }

int ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> made{0};
  std::memset(id, 0, sizeof *id);
  std::snprintf(id->internal, sizeof id->internal, "/dev/shm/fake_nccl_%d_%d", getpid(), made++);
  const int file = open(id->internal, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) return failed(system_error, "no file");
  close(file);
  return success;
}

int ncclCommInitRank(ncclComm** comm, int size, ncclUniqueId id, int rank) {
  const int device = fake::current_device("ncclCommInitRank");
  if (size < 1 || size > most_ranks || rank < 0 || rank >= size) return failed(invalid_argument, "invalid rank");
  const int file = open(id.internal, O_RDWR);
  if (file < 0) wrong_use("ncclCommInitRank", "a unique id that is none, or was used before");
  auto* const shared = static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  close(file);
  if (shared->devices[rank].exchange(device + 1) != 0) wrong_use("ncclCommInitRank", "a rank that another process has");
  int said = 0;
  if (!shared->size.compare_exchange_strong(said, size) && said != size)
    wrong_use("ncclCommInitRank", "the ranks say different sizes: the real one would hang");
  if (++shared->attached == size) unlink(id.internal);
  while (shared->attached < size) std::this_thread::yield();
  for (int one = 0; one < size; ++one)
    for (int other = 0; other < one; ++other)
      if (shared->devices[one] == shared->devices[other] && std::getenv("NCCL_MULTI_RANK_GPU_ENABLE") == nullptr)
        return failed(invalid_usage,
                      "Duplicate GPU detected : rank " + std::to_string(other) + " and rank " + std::to_string(one));
  auto* const made = new ncclComm{.shared = shared, .rank = rank, .size = size, .device = device, .own_ops = {}};
  const std::lock_guard lock(comms_mutex);
  comms.insert(made);
  *comm = made;
  return success;
}

int ncclCommDestroy(ncclComm* comm) {
  checked("ncclCommDestroy", comm);
  if (comm->under_way > 0) wrong_use("ncclCommDestroy", "operations are under way");
  const std::lock_guard lock(comms_mutex);
  comms.erase(comm);
  return success;
}

int ncclCommAbort(ncclComm* comm) {
  const std::lock_guard lock(comms_mutex);
  if (!comms.contains(comm)) wrong_use("ncclCommAbort", "a communicator that is none, or was destroyed");
  comm->is_aborted = true;
  comms.erase(comm);
  return success;
}

int ncclCommGetAsyncError(ncclComm*, int* error) {
  *error = success;
  return success;
}

int ncclRedOpCreatePreMulSum(int* op, void* scalar, int dtype, int residence, ncclComm* handle) {
  ncclComm& comm = checked("ncclRedOpCreatePreMulSum", handle);
  if (residence != 1) wrong_use("ncclRedOpCreatePreMulSum", "a scalar on the device, which this fake does not read");
  double value = 0;
  if (dtype == 6)
    value = of_half(*static_cast<std::uint16_t*>(scalar));
  else if (dtype == 7)
    value = *static_cast<float*>(scalar);
  else if (dtype == 8)
    value = *static_cast<double*>(scalar);
  else if (dtype == 9)
    value = of_bfloat(*static_cast<std::uint16_t*>(scalar));
  else
    return failed(invalid_argument, "invalid dtype");
  *op = comm.next_op++;
  comm.own_ops[*op] = value;
  return success;
}

int ncclRedOpDestroy(int op, ncclComm* comm) {
  if (checked("ncclRedOpDestroy", comm).own_ops.erase(op) == 0)
    wrong_use("ncclRedOpDestroy", "an operation that is none");
  return success;
}

int ncclGroupStart() {
  ++group_depth;
  return success;
}

int ncclGroupEnd() {
  if (group_depth == 0) return failed(invalid_usage, "ncclGroupEnd: not in a group call");
  return --group_depth > 0 ? success : end_group();
}

int ncclAllReduce(const void* from, void* to, std::size_t count, int dtype, int op, ncclComm* comm, void* stream) {
  return call("ncclAllReduce", comm, stream, {all_reduce, dtype, op, 0, count}, from, count, to, count);
}

int ncclBroadcast(const void* from, void* to, std::size_t count, int dtype, int root, ncclComm* comm, void* stream) {
  return call("ncclBroadcast", comm, stream, {broadcast, dtype, sum, root, count}, from, root == comm->rank ? count : 0,
              to, count);
}

int ncclReduce(const void* from, void* to, std::size_t count, int dtype, int op, int root, ncclComm* comm,
               void* stream) {
  return call("ncclReduce", comm, stream, {reduce, dtype, op, root, count}, from, count, to,
              root == comm->rank ? count : 0);
}

int ncclAllGather(const void* from, void* to, std::size_t count, int dtype, ncclComm* comm, void* stream) {
  return call("ncclAllGather", comm, stream, {all_gather, dtype, sum, 0, count}, from, count, to,
              count * static_cast<std::size_t>(comm->size));
}

int ncclReduceScatter(const void* from, void* to, std::size_t count, int dtype, int op, ncclComm* comm, void* stream) {
  return call("ncclReduceScatter", comm, stream, {reduce_scatter, dtype, op, 0, count}, from,
              count * static_cast<std::size_t>(comm->size), to, count);
}

int ncclSend(const void* data, std::size_t count, int dtype, int peer, ncclComm* comm, void* stream) {
  return message("ncclSend", true, const_cast<void*>(data), count, dtype, peer, comm, stream);
}

int ncclRecv(void* data, std::size_t count, int dtype, int peer, ncclComm* comm, void* stream) {
  return message("ncclRecv", false, data, count, dtype, peer, comm, stream);
}

}  // extern "C"
