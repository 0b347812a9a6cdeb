// The file in which a machine's speeds are kept from one job to the next.
#pragma once

#include <optional>
#include <string>

#include "machine/machine.hpp"

namespace shim {

// A text file that is named after the machine, so that hosts with one home folder have one each. Only a file that
// belongs to this process's user, that nobody else may write, and that is as write() makes it counts. It is replaced as
// a whole; what goes wrong with it is nobody's error.
class MachineRecord {
 public:
  // In `folder`, which is made when it is written; nowhere if that is empty.
  explicit MachineRecord(const std::string& folder);

  const std::string& path() const { return path_; }
  std::optional<Speeds> read() const;
  bool write(const Speeds& speeds) const;  // whether it is there now

 private:
  std::string machine_;
  std::string folder_;
  std::string path_;
};

// What a machine of this kind has that no other kind has, and that does not change when it is started: its processors.
// One line.
std::string name_of_machine();

}  // namespace shim
