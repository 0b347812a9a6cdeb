// What ranks of several hosts exchange with their arrivals, and how they wait for each other.
#include "tests/crossing/hosts.hpp"

#include <sys/socket.h>
#include <time.h>

#include "collectives/request.hpp"
#include "crossing/frames.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

// Passes on what comes at `from` to `to`, each time after a while, until it ends.
void delay(const Descriptor& from, const Descriptor& to, std::chrono::milliseconds by) {
  std::vector<char> bytes(65536);
  for (ssize_t count = 0; (count = ::recv(from.get(), bytes.data(), bytes.size(), 0)) > 0;) {
    std::this_thread::sleep_for(by);
    CHECK(::send(to.get(), bytes.data(), static_cast<std::size_t>(count), MSG_NOSIGNAL) == count);
  }
}

const std::vector<Hosts> layouts = {
    {{0, 1}, {2, 3}}, {{0}, {1, 2, 3}}, {{0}, {1}, {2}}, {{0, 3}, {1}, {2, 4}}, {{0, 1}}};

std::unique_ptr<Operation> carried(Request& request) {
  return request.begun([] { throw std::runtime_error("nothing is left to be moved"); }, true);
}

}  // namespace

SHIM_TEST(sums_of_all_sizes_that_go_with_the_arrivals) {
  for (const Hosts& hosts : layouts)
    on_hosts(hosts, [&](Rank& me) {
      const int size = me.size();
      for (const std::size_t count : {1, 5, 6, 512, 513, 8192, 32768, 3, 32768, 1})
        for (int turn = 1; turn <= 6; ++turn) {
          std::vector<std::int64_t> data(count, me.rank() + turn);
          Request request(me.seat(), summing(me, data));
          me.run(carried(request));
          CHECK_EQUAL(data.front(), size * (size - 1) / 2 + turn * size);
          CHECK_EQUAL(data.back(), data.front());
        }
    });
}

SHIM_TEST(every_rank_gets_its_own_part) {
  for (const Hosts& hosts : layouts)
    on_hosts(hosts, [](Rank& me) {
      const auto size = static_cast<std::size_t>(me.size());
      for (const std::size_t count : {1, 2, 700, 4000, 1}) {
        std::vector<std::int64_t> input(size * count), output(size * count);
        for (std::size_t i = 0; i < input.size(); ++i)
          input[i] = me.rank() * 1'000'000 + static_cast<std::int64_t>(i / count) * 1000;
        Request request(me.seat(), make_all_to_all(me.seat(), one("output", output), one("input", input),
                                                   no_splits("output_splits"), no_splits("input_splits")));
        me.run(carried(request));
        for (std::size_t i = 0; i < output.size(); ++i)
          CHECK_EQUAL(output[i], static_cast<std::int64_t>(i / count) * 1'000'000 + me.rank() * 1000);
      }
    });
}

SHIM_TEST(parts_of_different_sizes) {
  for (const Hosts& hosts : layouts)
    on_hosts(hosts, [](Rank& me) {
      // Rank i has i + 1 elements for each rank; the first has none for the others.
      std::vector<std::int64_t> counts;
      for (int rank = 0; rank < me.size(); ++rank) counts.push_back(rank == 0 && me.rank() != 0 ? 0 : rank + 1);
      std::vector<std::int64_t> output(
          static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0})));
      const std::int64_t mine = me.rank() + 1;
      std::vector<std::int64_t> splits(static_cast<std::size_t>(me.size()), me.rank() == 0 ? 0 : mine);
      splits[static_cast<std::size_t>(me.rank())] = mine;
      std::vector<std::int64_t> input(
          static_cast<std::size_t>(std::accumulate(splits.begin(), splits.end(), std::int64_t{0})), me.rank());
      Request request(me.seat(), make_all_to_all(me.seat(), one("output", output), one("input", input),
                                                 {"output_splits", counts}, {"input_splits", splits}));
      bool is_moved = false;  // where it does not fit
      me.run(request.begun([&is_moved] { is_moved = true; }, true));
      if (is_moved) return;
      std::size_t at = 0;
      for (std::size_t rank = 0; rank < counts.size(); ++rank)
        for (std::int64_t i = 0; i < counts[rank]; ++i) CHECK_EQUAL(output[at++], static_cast<std::int64_t>(rank));
    });
}

SHIM_TEST(what_only_the_root_gives_or_gets) {
  for (const Hosts& hosts : layouts)
    on_hosts(hosts, [](Rank& me) {
      const auto size = static_cast<std::size_t>(me.size());
      for (const std::size_t count : {2, 900, 16000})
        for (int root = 0; root < me.size(); ++root) {
          const bool is_root = me.rank() == root;
          std::vector<std::int64_t> data(count, is_root ? 77 : 0);
          Request broadcast(me.seat(), make_broadcast(me.seat(), one("tensor", data), root));
          me.run(carried(broadcast));
          CHECK_EQUAL(data.back(), 77);
          std::vector<std::int64_t> gathered(size * count), mine(count, me.rank());
          Request gather(me.seat(), make_gather(me.seat(), one("output", gathered), one("input", mine),
                                                no_splits("output_splits"), root));
          me.run(carried(gather));
          for (std::size_t i = 0; is_root && i < gathered.size(); ++i)
            CHECK_EQUAL(gathered[i], static_cast<std::int64_t>(i / count));
          Request reduce(me.seat(), make_reduce(me.seat(), one("output", data), one("input", mine), sum, root));
          me.run(carried(reduce));
          if (is_root) CHECK_EQUAL(data.back(), me.size() * (me.size() - 1) / 2);
        }
    });
}

SHIM_TEST(large_data_is_moved_when_all_have_agreed) {
  for (const Hosts& hosts : layouts)
    on_hosts(hosts, [](Rank& me) {
      std::vector<std::int64_t> data(300'000, me.rank());
      bool is_moved = false;
      Request request(me.seat(), summing(me, data));
      me.run(request.begun([&is_moved] { is_moved = true; }, true));
      CHECK(is_moved);
    });
}

SHIM_TEST(ranks_that_disagree_are_told_and_go_on) {
  for (const Hosts& hosts : layouts)
    on_hosts(hosts, [](Rank& me) {
      std::vector<std::int64_t> data(static_cast<std::size_t>(me.rank() == 0 ? 300 : 301));
      Request request(me.seat(), summing(me, data));
      CHECK(me.failure_of(carried(request)) == FailureKind::mismatch);
      std::vector<std::int64_t> again{1};
      Request next(me.seat(), summing(me, again));
      me.run(carried(next));
      CHECK_EQUAL(again[0], me.size());
    });
}

// Nobody waits for a rank that refuses its call, and that of a leader's host is told all the same.
SHIM_TEST(a_refused_call_of_any_rank_is_told) {
  for (const Hosts& hosts : layouts)
    for (int refuser = 0; refuser < size_of(hosts); ++refuser)
      on_hosts(hosts, [refuser](Rank& me) {
        std::vector<std::int64_t> data{1};
        if (me.rank() == refuser) {
          me.progress().refuse({"it was wrong", "here"});
        } else {
          Request request(me.seat(), summing(me, data));
          CHECK(me.failure_of(carried(request)) == FailureKind::mismatch);
        }
        Request next(me.seat(), summing(me, data));
        me.run(carried(next));
        CHECK_EQUAL(data[0], me.size());
      });
}

SHIM_TEST(a_rank_that_leaves_is_missed) {
  for (const Hosts& hosts : layouts)
    for (int leaver = 0; leaver < size_of(hosts); ++leaver)
      on_hosts(hosts, [leaver](Rank& me) {
        if (me.rank() == leaver) return me.group().leave("enough");
        std::vector<std::int64_t> data{1};
        Request request(me.seat(), summing(me, data));
        CHECK(me.failure_of(carried(request)) == FailureKind::peer_lost);
      });
}

SHIM_TEST(what_is_no_arrival_is_refused) {
  const auto memory = std::make_shared<Segment>(memory_across(2, false, seed));
  const auto other = std::make_shared<Segment>(memory_across(2, false, seed));
  Rank sender(0, 2, 1.0, other, {0});
  Rank receiver(1, 2, 1.0, memory, {1});
  const auto refuses = [&](const std::string& frame) {
    try {
      take_arrivals(receiver.group(), {0}, {1}, 1, frame);
    } catch (const Failure& failure) {
      return failure.kind == FailureKind::engine;
    }
    return false;
  };
  CallDescriptor& call = sender.group().call(0, 1);
  call.kind = OperationKind::all_to_all;
  call.dtype = Dtype::int64;
  call.sends = call.receives = 8;
  call.dimensions = 1;
  ArrivalLine& line = sender.group().arrival(0, 1);
  line.bytes = 2 * 8 * sizeof(std::int64_t);
  line.filled = SlotSize::small;
  const std::string right = packed_arrivals(sender.group(), {0}, {1}, 1);
  CHECK(refuses(packed_arrivals(sender.group(), {0}, {1}, 2)));
  CHECK(refuses(right + "x"));
  for (std::size_t length = 0; length < right.size(); ++length) CHECK(refuses(right.substr(0, length)));
  for (std::size_t at = 0; at < right.size(); ++at)  // no byte makes it write elsewhere
    for (const int byte : {0, 1, 2, 0x7f, 0xff}) {
      std::string wrong = right;
      wrong[at] = static_cast<char>(byte);
      refuses(wrong);
    }
  CHECK(!refuses(right));
}

SHIM_TEST(who_waits_for_one_host_is_not_kept_awake_by_the_next_call_of_another) {
  constexpr auto by = std::chrono::milliseconds(20);
  constexpr int calls = 20;
  const Hosts hosts = {{0}, {1}, {2}};
  Descriptor ends[2][2];
  for (auto& pair : ends) {
    int both[2];
    CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) == 0);
    for (int end = 0; end < 2; ++end) pair[end] = Descriptor(both[end]);
  }
  struct Passing {  // ends when the wires do
    ~Passing() { thread.join(); }
    std::thread thread;
  };
  const Passing to_first{std::thread([&] { delay(ends[1][1], ends[0][1], by); })};
  const Passing from_first{std::thread([&] { delay(ends[0][1], ends[1][1], {}); })};
  Wires wires = wires_between(hosts.size());
  wires[0][2] = std::make_shared<Wire>(std::move(ends[0][0]));
  wires[2][0] = std::make_shared<Wire>(std::move(ends[1][0]));
  on_hosts(hosts, wires, [&](Rank& me) {
    timespec spent[2];
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent[0]);
    for (int call = 0; call < calls; ++call) {
      std::vector<std::int64_t> data(1, me.rank());
      Request request(me.seat(), summing(me, data));
      me.run(carried(request));
      CHECK_EQUAL(data.front(), 3);
    }
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent[1]);
    const double seconds = static_cast<double>(spent[1].tv_sec - spent[0].tv_sec) +
                           static_cast<double>(spent[1].tv_nsec - spent[0].tv_nsec) * 1e-9;
    CHECK(seconds < std::chrono::duration<double>(calls * by).count() / 4);
  });
}
