// Messages with file descriptors over unix SEQPACKET sockets.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "segment.hpp"

namespace shim {

struct Message {
  std::string bytes;
  std::vector<Descriptor> files;
};

// At most this many descriptors travel with one message (the kernel's SCM_MAX_FD is 253).
inline constexpr std::size_t max_files = 128;
inline constexpr std::size_t max_message_bytes = 64 * 1024;

// The socket's address is a hash of the key and the user: abstract, so it lies in no folder and ends with its owner.
Descriptor listen_at(const std::string& key);                        // empty when the address is in use
Descriptor connect_to(const std::string& key);                       // empty when nobody listens
Descriptor accept_from(const Descriptor& listener, int timeout_ms);  // empty when nobody came, or another user did

void send_message(const Descriptor& socket, const std::string& bytes, const std::vector<int>& files);
// The next message, one with empty `bytes` when the peer hung up, or nothing within the time.
std::optional<Message> receive_message(const Descriptor& socket, int timeout_ms);

// What comes behind the first `separator`; nothing where there is none.
inline std::string behind(char separator, const std::string& text) {
  const std::size_t at = text.find(separator);
  return at == std::string::npos ? "" : text.substr(at + 1);
}

}  // namespace shim
