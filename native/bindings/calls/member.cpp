#include "bindings/calls/member.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "bindings/calls/begun_calls.hpp"
#include "bindings/calls/work.hpp"
#include "bindings/interpreter/gil_at_end.hpp"
#include "bindings/interpreter/program_threads.hpp"
#include "bindings/interpreter/source_line.hpp"
#include "group/descriptions.hpp"
#include "group/watcher.hpp"
#include "meeting/group_memory.hpp"
#include "meeting/meeting_watch.hpp"
#include "platform/digest.hpp"
#include "platform/process.hpp"
#include "reports/inquiries.hpp"

namespace nb = nanobind;

namespace shim::bindings {
namespace {

// Where the world is lost on this rank, its survivors make a new group, and have given the world up as well. One that
// died is named before those that left, who may have done so for that.
void check_all_there(const Meeting& meeting, const Group& world) {
  const bool is_lost = !world.is_usable();
  int lost = -1;
  for (const int rank : meeting.world_ranks)
    if (lost < 0 && rank != world.rank() && world.peers().presence(rank) == Presence::died) lost = rank;
  for (std::size_t rank = 0; rank < meeting.world_ranks.size() && lost < 0; ++rank) {
    const int there = meeting.world_ranks[rank];
    if (there == world.rank()) continue;
    if (world.peers().presence(there) >= Presence::left) lost = there;
    if (!is_lost && world.is_gone(there)) lost = world.peers().culprit_behind(there);
  }
  if (lost < 0) return;
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < meeting.world_ranks.size(); ++rank)
    if (meeting.world_ranks[rank] == lost) ranks.push_back(static_cast<int>(rank));
  const std::string name = "rank " + std::to_string(lost);
  throw Failure(FailureKind::peer_lost,
                name + " of the world went before group '" + meeting.name + "' was formed: " + name +
                    world.peers().ending_of(lost),
                ranks);
}

// While the ranks wait for each other to have joined: a socket tells nothing of one whose forked child holds it as
// well.
void check_none_has_gone(const Group& group) {
  for (int rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank() || group.peers().presence(rank) < Presence::left) continue;
    const std::string name = rank_label(group, rank);
    throw Failure(
        FailureKind::peer_lost,
        name + " went while group '" + group.name() + "' was being formed: " + name + group.peers().ending_of(rank),
        {rank});
  }
}

}  // namespace

std::shared_ptr<Member> Member::join(const Meeting& meeting, Member* parent) {
  std::shared_ptr<Member> member;
  GilHooks hooks;
  std::optional<MeetingWatch> watch;
  if (parent != nullptr) watch.emplace(parent->group, meeting, hooks);
  try {
    hooks.about_to_block();
    const auto check_interrupted = [&] {
      hooks.check_interrupted();
      if (watch) watch->look();
      if (parent != nullptr) check_all_there(meeting, parent->group);
      if (member != nullptr) check_none_has_gone(member->group);
    };
    meet(meeting, check_interrupted, [&](Encounter&& encounter) { make(member, meeting, std::move(encounter)); });
  } catch (const Interrupted&) {
    throw nb::python_error();
  } catch (const Failure& failure) {  // perhaps what another of them has said or done for the same reason
    if (watch && !watch->is_proved() && failure.kind == FailureKind::timeout)
      throw Failure(failure.kind, failure.what() + watch->circle_now(), failure.ranks);
    if (!watch || !watch->is_proved()) throw;
    if (watch->is_awaited_in_world() && parent->group.is_usable())
      parent->progress.refuse({watch->failure().what(), hooks.place()});
    throw watch->failure();
  }
  return member;
}

std::shared_ptr<Member> Member::across(const Meeting& meeting, const Across& across, nb::object carrier) {
  std::shared_ptr<Member> member;
  const int size = static_cast<int>(meeting.world_ranks.size());
  const auto host = std::ranges::find_if(across.hosts, [&](const std::vector<int>& ranks) {
    return std::ranges::find(ranks, meeting.rank) != ranks.end();
  });
  const std::vector<int>& here = *host;
  const std::string number = std::to_string(host - across.hosts.begin());
  // A key of ours will do for it: that has the job's token.
  const std::uint64_t identity = Digest(0).add(meeting.key).value();
  // A group of this key may have been there before.
  const std::uint64_t id_on_wires = Digest(across.hash_seed).add(meeting.key).value();
  const auto join = [&](Encounter&& met) {
    Encounter encounter{std::move(met.segment), std::vector<Descriptor>(meeting.world_ranks.size())};
    for (std::size_t rank = 0; rank < across.pids.size(); ++rank)
      if (across.pids[rank] > 0) encounter.pidfds[rank] = pidfd_of(across.pids[rank]);
    for (std::size_t seat = 0; seat < met.pidfds.size(); ++seat)
      encounter.pidfds[static_cast<std::size_t>(here[seat])] = std::move(met.pidfds[seat]);
    make(member, meeting, std::move(encounter), identity, here);
  };
  if (here.size() == 1) {
    join({memory_across(size, false, across.hash_seed), {}});
  } else {
    Meeting of_host{meeting.key + " host " + number, meeting.name + " on host " + number, {}, 0, meeting.timeout};
    for (const int rank : here) of_host.world_ranks.push_back(meeting.world_ranks[static_cast<std::size_t>(rank)]);
    of_host.rank = static_cast<int>(std::ranges::find(here, meeting.rank) - here.begin());
    of_host.wider = Wider{size, across.hash_seed};
    GilHooks hooks;
    try {
      hooks.about_to_block();
      meet(of_host, [&] { hooks.check_interrupted(); }, join);
    } catch (const Interrupted&) {
      throw nb::python_error();
    }
  }
  member->carrier = std::make_unique<PythonCarrier>(member->group, std::move(carrier));
  if (meeting.rank == here.front()) {
    std::vector<std::shared_ptr<Wire>> wires = across.wires;
    wires.insert(wires.begin() + (host - across.hosts.begin()), nullptr);
    member->carrier->lead(std::make_unique<Crossing>(member->group, across.hosts, std::move(wires), id_on_wires));
  }
  member->group.carrier = member->carrier.get();
  for (const std::vector<int>& ranks : across.hosts)
    member->group.most_of_a_host = std::max(member->group.most_of_a_host, ranks.size());
  return member;
}

void Member::make(std::shared_ptr<Member>& member, const Meeting& meeting, Encounter&& encounter,
                  std::optional<std::uint64_t> identity, const std::vector<int>& here) {
  auto segment = std::make_shared<Segment>(std::move(encounter.segment));
  struct stat status{};
  ::fstat(segment->file(), &status);
  segment->close_file_if_spare();
  const std::uint64_t generation = process_generation();
  member.reset(new Member(meeting.name, meeting.world_ranks, meeting.rank, meeting.timeout, std::move(segment), here),
               [generation](Member* made) {
                 if (generation == process_generation()) delete made;
               });
  this_thread_is_the_program();
  set_place_teller(&source_line_of_program);
  Group& group = member->group;
  group.engine = meeting.engine + ", as " + meeting.engine_reason;
  group.set_processes(encounter.pidfds);
  group.note(group.rank()).address.write(Inquiries::tell_of(group, identity.value_or(status.st_ino)));
  Watcher::instance().watch(group, std::move(encounter.pidfds));
}

void Member::leave(const std::string& why) {
  if (!group.is_of_this_process()) return;
  {
    GilHooks hooks;
    if (has_gil()) hooks.about_to_block();
    if (carrier) carrier->stop();  // a refusal is to be heard of first
  }
  group.leave(why);
}

void Member::close(const std::string& why) {
  if (!group.is_of_this_process()) return;
  Inquiries::forget(group);
  Watcher::forget(group);
  {
    GilHooks hooks;
    if (has_gil()) hooks.about_to_block();  // an operation on its thread may want the lock, to end
    progress.stop(why);
    if (carrier) carrier->stop();
  }
  note_ends();
  if (carrier && has_gil()) carrier->let_go();
}

}  // namespace shim::bindings
