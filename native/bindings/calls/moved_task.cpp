#include "bindings/calls/moved_task.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

#include "bindings/calls/python_functions.hpp"
#include "group/descriptions.hpp"
#include "messages/end_listener.hpp"
#include "messages/transfer.hpp"

namespace nb = nanobind;

namespace shim::bindings {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto on_its_way = std::chrono::milliseconds(300);  // for what a rank has sent before it went

// What the memory of a transfer belongs to, which may be under way for longer than its task is there.
struct Owned {
  std::shared_ptr<Buffer> buffer;
  nb::object tensor;
};

nb::object memory_of(const std::shared_ptr<Buffer>& buffer, const nb::object& tensor) {
  static std::byte nothing;
  const nb::capsule owner(new Owned{buffer, tensor}, [](void* owned) noexcept { delete static_cast<Owned*>(owned); });
  void* const start = buffer->data() == nullptr ? &nothing : buffer->data();
  return nb::cast(nb::ndarray<nb::memview, std::uint8_t, nb::ndim<1>>(start, {buffer->bytes()}, owner));
}

}  // namespace

MovedTask::MovedTask(std::shared_ptr<Member> member, const TensorView& view, nb::object tensor, bool is_send, int peer,
                     nb::object mover)
    : end_(std::make_shared<End>(std::move(member))),
      group_(end_->member->group),
      buffer_(std::make_shared<Buffer>(view)),
      tensor_(std::move(tensor)),
      dtype_(view.dtype),
      is_send_(is_send),
      peer_(peer),
      mover_(std::move(mover)) {}

MovedTask::~MovedTask() {
  const PythonLock lock;
  if (is_started_ && !end_->has_come.load() && group_.is_of_this_process()) withdraw();
  mover_.reset();
  tensor_.reset();
}

void MovedTask::withdraw() {
  const nb::error_scope pending;
  try {
    mover_.attr("withdraw")();
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("withdraw");
  }
}

void MovedTask::start() {
  if (is_started_) return;
  group_.check_usable();
  try {
    is_send_ ? buffer_->load() : buffer_->reserve();
  } catch (const std::bad_alloc&) {
    throw Failure(FailureKind::memory, "there is not enough memory to copy {tensor}, which is not contiguous");
  }
  is_started_ = true;
  const auto ended = [end = end_] {
    end->has_come.store(true);
    end->member->group.ring_bell(end->member->group.rank());
    tell_end_listener();
  };
  called_method(mover_, "start",
                nb::make_tuple(memory_of(buffer_, tensor_), std::string(name_of(dtype_)), nb::cpp_function(ended)),
                true);
}

// A rank may tell that it leaves before the last of its messages is here.
bool MovedTask::may_miss(int rank) {
  if (rank != peer_) return true;
  if (!group_.is_gone(rank)) return false;
  if (!seen_gone_) seen_gone_ = Clock::now();
  return Clock::now() < *seen_gone_ + on_its_way;
}

void MovedTask::wait(double timeout) {
  group_.check_this_process();
  {
    const PythonLock lock;
    start();
  }
  const auto deadline = deadline_after(timeout);
  const auto is_late = [&] { return deadline != Clock::time_point::max() && Clock::now() > deadline; };
  const auto is_ready = [&](int rank) {
    if (end_->has_come.load() || is_late()) return true;
    if (rank == group_.rank()) return false;
    // Another rank than the peer may go without harm; any of them may be the one, so none is missed until all are.
    return peer_ == Transfer::any_rank ? !group_.peers().are_all_gone() : may_miss(rank);
  };
  try {
    if (!end_->has_come.load()) {
      group_.wait_for(group_.rank(), is_ready, [this] {
        const std::string where = peer_ == Transfer::any_rank ? "any rank" : rank_label(group_, peer_);
        return (is_send_ ? "sending " : "receiving ") + elements_in(dtype_, buffer_->bytes()) +
               (is_send_ ? " to " : " from ") + where;
      });
    }
  } catch (const Failure& failure) {
    const PythonLock lock;
    withdraw();
    is_concluded_ = true;
    failure_ = failure;
    throw;
  }
  const PythonLock lock;
  if (!is_completed()) throw wait_timeout();
  if (failure_) throw *failure_;
}

bool MovedTask::is_completed() const {
  if (!is_concluded_ && end_->has_come.load()) conclude();
  return is_concluded_;
}

std::optional<Failure> MovedTask::failure() const { return is_completed() ? failure_ : std::nullopt; }

void MovedTask::conclude() const {
  is_concluded_ = true;
  source_ = nb::cast<int>(mover_.attr("source"));
  try {
    called_method(mover_, "check", nb::make_tuple(), true);
  } catch (const Failure& failure) {
    failure_ = failure;
    return;
  }
  if (!is_send_) buffer_->store();
}

}  // namespace shim::bindings
