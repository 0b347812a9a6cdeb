// Messages with file descriptors over unix SEQPACKET sockets.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "platform/segment.hpp"

namespace shim {

struct Message {
  std::string bytes;
  std::vector<Descriptor> files;
};

// At most this many descriptors travel with one message (the kernel's SCM_MAX_FD is 253).
inline constexpr std::size_t max_files = 128;
inline constexpr std::size_t max_message_bytes = 64 * 1024;

// Addresses are abstract: they lie in no folder and end with their owner. That of a key is a hash of it and of the
// user: who meets there must compare the keys. Every version has the same, so that versions that differ are told so.
std::string address_of(const std::string& key);
Descriptor listen_at(const std::string& address);  // empty when the address is in use
// Empty when nobody listens. Throws Failure(engine) when another user does.
Descriptor connect_to(const std::string& address);
// Empty when nobody came, or another user did. Throws Failure(engine) when there is no descriptor for who comes.
Descriptor accept_from(const Descriptor& listener, int timeout_ms);

void send_message(const Descriptor& socket, const std::string& bytes, const std::vector<int>& files);
// The next message, one with empty `bytes` when the peer hung up, or nothing within the time. Throws Failure(engine)
// when there are no descriptors for its files.
std::optional<Message> receive_message(const Descriptor& socket, int timeout_ms);

}  // namespace shim
