// One bit of what a framework's C++ object says of its tensor, read where that object keeps it. torch answers such a
// question by a method that lets go of the interpreter's lock, which takes as long as all else that is read of a
// tensor.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace shim::bindings {

// Of the tensors, or storages, of one type, or of types that are derived from it: their objects begin alike.
class TensorBit {
 public:
  // `samples` are shim.core.tensors.Sample: the bit is the only one that is set where the answer is yes, and clear
  // where it is no. Nothing where there is no such bit, or more than one: the framework has to be asked.
  // As many words of the C++ object are looked at: torch 2.13's tensor has 22, and the bit in its last one.
  static std::optional<TensorBit> find(nanobind::handle samples, std::size_t words = 22);

  bool is_set(nanobind::handle tensor) const;
  void set(nanobind::handle tensor, bool to) const;
  const void* object_of(nanobind::handle tensor) const;  // the C++ object

 private:
  TensorBit(std::size_t pointer, std::size_t word, std::uint64_t mask) : pointer_(pointer), word_(word), mask_(mask) {}

  std::size_t pointer_;  // to the C++ object: a word of the Python object
  std::size_t word_;     // of the C++ object
  std::uint64_t mask_;
};

}  // namespace shim::bindings
