#include "transport/tcp_stream.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace hipress::transport {
namespace {

using Catch::Contains;

constexpr int kSlot = 3;

std::pair<Socket, Socket> connected_pair() {
  int ends[2] = {-1, -1};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  return {Socket(ends[0]), Socket(ends[1])};
}

void say(const Socket& to, const void* bytes, std::size_t count) {
  REQUIRE(::send(to.number(), bytes, count, MSG_NOSIGNAL) == static_cast<ssize_t>(count));
}

/// Sends a header and `bytes`, whose number may differ from the header's.
void say_frame(const Socket& to, const FrameHeader& header, std::vector<char> bytes = {}) {
  const auto* const begin = reinterpret_cast<const char*>(&header);
  bytes.insert(bytes.begin(), begin, begin + sizeof header);
  say(to, bytes.data(), bytes.size());
}

/// A window between memory that no frame may touch.
struct Guarded {
  std::vector<std::byte> memory = std::vector<std::byte>(300, std::byte{0x11});
  std::span<std::byte> window = std::span(memory).subspan(100, 100);

  bool only_window_changed() const {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      if ((i < 100 || i >= 200) && memory[i] != std::byte{0x11}) return false;
    }
    return true;
  }
};

TEST_CASE("a frame that does not lie within its window is refused, and ends the connection") {
  struct Wrong {
    FrameHeader header;
    const char* complaint;
  };
  constexpr std::uint64_t kBefore = 0x41000;
  const Wrong wrong = GENERATE_COPY(
      Wrong{{.window_offset = 0, .bytes = 101, .slot = kSlot}, "101 bytes for offset 0"},
      Wrong{{.window_offset = 100, .bytes = 1, .slot = kSlot}, "1 bytes for offset 100"},
      Wrong{{.window_offset = std::uint64_t{1} << 46, .bytes = 32, .slot = kSlot}, "offset"},
      // offset + bytes wraps to 32
      Wrong{{.window_offset = std::uint64_t{0} - kBefore, .bytes = kBefore + 32, .slot = kSlot},
            "of a window of 100"},
      Wrong{{.window_offset = 0, .bytes = 0xffffffff, .slot = kSlot}, "of a window of 100"},
      Wrong{{.window_offset = 0, .bytes = 1, .slot = kSlot + 1}, "window 4, which is not there"},
      Wrong{{.window_offset = 0, .bytes = 1, .slot = -1}, "window -1, which is not there"});
  auto [theirs, ours] = connected_pair();
  InStream stream;
  Guarded memory;
  stream.expose(kSlot, memory.window);
  stream.connect(std::move(ours));
  say_frame(theirs, wrong.header, std::vector<char>(64, 'x'));
  CHECK_THROWS_WITH(stream.wait(kSlot), Contains(wrong.complaint));
  CHECK_THROWS_AS(stream.wait(kSlot), WireClosed);
  CHECK(memory.only_window_changed());
}

TEST_CASE("frames arrive whole however they are cut, also with no bytes at all") {
  auto [theirs, ours] = connected_pair();
  InStream stream;
  Guarded memory;
  stream.expose(kSlot, memory.window);
  stream.connect(std::move(ours));
  say_frame(theirs, {.window_offset = 0, .bytes = 0, .slot = kSlot});
  stream.wait(kSlot);
  const FrameHeader header{.window_offset = 10, .bytes = 2, .slot = kSlot};
  std::thread piecemeal([&theirs = theirs, &header] {
    const auto* const bytes = reinterpret_cast<const char*>(&header);
    for (std::size_t i = 0; i < sizeof header; ++i) ::send(theirs.number(), bytes + i, 1, 0);
    for (const char c : {'a', 'b'}) ::send(theirs.number(), &c, 1, 0);
  });
  stream.wait(kSlot);
  piecemeal.join();
  CHECK(memory.window[10] == std::byte{'a'});
  CHECK(memory.window[11] == std::byte{'b'});
  CHECK(memory.only_window_changed());
}

TEST_CASE("puts that were complete before the other end closed are all there") {
  auto [theirs, ours] = connected_pair();
  InStream stream;
  Guarded memory;
  stream.expose(kSlot, memory.window);
  stream.connect(std::move(ours));
  for (const char c : {'a', 'b'}) say_frame(theirs, {.bytes = 1, .slot = kSlot}, {c});
  theirs.close();
  stream.wait(kSlot);
  stream.wait(kSlot);
  CHECK(memory.window[0] == std::byte{'b'});
  CHECK_THROWS_AS(stream.wait(kSlot), WireClosed);
}

TEST_CASE("nothing is written to a window once the stream is closed") {
  auto [theirs, ours] = connected_pair();
  InStream stream;
  Guarded memory;
  std::vector<std::byte> other(1);
  stream.expose(kSlot, memory.window);
  stream.expose(kSlot + 1, other);
  stream.connect(std::move(ours));
  say_frame(theirs, {.bytes = 1, .slot = kSlot}, {'a'});
  stream.wait(kSlot);
  say_frame(theirs, {.bytes = 1, .slot = kSlot + 1}, {'b'});
  stream.close();
  CHECK_THROWS_AS(stream.wait(kSlot + 1), WireClosed);
  CHECK(other[0] == std::byte{0});
}

TEST_CASE("a window that is withdrawn is not written to, and what was complete before is there") {
  auto [theirs, ours] = connected_pair();
  InStream stream;
  Guarded memory;
  std::vector<std::byte> other(4);
  stream.expose(kSlot, memory.window);
  stream.expose(kSlot + 1, other);
  stream.connect(std::move(ours));
  SECTION("before a frame for it") {
    stream.withdraw(kSlot + 1);
    say_frame(theirs, {.bytes = 1, .slot = kSlot}, {'a'});
    say_frame(theirs, {.bytes = 1, .slot = kSlot + 1}, {'b'});
    stream.wait(kSlot);
    CHECK_THROWS_WITH(stream.wait(kSlot), Contains("window 4, which is not there"));
  }
  SECTION("in the middle of one") {
    say_frame(theirs, {.bytes = 1, .slot = kSlot}, {'a'});
    say_frame(theirs, {.bytes = 4, .slot = kSlot + 1}, {'b', 'c'});
    stream.wait(kSlot);  // reads the beginning of the next frame, too
    stream.withdraw(kSlot + 1);
    std::ranges::fill(other, std::byte{0});
    ::send(theirs.number(), "de", 2, MSG_NOSIGNAL);  // may fail, because the connection is over
    CHECK_THROWS_AS(stream.wait(kSlot), WireClosed);
  }
  SECTION("while a wait reads one") {
    std::thread reader([&] {
      try {
        stream.wait(kSlot);
      } catch (const std::runtime_error&) {  // withdrawn in the frame, or before it
      }
    });
    say_frame(theirs, {.bytes = 4, .slot = kSlot + 1}, {'b', 'c'});
    stream.withdraw(kSlot + 1);
    std::ranges::fill(other, std::byte{0});
    ::send(theirs.number(), "de", 2, MSG_NOSIGNAL);
    reader.join();
  }
  CHECK(memory.only_window_changed());
  CHECK(other == std::vector<std::byte>(4));
}

TEST_CASE("a wait ends when the stream is closed meanwhile") {
  auto [theirs, ours] = connected_pair();
  InStream stream;
  Guarded memory;
  stream.expose(kSlot, memory.window);
  stream.connect(std::move(ours));
  std::thread closer([&stream] { stream.close(); });
  CHECK_THROWS_AS(stream.wait(kSlot), WireClosed);
  closer.join();
}

TEST_CASE("puts that the kernel has no room for wait, and arrive in their order") {
  auto [ours, theirs] = connected_pair();
  std::atomic<int> wanted = 0;
  OutStream out;
  InStream in;
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  constexpr int kPuts = 4;
  std::vector<std::byte> source(kBytes * kPuts), destination(kBytes * kPuts);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i % 251);
  out.connect(std::move(ours), [&wanted] { ++wanted; });
  in.expose(kSlot, destination);
  in.connect(std::move(theirs));
  OutStream::Progress progress;
  for (std::size_t put = 0; put < kPuts; ++put) {
    out.put(kSlot, std::span(source).subspan(put * kBytes, kBytes), put * kBytes, progress);
  }
  CHECK(wanted == 1);  // the first put wants room; the others wait behind it
  std::thread sender([&] {
    while (progress.waited < kPuts) {
      out.continue_sending();
      if (progress.left > progress.waited) out.wait(progress);
    }
  });
  for (int put = 0; put < kPuts; ++put) in.wait(kSlot);
  sender.join();
  CHECK(source == destination);
}

TEST_CASE("a put that was forgotten in its middle ends the connection") {
  auto [ours, theirs] = connected_pair();
  OutStream out;
  out.connect(std::move(ours), [] {});
  const std::vector<std::byte> source(std::size_t{8} << 20);
  OutStream::Progress first, second;
  out.put(kSlot, source, 0, first);
  out.put(kSlot, source, 0, second);
  REQUIRE(first.left == 0);
  out.forget(second);
  CHECK_NOTHROW(out.put(kSlot, source, 0, second));  // nothing of it had been sent
  out.forget(first);
  CHECK_THROWS_AS(out.put(kSlot, source, 0, second), WireClosed);
  CHECK_THROWS_AS(out.wait(first), WireClosed);
}

}  // namespace
}  // namespace hipress::transport
