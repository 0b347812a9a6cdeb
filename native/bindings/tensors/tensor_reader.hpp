// Reads the tensors of any framework, without copying their elements.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/tensors/tensor_memory.hpp"
#include "bindings/tensors/tensor_version.hpp"
#include "tensors/arguments.hpp"

namespace shim::bindings {

// Objects that keep the memory of tensors alive. Most calls have one or two, for which nothing is allocated.
class Owners {
 public:
  std::size_t size() const { return count_ + more_.size(); }
  nanobind::object first() { return size() == 0 ? nanobind::none() : (*this)[0].object; }
  void push_back(nanobind::object owner) {
    if (count_ < few_.size())
      few_[count_++].object = std::move(owner);
    else
      more_.push_back({std::move(owner)});
  }
  // How writes to the last one are counted, and its memory is held; either may be null.
  void set_tracking_of_last(const TensorVersion* version, const TensorMemory* memory) {
    Owner& owner = (*this)[size() - 1];
    owner.version = version;
    owner.memory = memory;
  }
  // Tensors on devices are read too: for an engine that serves them.
  void allow_devices() { allows_devices_ = true; }
  bool may_be_on_devices() const { return allows_devices_; }
  // From now on the memory stays, although the tensors may be given other memory.
  void hold_memory() {
    if (!held_.empty()) return;
    for (std::size_t i = 0; i < size(); ++i)
      if (const Owner& owner = (*this)[i]; owner.memory != nullptr) held_.emplace_back(*owner.memory, owner.object);
  }
  void release_memory() { held_.clear(); }
  // The call writes the tensors that were read since there were so many.
  void are_written_from(std::size_t first) {
    first_written_ = first;
    end_written_ = size();
  }
  // Tells the frameworks that these were written.
  void raise_versions() {
    for (std::size_t i = first_written_; i < end_written_; ++i)
      if (const Owner& owner = (*this)[i]; owner.version != nullptr) owner.version->raise(owner.object);
  }

 private:
  struct Owner {
    nanobind::object object;
    const TensorVersion* version = nullptr;  // nothing where none is counted
    const TensorMemory* memory = nullptr;    // nothing where the object is all that holds it
  };

  Owner& operator[](std::size_t i) { return i < few_.size() ? few_[i] : more_[i - few_.size()]; }

  std::array<Owner, 2> few_;
  std::size_t count_ = 0;
  std::vector<Owner> more_;
  bool allows_devices_ = false;
  std::size_t first_written_ = 0;
  std::size_t end_written_ = 0;
  std::vector<HeldMemory> held_;
};

// `chooser` is shim.core.tensors.reader_for: it says, once for each type of tensor, how it is read.
void set_reader_chooser(nanobind::callable chooser);

// Throws Failure(tensor) for what cannot be read, or lies where the engine cannot reach.
TensorArgument read_tensor(nanobind::handle object, std::string_view role, Owners& owners);
// What `read` reads, and the call writes.
template <class Read>
TensorArgument read_output(const Read& read, nanobind::handle object, std::string_view role, Owners& owners) {
  const std::size_t before = owners.size();
  TensorArgument argument = read(object, role, owners);
  owners.are_written_from(before);
  return argument;
}
// The stream on which the producer of `object`, a tensor on `device`, works now; 0, the legacy default stream, where it
// does not say.
std::uintptr_t current_stream(nanobind::handle object, Device device);
// A tensor, and no list or tuple of tensors.
TensorArgument read_whole(nanobind::handle object, std::string_view role, Owners& owners);
// A tensor, or a list or tuple of tensors.
TensorArgument read_tensors(nanobind::handle object, std::string_view role, Owners& owners);
// Whether any object is in `objects` more than once.
bool has_repeated(const nanobind::typed<nanobind::list, nanobind::object>& objects);
// None, or a sequence of integers.
SplitArgument read_splits(nanobind::handle object, std::string_view role);

}  // namespace shim::bindings
