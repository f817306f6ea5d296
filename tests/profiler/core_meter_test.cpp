// Tests a core meter whose threads cannot be started.

#include "profiler/core_meter.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <system_error>
#include <vector>

namespace hipress::profiler {
namespace {

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// Bytes of address space that this process uses.
rlim_t address_space() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

TEST_CASE("a core meter that gets no more threads ends those it has") {
  // Runs in a child process that has room for the stacks of only some of the threads.
  const pid_t child = fork();
  if (child == 0) {
    constexpr rlim_t kRoom = 64 << 20;
    const rlim_t most = address_space() + kRoom;
    const rlimit limit{.rlim_cur = most, .rlim_max = most};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    try {
      const CoreMeter meter(std::vector<int>(1000, 0), CoreMeter::Leaves::kAfterATurn);
    } catch (const std::system_error&) {
      _exit(0);
    } catch (...) {
      _exit(3);
    }
    _exit(4);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
#endif

}  // namespace
}  // namespace hipress::profiler
