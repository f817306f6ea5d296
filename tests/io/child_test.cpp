#include "io/child.hpp"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "io/file.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace hipress;
using namespace hipress::io;

namespace {

constexpr double kLong_s = 60;

ChildResult shell(const std::string& script, double timeout_s = kLong_s) {
  return run_child(
      {.words = {"sh", "-c", script}, .input = "", .environment = {}, .timeout_s = timeout_s});
}

/// True if the process whose id is in the file ends within 30 s.
bool ends(const std::string& file) {
  const auto process = static_cast<pid_t>(std::stol(read_file(file)));
  for (int tries = 0; tries < 3000; ++tries) {
    if (::kill(process, 0) != 0) return true;
    // An orphan that has ended may remain as a zombie, if no process waits for it.
    const std::string stat = "/proc/" + std::to_string(process) + "/stat";
    try {
      if (read_file(stat).find(") Z ") != std::string::npos) return true;
    } catch (const std::exception&) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace

TEST_CASE("a child's status and output come back, standard error included") {
  const ChildResult result = shell("echo out; echo err >&2; exit 3");
  CHECK(result.start_error == 0);
  CHECK_FALSE(result.timed_out);
  CHECK(result.status == 3);
  CHECK(result.output == "out\nerr\n");
}

TEST_CASE("a child reads its input to the end") {
  std::string input(1 << 20, 'x');
  const ChildResult result =
      run_child({.words = {"wc", "-c"}, .input = input, .environment = {}, .timeout_s = kLong_s});
  CHECK(std::stol(result.output) == 1 << 20);
}

TEST_CASE("a child has our environment, with what is added") {
  ::setenv("HIPRESS_TEST_A", "before", 1);
  ::setenv("HIPRESS_TEST_B", "kept", 1);
  const ChildResult result =
      run_child({.words = {"sh", "-c", "echo $HIPRESS_TEST_A $HIPRESS_TEST_B; umask"},
                 .input = "",
                 .environment = {"HIPRESS_TEST_A=after"},
                 .timeout_s = kLong_s});
  CHECK(result.output == "after kept\n0077\n");
}

TEST_CASE("no shell reads a child's words") {
  const ChildResult result = run_child({.words = {"printf", "%s", "$(id) ; `id`"},
                                        .input = "",
                                        .environment = {},
                                        .timeout_s = kLong_s});
  CHECK(result.output == "$(id) ; `id`");
}

TEST_CASE("a program that is not there is told by its error") {
  const ChildResult result = run_child(
      {.words = {"hipress-no-such-program"}, .input = "", .environment = {}, .timeout_s = kLong_s});
  CHECK(result.start_error == ENOENT);
}

TEST_CASE("a signal that ends a child is told as shells do") {
  CHECK(shell("kill -KILL $$").status == 128 + SIGKILL);
}

TEST_CASE("of much output the beginning is kept, and the child is not held up") {
  const ChildResult result = shell("yes | head -c 3000000; echo; exit 5");
  CHECK(result.status == 5);
  CHECK(result.output.size() == std::size_t{64} << 10);
}

TEST_CASE("at its deadline a child ends with all its children") {
  const tests::TemporaryFolder folder;
  // The inner process ignores the signals at which compilers clean up.
  const ChildResult result = shell("(trap '' TERM HUP; sh -c 'echo $PPID' > " +
                                       folder.path("inner") + "; while :; do sleep 1; done) & wait",
                                   0.5);
  CHECK(result.timed_out);
  CHECK(ends(folder.path("inner")));
}

TEST_CASE("a process that a child leaves in the background is not waited for") {
  const tests::TemporaryFolder folder;
  const ChildResult result = shell("sleep 600 & echo $! > " + folder.path("left") + "; echo done");
  CHECK(result.output == "done\n");
  CHECK(result.status == 0);
  ::kill(static_cast<pid_t>(std::stol(read_file(folder.path("left")))), SIGKILL);
}

TEST_CASE("a child ends when its parent is killed, with all its children") {
  const tests::TemporaryFolder folder;
  const pid_t parent = ::fork();
  REQUIRE(parent >= 0);
  if (parent == 0) {
    shell("(sh -c 'echo $PPID' > " + folder.path("inner.tmp") + "; mv " + folder.path("inner.tmp") +
          " " + folder.path("inner") + "; while :; do sleep 1; done) & wait");
    ::_exit(0);
  }
  for (int tries = 0; tries < 3000 && ::access(folder.path("inner").c_str(), R_OK) != 0; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(parent, SIGKILL);
  CHECK(ends(folder.path("inner")));
}
