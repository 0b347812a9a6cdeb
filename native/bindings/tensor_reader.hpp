// Reads the tensors of any framework, without copying their elements.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "../arguments.hpp"

namespace shim::bindings {

// Objects that keep the memory of tensors alive. Most calls have one or two, for which nothing is allocated.
class Owners {
 public:
  void push_back(nanobind::object owner) {
    if (count_ < few_.size())
      few_[count_++] = std::move(owner);
    else
      more_.push_back(std::move(owner));
  }

 private:
  std::array<nanobind::object, 2> few_;
  std::size_t count_ = 0;
  std::vector<nanobind::object> more_;
};

// `chooser` is shim.core.tensors.reader_for: it says, once for each type of tensor, how it is read.
void set_reader_chooser(nanobind::callable chooser);

// Throws Failure(tensor) for what cannot be read, or lies where the engine cannot reach.
TensorArgument read_tensor(nanobind::handle object, std::string_view role, Owners& owners);
// A tensor, and no list or tuple of tensors.
TensorArgument read_whole(nanobind::handle object, std::string_view role, Owners& owners);
// A tensor, or a list or tuple of tensors.
TensorArgument read_tensors(nanobind::handle object, std::string_view role, Owners& owners);
// Whether any object is in `objects` more than once.
bool has_repeated(const nanobind::typed<nanobind::list, nanobind::object>& objects);
// None, or a sequence of integers.
SplitArgument read_splits(nanobind::handle object, std::string_view role);

}  // namespace shim::bindings
