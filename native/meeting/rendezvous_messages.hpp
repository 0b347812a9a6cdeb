// What the ranks of a group say to each other while they meet. Any process of the same user could come to the socket,
// so that nothing of what is heard is believed.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "meeting/rendezvous.hpp"
#include "platform/failure.hpp"
#include "platform/processors.hpp"

namespace shim {

inline constexpr int rendezvous_slice_ms = 50;                          // how late Ctrl-C and deadlines are noticed
inline constexpr auto rendezvous_pause = std::chrono::milliseconds(1);  // between two tries
inline constexpr auto join_patience = std::chrono::seconds(5);  // for what ranks that have come in time do after that

// Each message after the hello begins with one of these letters.
inline constexpr char welcome = '+';      // rank 0: the memory
inline constexpr char files = 'p';        // rank 0: the next pidfds, from rank 0's own on
inline constexpr char joined = 'j';       // the others: they have all that they need
inline constexpr char all_joined = 'b';   // rank 0: so have all
inline constexpr char refusal = '!';      // either: why there will be no group
inline constexpr char another_job = '?';  // rank 0: that it is another job's, and which process

// What a rank says first to rank 0, and a process that wants to be rank 0 to the one that is.
struct Hello {
  int rank = 0;
  Processors processors;  // that it may run on
  std::string identity;   // what all ranks of the group must agree on, as they would tell it to a person
  Origin origin;
  std::string key;  // the meeting's; versions before 21 did not say it
};

std::string identity_of(const Meeting& meeting);
std::string text_of(const Hello& hello);
// Nothing where no rank of any version from 7 on would say that.
std::optional<Hello> hello_in(const std::string& text);

std::string text_of_refusal(const Failure& failure);
// An engine failure for what is no refusal.
Failure refusal_in(const std::string& text);

// Says hello, with this process's pidfd. Throws Failure(engine) where there is none, of which the other end hears next.
void introduce(const Descriptor& socket, const Meeting& meeting);
// Nothing happens where there is no socket, or what is said cannot be sent.
void refuse(const Descriptor& socket, const Failure& failure);

}  // namespace shim
