// Ranks that share no memory: each has a segment of its own, and a carrier takes its words to the others.
#include "group/mirror.hpp"

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "collectives/request.hpp"
#include "group/carrier.hpp"
#include "tests/ranks.hpp"

using namespace shim;
using namespace shim::tests;

namespace {

// Hands everybody the arrivals at an operation once all ranks have come there, and all else at once.
class Relay {
 public:
  void add(Group& group) { groups_.push_back(&group); }

  void arrived(const Group& group, std::uint64_t sequence) {
    const std::lock_guard lock(mutex_);
    auto& packets = packets_[sequence];
    packets.resize(groups_.size());
    packets[static_cast<std::size_t>(group.rank())] = packed_arrival(group, sequence);
    for (const std::string& packet : packets)
      if (packet.empty()) return;
    const std::vector<std::string_view> views(packets.begin(), packets.end());
    for (Group* const each : groups_) {
      if (take_arrivals(*each, views)) continue;
      ++with_tables;
      std::vector<std::string> tables;
      for (const Group* const one : groups_) tables.push_back(packed_tables(*one, sequence));
      take_tables(*each, sequence, {tables.begin(), tables.end()});
    }
  }

  template <class Take>
  void tell_others(const Group& group, const Take& take) {
    const std::lock_guard lock(mutex_);
    for (Group* const each : groups_)
      if (each != &group) take(*each);
  }

  int with_tables = 0;

 private:
  std::mutex mutex_;
  std::vector<Group*> groups_;
  std::map<std::uint64_t, std::vector<std::string>> packets_;
};

class RelayedWords final : public Carrier {
 public:
  RelayedWords(Relay& relay, Group& group) : relay_(relay), group_(group) {}

  void arrived(std::uint64_t sequence, bool) override { relay_.arrived(group_, sequence); }
  void told_place(std::uint64_t sequence, std::string_view place) override {
    relay_.tell_others(group_, [&](Group& other) { take_place(other, group_.rank(), sequence, place); });
  }
  void ask_all() override {}
  void ended(RankState state, int cause, const std::string& reason, bool has_left, bool) override {
    relay_.tell_others(group_, [&](Group& other) { other.take_ending(group_.rank(), state, cause, reason, has_left); });
  }
  std::string whereabouts(int) override { return "is somewhere"; }
  std::string circle() override { return {}; }

 private:
  Relay& relay_;
  Group& group_;
};

// Runs `body` as every rank of such a group, each in a thread of its own.
void as_ranks_apart(int size, double timeout, const std::function<void(Rank&)>& body, Relay& relay) {
  std::vector<std::unique_ptr<Rank>> ranks;
  std::vector<std::unique_ptr<RelayedWords>> carriers;
  for (int rank = 0; rank < size; ++rank) {
    auto memory = std::make_shared<Segment>(memory_for(size, usual_thresholds(), false));
    ranks.push_back(std::make_unique<Rank>(rank, size, timeout, std::move(memory)));
    carriers.push_back(std::make_unique<RelayedWords>(relay, ranks.back()->group()));
    ranks.back()->group().carrier = carriers.back().get();
    relay.add(ranks.back()->group());
  }
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(*ranks[static_cast<std::size_t>(rank)]);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (auto& rank : ranks) rank->group().carrier = nullptr;  // the others may be gone
  for (const std::string& error : errors) CHECK_EQUAL(error, std::string());
}

}  // namespace

SHIM_TEST(small_data_goes_with_the_arrivals) {
  for (const int size : {2, 3, 4}) {
    Relay relay;
    as_ranks_apart(
        size, 20.0,
        [size](Rank& me) {
          for (int turn = 1; turn <= 5; ++turn) {
            std::vector<std::int64_t> data{me.rank() + turn};
            Request request(me.seat(), summing(me, data));
            me.run(request.begun([] { throw std::runtime_error("nothing is left to be moved"); }, true));
            CHECK_EQUAL(data[0], size * (size - 1) / 2 + turn * size);
          }
        },
        relay);
    CHECK_EQUAL(relay.with_tables, 0);
  }
}

SHIM_TEST(large_data_is_moved_when_all_have_agreed) {
  Relay relay;
  as_ranks_apart(
      3, 20.0,
      [](Rank& me) {
        std::vector<std::int64_t> data(1000, me.rank());
        bool is_moved = false;
        Request request(me.seat(), summing(me, data));
        me.run(request.begun([&is_moved] { is_moved = true; }, true));
        CHECK(is_moved);
      },
      relay);
}

SHIM_TEST(ranks_apart_that_disagree_are_told_and_go_on) {
  Relay relay;
  as_ranks_apart(
      2, 20.0,
      [](Rank& me) {
        std::vector<std::int64_t> data(static_cast<std::size_t>(3 + me.rank()));
        Request request(me.seat(), summing(me, data));
        CHECK(me.failure_of(request.begun([] {}, true)) == FailureKind::mismatch);
        std::vector<std::int64_t> again{1};
        Request next(me.seat(), summing(me, again));
        me.run(next.begun([] {}, true));
        CHECK_EQUAL(again[0], 2);
      },
      relay);
}

SHIM_TEST(a_rank_apart_that_leaves_is_missed) {
  Relay relay;
  as_ranks_apart(
      2, 20.0,
      [](Rank& me) {
        if (me.rank() == 1) return me.group().leave("enough");
        std::vector<std::int64_t> data{1};
        Request request(me.seat(), summing(me, data));
        CHECK(me.failure_of(request.begun([] {}, true)) == FailureKind::peer_lost);
        CHECK_EQUAL(me.group().peers().ending_of(1), std::string(" left the group (enough)"));
      },
      relay);
}

SHIM_TEST(an_arrival_of_another_operation_is_refused) {
  const auto memory = [] { return std::make_shared<Segment>(memory_for(2, usual_thresholds(), false)); };
  Rank one(0, 2, 1.0, memory());
  const std::string packet = packed_arrival(one.group(), 1);
  const std::string other = packed_arrival(one.group(), 2);
  bool is_refused = false;
  try {
    take_arrivals(one.group(), {packet, other});
  } catch (const Failure& failure) {
    is_refused = failure.kind == FailureKind::engine;
  }
  CHECK(is_refused);
  CHECK_EQUAL(packet.size(), packed_arrival_bytes());
}
