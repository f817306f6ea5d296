#include "io/interrupts.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/io/child.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace hipress::io;
using hipress::tests::Child;
using hipress::tests::TemporaryFolder;
using hipress::tests::wait_for_end;
namespace fs = std::filesystem;

namespace {

void make(const std::string& path) { std::ofstream(path) << "half"; }

/// Waits until an interrupt has arrived.
void await_flag() {
  while (!InterruptScope::interrupted()) ::usleep(1000);
}

}  // namespace

TEST_CASE("a signal that ends the process removes doomed files and names itself") {
  const TemporaryFolder folder;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    CAPTURE(number);
    Child child([&](const Child::Ready& ready) {
      const DoomedFile doomed(folder.path("doomed"));
      make(doomed.path());
      DoomedFile kept(folder.path("kept"));
      make(kept.path());
      kept.keep();
      ready();
      return wait_for_end();
    });
    child.await();
    CHECK(fs::exists(folder.path("doomed")));
    child.send(number);
    CHECK(child.end() == -number);
    CHECK_FALSE(fs::exists(folder.path("doomed")));
    CHECK(fs::exists(folder.path("kept")));
  }
}

TEST_CASE("a doomed file goes with its scope unless it is kept") {
  const TemporaryFolder folder;
  {
    const DoomedFile doomed(folder.path("doomed"));
    make(doomed.path());
    DoomedFile kept(folder.path("kept"));
    make(kept.path());
    kept.keep();
    const DoomedFile never_made(folder.path("none"));
  }
  CHECK_FALSE(fs::exists(folder.path("doomed")));
  CHECK(fs::exists(folder.path("kept")));
  CHECK(folder.count() == 1);
}

TEST_CASE("the first interrupt in a scope sets its flag, and the second ends the process") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    CAPTURE(number);
    const auto work = [](const Child::Ready& ready) {
      const InterruptScope scope;
      if (InterruptScope::interrupted()) return 9;
      ready();
      await_flag();
      ready();
      return wait_for_end();
    };
    Child child(work);
    child.await();
    child.send(number);
    child.await();
    child.send(SIGTERM);
    CHECK(child.end() == -SIGTERM);
  }
}

TEST_CASE("after an interrupted scope an interrupt ends the process") {
  Child child([](const Child::Ready& ready) {
    {
      const InterruptScope scope;
      ready();
      await_flag();
    }
    if (!InterruptScope::interrupted()) return 9;  // the interrupt must still be known
    ready();
    return wait_for_end();
  });
  child.await();
  child.send(SIGHUP);
  child.await();
  child.send(SIGHUP);
  CHECK(child.end() == -SIGHUP);
}

TEST_CASE("a new scope starts without an interrupt") {
  Child child([](const Child::Ready& ready) {
    {
      const InterruptScope scope;
      ready();
      await_flag();
    }
    const InterruptScope scope;
    return InterruptScope::interrupted() ? 1 : 0;
  });
  child.await();
  child.send(SIGINT);
  CHECK(child.end() == 0);
}

TEST_CASE("a hangup that nohup ignores stays ignored") {
  Child child(
      [](const Child::Ready& ready) {
        ::raise(SIGHUP);
        ready();
        return wait_for_end();
      },
      /*ignores_hangups=*/true);
  child.await();
  child.send(SIGINT);
  CHECK(child.end() == -SIGINT);
}

TEST_CASE("a signal that ends the process ends the groups of its children") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  Child child([&](const Child::Ready& ready) {
    const pid_t leader = ::fork();
    if (leader == 0) {
      ::setpgid(0, 0);
      ::signal(SIGTERM, SIG_IGN);  // a group that ignores the signal must end, too
      const bool grandchild = ::fork() == 0;
      if (grandchild) (void)!::write(ends[1], "g", 1);
      return wait_for_end();
    }
    ::setpgid(leader, leader);
    const ChildGroup group(leader);
    ready();
    return wait_for_end();
  });
  ::close(ends[1]);
  char byte = 0;
  REQUIRE(::read(ends[0], &byte, 1) == 1);
  child.await();
  child.send(SIGTERM);
  CHECK(child.end() == -SIGTERM);
  // The group's processes hold the pipe, which ends when all of them have ended.
  CHECK(::read(ends[0], &byte, 1) == 0);
  ::close(ends[0]);
}

TEST_CASE("a forked child leaves its parent's files alone") {
  const TemporaryFolder folder;
  Child child([&](const Child::Ready&) {
    const DoomedFile doomed(folder.path("doomed"));
    make(doomed.path());
    const pid_t forked = ::fork();
    if (forked == 0) return wait_for_end();
    ::kill(forked, SIGTERM);
    int status = 0;
    ::waitpid(forked, &status, 0);
    return WIFSIGNALED(status) && fs::exists(doomed.path()) ? 0 : 1;
  });
  CHECK(child.end() == 0);
}
