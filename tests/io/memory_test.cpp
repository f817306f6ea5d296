#include "io/memory.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/io/temporary_folder.hpp"

using hipress::io::available_memory;
using hipress::tests::TemporaryFolder;

namespace {

/// Files in /proc and /sys/fs/cgroup of a machine with 8000 KiB of available memory.
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
    machine.write("cgroup/job/memory.current", "6000000\n");  // more than the limit, which was
                                                              // lowered
    CHECK(machine.available() == 0);
  }
  SECTION("version 1 counts what a group and those in it use") {
    machine.write("proc/self/cgroup", "4:memory:/job/step\n");
    machine.write("cgroup/memory/job/memory.limit_in_bytes", "2000000\n");
    machine.write("cgroup/memory/job/memory.usage_in_bytes", "1500000\n");
    machine.write("cgroup/memory/job/memory.stat",
                  "inactive_file 1\ntotal_inactive_file 300000\ntotal_active_file 100000\n");
    CHECK(machine.available() == 900'000);  // limit 2000000 - (usage 1500000 - cached 400000)
  }
  SECTION("nothing is known") {
    CHECK(available_memory("/nonexistent", "/nonexistent") > 0);
    machine.write("proc/self/cgroup", "nonsense\n::\n");
    CHECK(machine.available() == 8000 * 1024);
  }
}

TEST_CASE("this machine has memory") { CHECK(available_memory() > 1'000'000); }

TEST_CASE("a limit on address space leaves what this process has not taken") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  std::int64_t pages = 0;
  REQUIRE(std::ifstream("/proc/self/statm") >> pages);
  constexpr std::int64_t kLeft = 64 << 20;
  const std::int64_t limit = pages * ::sysconf(_SC_PAGESIZE) + kLeft;
  const rlimit lower{.rlim_cur = static_cast<rlim_t>(limit), .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_AS, &lower) == 0);
  const std::int64_t available = available_memory();
  REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(available <= kLeft);
  CHECK(available > kLeft / 2);
}

}  // namespace
