#include "io/input_file.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "io/descriptors.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "tests/io/child.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace hipress::io;
using hipress::tests::Child;
using hipress::tests::complaint;
using hipress::tests::TemporaryFolder;
using namespace std::chrono_literals;

namespace {

/// Makes a named pipe. Tests start the writers.
std::string make_pipe(const TemporaryFolder& folder) {
  const std::string path = folder.path("pipe");
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  return path;
}

constexpr ReadLimits kSoon = {.writer = 100ms, .pipe = 200ms};

std::string complaint_of(const std::string& path, const ReadLimits& limits = {}) {
  return complaint([&] { read_file(path, limits); });
}

}  // namespace

TEST_CASE("only regular files and pipes are inputs") {
  const TemporaryFolder folder;
  const std::string device = ": is a device or terminal, give a regular file or a pipe";
  for (const std::string path : {"/dev/zero", "/dev/null", "/dev/full"}) {
    CHECK(complaint_of(path) == path + device);
  }
  CHECK(complaint_of("") == "the name of a file to read is empty; give one");
  CHECK(complaint_of(folder.path("")) ==
        folder.path("") + ": is a folder, give the name of a file");

  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = folder.path("socket");
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const Descriptor listener(::socket(AF_UNIX, SOCK_STREAM, 0));
  REQUIRE(::bind(listener.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
          0);
  CHECK(complaint_of(path) == path + ": is a socket, give a regular file or a pipe");
}

TEST_CASE("an error of reading is not the end of the file") {
  // No memory is mapped at a process's address 0, so reading there fails with EIO.
  CHECK(complaint_of("/proc/self/mem") == "/proc/self/mem: cannot be read: Input/output error");
}

TEST_CASE("a file that waits for more to come is refused at once") {
  // Root may read the kernel's log, which waits for more; other users may not. Both get an error.
  CHECK_THAT(complaint_of("/proc/kmsg"), Catch::StartsWith("/proc/kmsg: "));
}

TEST_CASE("a file larger than the limit is refused, not cut off") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x", std::string(100, 'x'));
  CHECK(read_file(path, {.most_bytes = 100}) == std::string(100, 'x'));
  CHECK(complaint_of(path, {.most_bytes = 99}) ==
        path + ": has 100B, more than the 99B that are read of such a file");
  // Files in /proc have size 0.
  CHECK(complaint_of("/proc/self/status", {.most_bytes = 10}) ==
        "/proc/self/status: has more than the 10B that are read of such a file");
}

TEST_CASE("a pipe is read to its end") {
  const TemporaryFolder folder;
  const std::string path = make_pipe(folder);
  SECTION("in pieces, from a writer that comes late") {
    std::jthread writer([&] {
      std::this_thread::sleep_for(50ms);
      std::ofstream pipe(path);
      pipe << std::string(100'000, 'a') << std::flush;
      std::this_thread::sleep_for(50ms);
      pipe << "b";
    });
    CHECK(read_file(path) == std::string(100'000, 'a') + "b");
  }
  SECTION("that is empty") {
    std::jthread writer([&] { std::ofstream pipe(path); });
    CHECK(read_file(path).empty());
  }
  SECTION("as /dev/fd/N, which a shell makes of <(command)") {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const Descriptor from(ends[0]);
    {
      const Descriptor to(ends[1]);
      REQUIRE(::write(to.number(), "text", 4) == 4);
    }
    const std::string path_of_end = "/dev/fd/" + std::to_string(from.number());
    const InputScope scope;
    CHECK(read_file(path_of_end) == "text");
    CHECK(read_file(path_of_end) == "text");  // the scope keeps it
    const InputScope inner;
    CHECK(read_file(path_of_end).empty());  // another scope reads on, from the pipe's end
  }
  SECTION("again, where another writer has come") {
    const auto answer = [&](const std::string& text) {
      std::jthread writer([&] { std::ofstream(path) << text; });
      return read_file(path);
    };
    CHECK(answer("one") == "one");
    std::this_thread::sleep_for(20ms);  // longer than the resolution of file times
    const Descriptor open(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(::write(open.number(), "two", 3) == 3);
    CHECK_THAT(complaint_of(path, kSoon), Catch::Contains("has not finished"));
  }
}

TEST_CASE("a pipe does not hang its reader") {
  const TemporaryFolder folder;
  const std::string path = make_pipe(folder);
  SECTION("without a writer") {
    CHECK(complaint_of(path, kSoon) ==
          path +
              ": no process has opened this pipe for writing within 100ms; start its writer "
              "first, or give a regular file");
  }
  SECTION("with a writer that does not finish") {
    const Descriptor writer(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(::write(writer.number(), "half", 4) == 4);
    CHECK(complaint_of(path, kSoon) ==
          path +
              ": the writer of this pipe has not finished within 200ms; let it write to a "
              "regular file first, and give that");
  }
  SECTION("with a writer that never stops") {
    const Descriptor first(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    std::jthread writer([&](const std::stop_token& stop) {
      const Descriptor pipe(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
      while (!stop.stop_requested()) {
        if (::write(pipe.number(), "xxxxxxxx", 8) < 0) std::this_thread::sleep_for(1ms);
      }
    });
    CHECK_THAT(complaint_of(path, {.most_bytes = 100'000}),
               Catch::Contains("has more than the 100kB that are read"));
    CHECK_THAT(complaint_of(path, kSoon), Catch::Contains("has not finished within 200ms"));
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a file that does not fit into memory is a failed run") {
  const TemporaryFolder folder;
  const std::string path = folder.path("large");
  REQUIRE(std::ofstream(path).good());
  constexpr std::uintmax_t kBytes = std::uintmax_t{512} << 20;
  std::filesystem::resize_file(path, kBytes);  // a sparse file
  Child child([&](const Child::Ready&) {
    // Limits the process to kBytes / 2 in all.
    const rlimit limit{.rlim_cur = kBytes / 2, .rlim_max = kBytes / 2};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) return 9;
    try {
      read_file(path);
    } catch (const RunError& error) {
      return std::string(error.what()).starts_with(path + ": cannot be read: out of memory: ") ? 0
                                                                                               : 1;
    }
    return 2;
  });
  CHECK(child.end() == 0);
}
#endif
