// One bit of what a framework's C++ object says of its tensor, read where that object keeps it. torch answers such a
// question by a method that lets go of the interpreter's lock, which takes as long as all else that is read of a
// tensor.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace shim::bindings {

// Of the tensors of one type, or of types that are derived from it: their objects begin alike.
class TensorBit {
 public:
  // `samples` are shim.core.tensors.Sample: the bit is the only one that is set where the answer is yes, and clear
  // where it is no. Nothing where there is no such bit, or more than one: the framework has to be asked.
  static std::optional<TensorBit> find(nanobind::handle samples);

  bool is_set(nanobind::handle tensor) const;

 private:
  TensorBit(std::size_t pointer, std::size_t word, std::uint64_t mask) : pointer_(pointer), word_(word), mask_(mask) {}

  std::size_t pointer_;  // to the C++ object: a word of the Python object
  std::size_t word_;     // of the C++ object
  std::uint64_t mask_;
};

}  // namespace shim::bindings
