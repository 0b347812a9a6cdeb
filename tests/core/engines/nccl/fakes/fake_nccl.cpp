// An NCCL whose ranks are processes of one host. It keeps the contract of the real one: order per stream, groups,
// counts, dtypes, errors, abort. What would make the real one hang or destroy data ends the process.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "exchanges.hpp"

using namespace fake;

namespace {

constexpr int success = 0, system_error = 2, invalid_argument = 4, invalid_usage = 5;

std::mutex comms_mutex;
std::set<ncclComm*> comms;  // that are there
thread_local std::string last_error;
thread_local int group_depth = 0;

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
  const auto user = comm->user.load();
  if (user != std::thread::id() && user != std::this_thread::get_id())
    wrong_use(function, "two threads at once use a communicator");
  return *comm;
}

void launch(Queued call) {
  ncclComm& comm = *call.comm;
  ++comm.under_way;
  const std::uint64_t number =
      ++comm.launched;  // they follow each other, on whichever streams (ncclLaunchPrepare of enqueue.cc)
  auto shared = std::make_shared<Queued>(std::move(call));
  const bool is_put = fake::put_on_stream("ncclGroupEnd", shared->stream, comm.device, [shared, &comm, number] {
    while (comm.carried_out + 1 != number && !comm.is_aborted) std::this_thread::yield();
    bool goes_on = !comm.is_aborted;
    for (const Collective& one : shared->collectives) goes_on = goes_on && carry_out(comm, one);
    if (goes_on && !shared->messages.empty()) carry_out(comm, shared->messages);
    comm.carried_out = number;
    --comm.under_way;
  });
  if (is_put) return;
  --comm.under_way;
  --comm.launched;
  comm.is_in_graph = comm.size > 1;
}

Queued& in_group(ncclComm* comm, void* stream) {
  for (Queued& one : queued)
    if (one.comm == comm) {
      if (one.stream != stream) wrong_use("ncclGroupEnd", "two streams in one group of one communicator");
      return one;
    }
  comm->user = std::this_thread::get_id();
  return queued.emplace_back(Queued{comm, stream, {}, {}});
}

int failed(int error, const std::string& text) {
  last_error = text;
  return error;
}

void take_a_while(const char* where_set) {
  if (std::getenv(where_set) != nullptr)  // more than between two looks of the engine's watch
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
}

// As commDestroySync does, for those that are destroyed and aborted alike.
void wait_for_graphs(const ncclComm& comm) {
  while (comm.is_in_graph && has_graphs()) std::this_thread::yield();
}

// As the real one, does not return from a first launch before the other ranks have launched theirs.
int end_group() {
  std::vector<Queued> all;
  all.swap(queued);
  if (!all.empty() && check_capture(true) != success) return failed(system_error, "a graph is captured");
  for (const Queued& one : all) begin_to_connect(*one.comm, !one.collectives.empty(), one.messages);
  bool is_connected = true;
  for (const Queued& one : all)
    is_connected = is_connected && connect(*one.comm, !one.collectives.empty(), one.messages);
  for (const Queued& one : all) one.comm->is_launching = is_connected;
  take_a_while("FAKE_NCCL_LAUNCHES_SLOWLY");
  for (Queued& one : all) {
    ncclComm& comm = *one.comm;
    if (is_connected) launch(std::move(one));
    comm.is_launching = false;
    comm.user = std::thread::id();
  }
  return is_connected ? success : failed(system_error, "aborted while it connected");
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
  *version = 22809;
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
  comm->is_ending = true;
  take_a_while("FAKE_NCCL_DESTROYS_SLOWLY");
  wait_for_graphs(*comm);
  const std::lock_guard lock(comms_mutex);
  comms.erase(comm);
  return success;
}

int ncclCommAbort(ncclComm* comm) {
  {
    const std::lock_guard lock(comms_mutex);
    if (!comms.contains(comm) || comm->is_ending)
      wrong_use("ncclCommAbort", "a communicator that is none, or was destroyed");
    if (comm->is_launching) wrong_use("ncclCommAbort", "another thread launches");
    comm->is_aborted = true;
    comms.erase(comm);
  }
  wait_for_graphs(*comm);
  return success;
}

int ncclCommGetAsyncError(ncclComm* comm, int* error) {
  const std::lock_guard lock(comms_mutex);
  if (!comms.contains(comm) || comm->is_ending)
    wrong_use("ncclCommGetAsyncError", "a communicator that is none, or is being destroyed");
  *error = std::getenv("FAKE_NCCL_FAILS") != nullptr ? system_error : success;
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
