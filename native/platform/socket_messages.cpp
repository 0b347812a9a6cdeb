#include "platform/socket_messages.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>

#include "platform/failure.hpp"

namespace shim {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw Failure(FailureKind::engine, what + ": " + std::strerror(errno));
}

constexpr int longest_pauses = 10'000;  // milliseconds for others to take the descriptors that are under way

std::uint64_t fnv1a(const std::string& text, std::uint64_t hash) {
  for (const unsigned char c : text) hash = (hash ^ c) * 0x100000001b3ULL;
  return hash;
}

struct SocketName {
  sockaddr_un name{};
  socklen_t bytes = 0;
};

SocketName abstract(const std::string& address) {
  SocketName socket;
  socket.name.sun_family = AF_UNIX;
  const std::size_t length = address.copy(socket.name.sun_path + 1, sizeof(socket.name.sun_path) - 1);
  socket.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return socket;
}

Descriptor new_socket() {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) fail("cannot make a socket");
  return socket;
}

bool is_same_user(const Descriptor& socket) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == ::geteuid();
}

bool is_readable(const Descriptor& socket, int timeout_ms) {
  pollfd entry{socket.get(), POLLIN, 0};
  return ::poll(&entry, 1, timeout_ms) > 0;
}

}  // namespace

std::string address_of(const std::string& key) {
  char address[64];
  std::snprintf(address, sizeof(address), "shim-%u-%016llx%016llx", static_cast<unsigned>(::geteuid()),
                static_cast<unsigned long long>(fnv1a(key, 0xcbf29ce484222325ULL)),
                static_cast<unsigned long long>(fnv1a(key, 0x84222325cbf29ce4ULL)));
  return address;
}

Descriptor listen_at(const std::string& address) {
  Descriptor socket = new_socket();
  const SocketName name = abstract(address);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name.name), name.bytes) != 0) {
    if (errno == EADDRINUSE) return {};
    fail("cannot bind a socket");
  }
  if (::listen(socket.get(), SOMAXCONN) != 0) fail("cannot listen on a socket");
  return socket;
}

Descriptor connect_to(const std::string& address) {
  Descriptor socket = new_socket();
  const SocketName name = abstract(address);
  ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);  // who is stopped while many want to connect would keep all waiting
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name.name), name.bytes) != 0) {
    if (errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR) return {};
    fail("cannot connect a socket");
  }
  ::fcntl(socket.get(), F_SETFL, 0);
  if (!is_same_user(socket))
    throw Failure(FailureKind::engine, "socket " + address + " belongs to a process of another user");
  return socket;
}

Descriptor accept_from(const Descriptor& listener, int timeout_ms) {
  if (!is_readable(listener, timeout_ms)) return {};
  Descriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
    fail("cannot let another rank in");
  if (!socket || !is_same_user(socket)) return {};
  return socket;
}

void send_message(const Descriptor& socket, const std::string& bytes, const std::vector<int>& files) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(max_files * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!files.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(files.size() * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), files.data(), files.size() * sizeof(int));
  }
  for (int attempt = 0; ::sendmsg(socket.get(), &header, MSG_NOSIGNAL) < 0; ++attempt) {
    if (errno == EPIPE || errno == ECONNRESET) return;  // it is noticed when the peer is next listened to
    if (errno != ETOOMANYREFS || attempt == longest_pauses) fail("cannot send to another rank");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the others have to take what was sent before
  }
}

std::optional<Message> receive_message(const Descriptor& socket, int timeout_ms) {
  if (!is_readable(socket, timeout_ms)) return std::nullopt;
  Message message;
  message.bytes.resize(max_message_bytes);
  iovec part{message.bytes.data(), message.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(max_files * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  ssize_t received = ::recvmsg(socket.get(), &header, MSG_CMSG_CLOEXEC);
  // A peer that hung up with something of ours unread: what it said before is still there.
  if (received < 0 && errno == ECONNRESET) received = ::recvmsg(socket.get(), &header, MSG_CMSG_CLOEXEC);
  message.bytes.resize(received < 0 ? 0 : static_cast<std::size_t>(received));
  for (cmsghdr* rights = CMSG_FIRSTHDR(&header); rights != nullptr; rights = CMSG_NXTHDR(&header, rights)) {
    if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(rights) + i * sizeof(int), sizeof(int));
      message.files.emplace_back(fd);
    }
  }
  if (received >= 0 && (header.msg_flags & MSG_CTRUNC) != 0 && message.files.size() < max_files) {
    errno = EMFILE;
    fail("cannot take the files that another rank sends");
  }
  return message;
}

}  // namespace shim
