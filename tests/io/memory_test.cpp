#include "io/memory.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/io/temporary_folder.hpp"

using hipress::io::available_memory;
using hipress::tests::TemporaryFolder;

namespace {

/// The files of a machine with 8000 KiB available and control groups.
class Machine {
 public:
  Machine() {
    for (const char* path : {"proc/self", "cgroup/job/step", "cgroup/memory/job/step"}) {
      std::filesystem::create_directories(folder_.path(path));
    }
    folder_.file("proc/meminfo",
                 "MemTotal:       16000 kB\nMemFree:  10 kB\nMemAvailable:    8000 kB\n"
                 "Buffers: 1 kB\n");
  }
  void write(const std::string& name, const std::string& text) const { folder_.file(name, text); }
  std::int64_t available() const {
    return available_memory(folder_.path("proc"), folder_.path("cgroup"));
  }

 private:
  TemporaryFolder folder_;
};

TEST_CASE("available memory is the machine's, or less where a control group is limited") {
  const Machine machine;
  CHECK(machine.available() == 8000 * 1024);
  SECTION("version 2, a group around this process's") {
    machine.write("proc/self/cgroup", "0::/job/step\n");
    machine.write("cgroup/job/step/memory.max", "max\n");
    CHECK(machine.available() == 8000 * 1024);
    machine.write("cgroup/job/memory.max", "5000000\n");
    CHECK(machine.available() == 5'000'000);
    machine.write("cgroup/job/step/memory.max", "4000000\n");
    CHECK(machine.available() == 4'000'000);
  }
  SECTION("version 2, where the group is the root that is seen") {
    machine.write("proc/self/cgroup", "0::/\n");
    machine.write("cgroup/memory.max", "3000000\n");
    CHECK(machine.available() == 3'000'000);
  }
  SECTION("version 1") {
    machine.write("proc/self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job/step\n");
    machine.write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    machine.write("cgroup/memory/job/memory.limit_in_bytes", "2000000\n");
    CHECK(machine.available() == 2'000'000);
  }
  SECTION("what a group uses already is not available, but for cached files, at each level") {
    machine.write("proc/self/cgroup", "0::/job/step\n");
    machine.write("cgroup/job/memory.max", "5000000\n");
    machine.write("cgroup/job/step/memory.max", "4000000\n");
    machine.write("cgroup/job/step/memory.current", "1000000\n");
    CHECK(machine.available() == 3'000'000);
    machine.write("cgroup/job/memory.current", "3500000\n");
    CHECK(machine.available() == 1'500'000);
    machine.write("cgroup/job/memory.stat",
                  "anon 2000000\nfile 1500000\ninactive_file 900000\nactive_file 100000\n");
    CHECK(machine.available() == 2'500'000);
    machine.write("cgroup/job/memory.current", "6000000\n");  // the limit was lowered
    CHECK(machine.available() == 0);
  }
  SECTION("version 1 counts what a group and those in it use") {
    machine.write("proc/self/cgroup", "4:memory:/job/step\n");
    machine.write("cgroup/memory/job/memory.limit_in_bytes", "2000000\n");
    machine.write("cgroup/memory/job/memory.usage_in_bytes", "1500000\n");
    machine.write("cgroup/memory/job/memory.stat",
                  "inactive_file 1\ntotal_inactive_file 300000\ntotal_active_file 100000\n");
    CHECK(machine.available() == 900'000);  // 2000000 - (1500000 - 400000)
  }
  SECTION("nothing is known") {
    CHECK(available_memory("/nonexistent", "/nonexistent") > 0);
    machine.write("proc/self/cgroup", "nonsense\n::\n");
    CHECK(machine.available() == 8000 * 1024);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a limit on address space leaves less memory") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const auto used = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE));
    constexpr rlim_t kMore = rlim_t{64} << 20;
    const rlimit limit = {used + kMore, used + kMore};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(2);
    const std::int64_t left = available_memory();
    ::_exit(left <= std::int64_t{kMore} && left > std::int64_t{kMore} / 2 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
#endif

TEST_CASE("this machine has memory") { CHECK(available_memory() > 1'000'000); }

}  // namespace
