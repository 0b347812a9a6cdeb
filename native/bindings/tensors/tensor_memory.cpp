#include "bindings/tensors/tensor_memory.hpp"

#include <memory>
#include <unordered_map>

namespace nb = nanobind;

namespace shim::bindings {
namespace {

constexpr std::size_t storage_words = 10;  // of torch's object, that are looked at

// How many calls use what was resizable before the first of them. Guarded by the GIL.
std::unordered_map<const void*, int>& users() {
  static auto* counts = new std::unordered_map<const void*, int>();
  return *counts;
}

}  // namespace

const TensorMemory& TensorMemory::of(nb::handle memory) {
  static auto* known = new std::unordered_map<PyObject*, std::unique_ptr<TensorMemory>>();
  std::unique_ptr<TensorMemory>& made = (*known)[memory.ptr()];
  if (made == nullptr) {
    made.reset(new TensorMemory(memory));
    memory.inc_ref();
  }
  return *made;
}

TensorMemory::TensorMemory(nb::handle memory)
    : hold_(memory.attr("hold")), may_be_resized_(TensorBit::find(memory.attr("samples"), storage_words)) {
  if (may_be_resized_) kind_ = Py_TYPE(nb::object(memory.attr("samples")[0][0]).ptr());
}

// A program's subclass of tensors may give anything in place of what the framework gives.
bool TensorMemory::is_known(nb::handle held) const { return may_be_resized_ && Py_TYPE(held.ptr()) == kind_; }

nb::object TensorMemory::hold(nb::handle tensor) const {
  nb::object held = nb::steal(PyObject_CallFunctionObjArgs(hold_.ptr(), tensor.ptr(), nullptr));
  if (!held.is_valid()) {
    PyErr_Clear();  // the tensor itself is held all the same
    return held;
  }
  if (!is_known(held)) return held;
  const void* const storage = may_be_resized_->object_of(held);
  if (const auto found = users().find(storage); found != users().end()) {
    ++found->second;
  } else if (may_be_resized_->is_set(held)) {
    users().emplace(storage, 1);
    may_be_resized_->set(held, false);
  }
  return held;
}

void TensorMemory::release(nb::handle held) const {
  if (!is_known(held)) return;
  const auto found = users().find(may_be_resized_->object_of(held));
  if (found == users().end() || --found->second > 0) return;
  users().erase(found);
  may_be_resized_->set(held, true);
}

}  // namespace shim::bindings
