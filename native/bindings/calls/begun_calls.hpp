// Started calls: the frameworks are told when each has ended, whether or not the program waits for it. All functions
// need the GIL.
#pragma once

#include <memory>

#include "bindings/calls/work.hpp"
#include "platform/failure.hpp"

namespace shim::bindings {

// Whether a call that has failed so has left its outputs as they were: it was refused before it moved any data.
inline bool has_written_nothing(const Failure& failure) {
  return failure.kind == FailureKind::mismatch || failure.kind == FailureKind::memory;
}

void note_begin(const std::shared_ptr<PreparedCall>& call);
// For a call whose wait has ended, perhaps before the call has: another thread may still carry it out.
void keep_until_end(const std::shared_ptr<PreparedCall>& call);
// For a call that could not be started.
void take_from_begun(PreparedCall& call);
// Tells the frameworks, once, that the outputs have been written, if they may have been: what was kept of them
// meanwhile is no longer valid.
void note_end(const std::shared_ptr<PreparedCall>& call);
// Does so for all started calls that have ended.
void note_ends();
// The same, at no cost where none has ended since.
void note_ends_if_asked();

}  // namespace shim::bindings
