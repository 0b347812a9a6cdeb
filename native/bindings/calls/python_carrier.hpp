// A carrier of which Python is the part that seldom has to do anything: shim.core.engines.network.carrier has its
// methods.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <memory>
#include <string>

#include "crossing/crossing.hpp"
#include "group/carrier.hpp"

namespace shim {
class Group;
}

namespace shim::bindings {

// Lives as long as the group whose words it takes. Once `python` has been let go, nobody is told anything.
class PythonCarrier final : public Carrier {
 public:
  PythonCarrier(Group& group, nanobind::object python) : group_(group), python_(std::move(python)) {}
  ~PythonCarrier() override;

  void let_go();  // with the interpreter's lock
  // Before anybody uses the group, where this rank leads its host.
  void lead(std::unique_ptr<Crossing> crossing) { crossing_ = std::move(crossing); }
  // Has what this rank's refused calls need of it end, once the group is left.
  void stop();

  bool exchange(std::uint64_t sequence) override;
  void refused(std::uint64_t sequence) override;
  bool sleep(std::chrono::milliseconds longest) override;
  void ring() override;
  void told_place(std::uint64_t sequence, std::string_view place) override;
  void ask_all() override;
  void ended(RankState state, int cause, const std::string& reason, bool has_left, bool is_late) override;
  std::string whereabouts(int rank) override;
  std::string circle() override;

 private:
  template <class... Arguments>
  nanobind::object tell(const char* method, const Arguments&... arguments) const;

  Group& group_;
  nanobind::object python_;
  std::unique_ptr<Crossing> crossing_;
};

}  // namespace shim::bindings
