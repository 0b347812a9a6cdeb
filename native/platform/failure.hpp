// The errors of the engine; bindings turn each kind into one class of shim/errors.py.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace shim {

// Their numbers are what ranks of different versions tell each other: new ones come last.
enum class FailureKind { argument, rank, tensor, state, mismatch, engine, peer_lost, timeout, memory };

// Messages name arguments by role ({output}, {input}), which the caller's frontend replaces by its own names.
class Failure : public std::runtime_error {
 public:
  Failure(FailureKind kind, const std::string& message, std::vector<int> ranks = {})
      : std::runtime_error(message), kind(kind), ranks(std::move(ranks)) {}

  FailureKind kind;
  std::vector<int> ranks;  // group ranks that were lost, or had not arrived
};

// The waiting thread was told to stop waiting (Ctrl-C). The group cannot be used afterwards.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

}  // namespace shim
