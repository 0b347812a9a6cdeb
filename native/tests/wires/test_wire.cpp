// What is sent over a wire comes whole, in order, to the group that it is for.
#include "wires/wire.hpp"

#include <sys/socket.h>

#include <optional>
#include <string>

#include "tests/check.hpp"

using namespace shim;

SHIM_TEST(frames_of_all_groups_and_sizes_come) {
  int ends[2];
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  Wire here{Descriptor(ends[0])};
  Wire there{Descriptor(ends[1])};
  for (const std::size_t bytes : {0, 1, 15, 16, 17, 1000, 65520, 65536, 3'000'000, 5}) {
    std::string frame(bytes, 'a');
    if (bytes > 0) frame.back() = 'z';
    here.send(1, frame);
    here.send(2, "other");
    std::optional<std::string> came;
    while (!(came = there.take(1))) here.flush(2);
    CHECK(*came == frame);
    while (!(came = there.take(2))) here.flush(2);
    CHECK_EQUAL(*came, std::string("other"));
  }
  there.forget(1);
  here.send(1, "late");
  here.send(2, "last");
  CHECK(!there.take(1));
  CHECK_EQUAL(there.take(2).value_or(""), std::string("last"));
}
