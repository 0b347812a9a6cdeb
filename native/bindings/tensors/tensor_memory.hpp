// Keeps the memory of a tensor where it is while a call in the background uses it, whatever its framework does with the
// tensor meanwhile: gives it other memory, or gives its memory back.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "bindings/tensors/tensor_bit.hpp"

namespace shim::bindings {

// Of the tensors of one framework. Used with the GIL; Python objects in it are never released before the interpreter
// ends.
class TensorMemory {
 public:
  // Of a shim.core.tensors.samples.Memory; the same one for the same object.
  static const TensorMemory& of(nanobind::handle memory);

  // What holds the memory; nothing where the framework cannot say.
  nanobind::object hold(nanobind::handle tensor) const;
  void release(nanobind::handle held) const;

 private:
  explicit TensorMemory(nanobind::handle memory);

  bool is_known(nanobind::handle held) const;

  nanobind::object hold_;
  PyTypeObject* kind_ = nullptr;             // of what holds memory: the samples have told where its bit lies
  std::optional<TensorBit> may_be_resized_;  // of what holds it: while it is clear, the framework refuses to
};

// What holds the memory of one tensor until it goes.
class HeldMemory {
 public:
  HeldMemory(const TensorMemory& memory, nanobind::handle tensor) : memory_(&memory), held_(memory.hold(tensor)) {}
  ~HeldMemory() {
    if (held_.is_valid()) memory_->release(held_);
  }
  HeldMemory(HeldMemory&&) = default;
  HeldMemory& operator=(HeldMemory&&) = delete;

 private:
  const TensorMemory* memory_;
  nanobind::object held_;
};

}  // namespace shim::bindings
