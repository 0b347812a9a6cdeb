// How many times a framework's tensor was written in place. Its autograd compares that with what it was when a tensor
// was kept for a gradient; a collective writes behind the framework's back, and has to raise it.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace shim::bindings {

// Of the tensors of one framework: their objects begin alike. Used with the GIL; Python objects in it are never
// released before the interpreter ends.
class TensorVersion {
 public:
  // Of a shim.core.tensors.samples.Versions; the same one for the same object.
  static const TensorVersion& of(nanobind::handle versions);

  // Where the samples have shown where the number is, this takes 2 ns; else the framework's function is called.
  void raise(nanobind::handle tensor) const;

 private:
  struct Place {
    std::size_t object;   // the word of the Python object that points to the C++ object
    std::size_t counter;  // the word of that which points to what holds the number; null where nothing is counted
    std::size_t part;     // the 32 bits of it
  };

  explicit TensorVersion(nanobind::handle versions);
  static std::optional<Place> find(nanobind::handle versions);
  static bool is_right(const Place& place, nanobind::handle versions);
  static std::uint32_t* number_at(const Place& place, nanobind::handle tensor);

  nanobind::object raise_;
  std::optional<Place> place_;
};

}  // namespace shim::bindings
