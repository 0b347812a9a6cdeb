// A piece of memory shared by the ranks of a group, without a name in any file system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace shim {

// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Whether a forked child has the mapping too.
enum class Inheritance { by_nobody, by_children };

// Owns one mapping of a memfd. Memory is reserved before it is touched, so a full machine is an error then and not a
// SIGBUS later; its size is sealed. It vanishes with the last process that maps it, however that process ends.
class Segment {
 public:
  // Creates zeroed memory, all of it reserved. Throws Failure(memory) when there is not enough.
  static Segment create(std::size_t bytes, Inheritance inheritance = Inheritance::by_nobody);
  // The same, of which only the first `reserved` bytes are reserved. Nobody may touch the rest, not even to read it,
  // before one of those who have it mapped has reserved that.
  static Segment create_in_part(std::size_t bytes, std::size_t reserved);
  // Maps memory created by another rank. Throws Failure(engine) unless it has `bytes` bytes and is sealed.
  static Segment attach(Descriptor file, std::size_t bytes);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&&) = delete;
  ~Segment();

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  int file() const { return file_.get(); }
  // Whether [start, start + bytes) is reserved now, for all who have the memory mapped; where not, there is not enough
  // memory. By any thread. Takes time for each page that was not there, and rounds to whole pages.
  bool reserve(std::size_t start, std::size_t bytes) const;
  // Enters all pages into this process's table at once, which is many times faster than one by one as they are touched.
  void populate();
  void close_file() { Descriptor().operator=(std::move(file_)); }
  // The same, unless reserve() needs the file: before Linux 5.14.
  void close_file_if_spare();

 private:
  static Segment create(std::size_t bytes, std::size_t reserved, Inheritance inheritance);
  Segment(Descriptor file, std::size_t bytes, Inheritance inheritance);

  Descriptor file_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Inheritance inheritance_;
  std::uint64_t generation_;
};

}  // namespace shim
