// What an operation of the fake NCCL does when its turn on the stream comes: the ranks are processes, or threads, that
// exchange their data through a file in memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <thread>
#include <vector>

#include "fake_cuda.hpp"

namespace fake {

constexpr int most_ranks = 16;
constexpr std::size_t area_bytes = 1 << 16;
enum Kind { all_reduce, broadcast, reduce, all_gather, reduce_scatter };
enum { sum, product, maximum, minimum, average, first_own_op };

inline constexpr std::size_t dtype_bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
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
  std::atomic<int> connected;                               // ranks that have launched a collective
  std::atomic<std::uint8_t> pairs[most_ranks][most_ranks];  // 1 for a sender that has launched, 2 for its receiver
  Said said[most_ranks];
  double factors[most_ranks];
  std::byte areas[most_ranks][area_bytes];
  Mailbox boxes[most_ranks][most_ranks];
};

}  // namespace fake

struct ncclUniqueId {
  char internal[128];
};

struct ncclComm {
  fake::Shared* shared;
  int rank, size, device;
  std::atomic<bool> is_aborted{false}, is_ending{false}, is_connected{false};
  std::atomic<int> under_way{0};
  std::atomic<std::uint64_t> launched{0}, carried_out{0};
  std::atomic<std::thread::id> user{};  // which is within a call, or a group of them
  std::atomic<bool> is_launching{false}, is_in_graph{false};
  std::uint64_t step = 0;  // of the stream that carries out
  std::map<int, double> own_ops;
  int next_op = fake::first_own_op;
};

namespace fake {

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

// Both return false when the communicator is aborted meanwhile.
bool carry_out(ncclComm& comm, const Collective& call);
bool carry_out(ncclComm& comm, std::vector<Message>& messages);

float of_half(std::uint16_t bits);
float of_bfloat(std::uint16_t bits);

// A first launch on a communicator: says that this rank has come, and waits until the others have. Returns false when
// it is aborted.
void begin_to_connect(ncclComm& comm, bool has_collectives, const std::vector<Message>& messages);
bool connect(ncclComm& comm, bool has_collectives, const std::vector<Message>& messages);

}  // namespace fake
