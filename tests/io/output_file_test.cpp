#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <ostream>
#include <set>
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
using hipress::tests::wait_for_end;
namespace fs = std::filesystem;

namespace {

void put(const std::string& path, const std::string& text) {
  write_file(path, [&](std::ostream& out) { out << text; });
}

struct stat status_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status;
}

unsigned mode_of(const std::string& path) { return status_of(path).st_mode & 07777; }

/// Error of both functions for an output that cannot be written; they must agree.
std::string refusal(const std::string& path) {
  const std::string before = complaint([&] { require_writable(path); });
  CHECK(complaint([&] { put(path, "x"); }) == before);
  return before;
}

}  // namespace

TEST_CASE("a file that is replaced keeps its mode, and a new one has the umask's") {
  const TemporaryFolder folder;
  const std::string path = folder.file("old", "old");
  for (const unsigned mode : {0600u, 0640u, 0666u, 0755u}) {
    fs::permissions(path, static_cast<fs::perms>(mode));
    put(path, "new");
    CHECK(mode_of(path) == mode);
    CHECK(read_file(path) == "new");
  }
  const mode_t before = ::umask(027);
  put(folder.path("new"), "new");
  ::umask(before);
  CHECK(mode_of(folder.path("new")) == 0640);
}

TEST_CASE("a file that root replaces keeps its owner") {
  if (::geteuid() != 0) return;
  const TemporaryFolder folder;
  const std::string path = folder.file("old", "old");
  REQUIRE(::chown(path.c_str(), 4321, 1234) == 0);
  put(path, "new");
  CHECK(status_of(path).st_uid == 4321);
  CHECK(status_of(path).st_gid == 1234);
}

TEST_CASE("nobody can foresee the temporary file") {
  const TemporaryFolder folder;
  const std::string path = folder.file("plan", "old");
  fs::permissions(path, fs::perms{0600});
  SECTION("and none is a link that was there before") {
    const std::string victim = folder.file("victim", "precious");
    // An attacker could guess names made of the process's id and a count.
    for (int count = 0; count < 1000; ++count) {
      fs::create_symlink(victim, fmt::format("{}.tmp.{}.{}", path, ::getpid(), count));
    }
    put(path, "new");
    CHECK(read_file(victim) == "precious");
    CHECK(read_file(path) == "new");
    CHECK_FALSE(fs::is_symlink(path));
  }
  SECTION("whose name differs every time, and which only its owner may read") {
    std::set<std::string> names;
    for (int i = 0; i < 3; ++i) {
      write_file(path, [&](std::ostream& out) {
        out << "new";
        for (const auto& entry : fs::directory_iterator(folder.path(""))) {
          if (entry.path() == path) continue;
          names.insert(entry.path().filename());
          CHECK(mode_of(entry.path()) == 0600);
        }
      });
    }
    CHECK(names.size() == 3);
    CHECK(folder.count() == 1);
  }
}

TEST_CASE("a file that was read is no place for a result, by any of its names") {
  const TemporaryFolder folder;
  const std::string model = folder.file("model.txt", "a,1\n"), other = folder.path("other");
  refuse_input(model);  // not read yet
  read_file(model);
  CHECK_THROWS_WITH(refuse_input(model),
                    Catch::Contains(model) && Catch::Contains("name another file to write"));
  fs::create_symlink(model, other);
  CHECK_THROWS_AS(refuse_input(other), InputError);
  fs::remove(other);
  fs::create_hard_link(model, other);
  CHECK_THROWS_AS(refuse_input(other), InputError);
  refuse_input(folder.path("new"));
  CHECK(read_file(model) == "a,1\n");
}

TEST_CASE("folders behind another user's link are left alone") {
  if (::geteuid() != 0) return;  // only root can act as two users
  const TemporaryFolder folder;
  fs::permissions(folder.path(""), fs::perms{01777});
  const std::string victim = folder.path("victim"), link = folder.path("states");
  fs::create_directory(victim);
  fs::create_symlink(victim, link);
  REQUIRE(::lchown(link.c_str(), 4321, 4321) == 0);
  CHECK_THROWS_WITH(make_folder(link), Catch::Contains("is a link of another user"));
  CHECK_THROWS_WITH(make_folder(link + "/deeper"), Catch::Contains("is a link of another user"));
  CHECK_THAT(refusal(link + "/rank0.state"), Catch::Contains("is a link of another user"));
  CHECK(fs::is_empty(victim));
  REQUIRE(::lchown(link.c_str(), 0, 0) == 0);
  make_folder(link + "/mine");
  CHECK(fs::is_directory(victim + "/mine"));
}

TEST_CASE("links and files that another user put where all may write are left alone") {
  if (::geteuid() != 0) return;  // only root can act as two users
  const TemporaryFolder folder;
  fs::permissions(folder.path(""), fs::perms{01777});
  const std::string victim = folder.file("victim", "precious");
  const std::string link = folder.path("link"), file = folder.file("file", "planted");
  fs::create_symlink(victim, link);
  const auto give = [](const std::string& path, uid_t user) {
    REQUIRE(::lchown(path.c_str(), user, user) == 0);
  };
  give(link, 4321);
  give(file, 4321);
  CHECK(refusal(link) ==
        link +
            ": this link belongs to another user, in a folder that everybody may write to; "
            "remove it, or choose another folder");
  CHECK_THAT(refusal(file), Catch::Contains("this file belongs to another user"));
  CHECK(read_file(victim) == "precious");
  CHECK(read_file(file) == "planted");
  // A link of the user's own is followed.
  give(link, 0);
  put(link, "new");
  CHECK(read_file(victim) == "new");
  CHECK(fs::is_symlink(link));
}

TEST_CASE("an output that cannot be written is refused before there is anything to write") {
  const TemporaryFolder folder;
  const std::string longest(255, 'x'), too_long(300, 'x');
  CHECK(refusal("") == "the name of a file to write is empty; give one");
  CHECK(refusal(folder.path(too_long)) ==
        folder.path(too_long) + ": cannot be written (give a shorter name): File name too long");
  CHECK_THAT(refusal(folder.path("new/")), Catch::Contains("is a folder"));
  CHECK_THAT(refusal("/proc/none"), Catch::Contains("choose a folder that exists and is writable"));
  CHECK(folder.count() == 0);
  put(folder.path(longest), "text");
  CHECK(read_file(folder.path(longest)) == "text");

  if (::geteuid() == 0) return;  // root may write anywhere
  const std::string read_only = folder.file("read-only", "old");
  fs::permissions(read_only, fs::perms{0444});
  CHECK_THAT(refusal(read_only), Catch::Contains("make the file writable"));
  fs::permissions(folder.path(""), fs::perms{0555});
  CHECK_THAT(refusal(folder.path("new")), Catch::Contains("Permission denied"));
  fs::permissions(folder.path(""), fs::perms{0755});
}

TEST_CASE("a disk that is full is a failed run, and the old file stays") {
  const TemporaryFolder folder;
  const std::string path = folder.file("old", "old");
  CHECK_THROWS_WITH(put("/dev/full", "x"),
                    "/dev/full: cannot be written: No space left on device: free some space, or "
                    "choose another folder");
  CHECK_THROWS_AS(put("/dev/full", "x"), RunError);

  // A limit on file sizes has the effect of a full disk.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string said;
  try {
    put(path, std::string(200'000, 'x'));
  } catch (const RunError& error) {
    said = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK_THAT(said,
             Catch::StartsWith(path + ": cannot be written: File too large: raise the limit"));
  CHECK(read_file(path) == "old");
  CHECK(folder.count() == 1);
}

TEST_CASE("a text that cannot be made whole is not written") {
  const TemporaryFolder folder;
  const auto write = [](std::ostream& out) { out.setstate(std::ios::failbit); };
  CHECK_THROWS_AS(write_file(folder.path("new"), write), RunError);
  CHECK(folder.count() == 0);
}

TEST_CASE("a signal while a file is written leaves the old one and nothing else") {
  const TemporaryFolder folder;
  const std::string path = folder.file("old", "old");
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    CAPTURE(number);
    Child child([&](const Child::Ready& ready) {
      write_file(path, [&](std::ostream& out) {
        out << "half" << std::flush;
        ready();
        wait_for_end();
      });
      return 0;
    });
    child.await();
    CHECK(folder.count() == 2);
    child.send(number);
    CHECK(child.end() == -number);
    CHECK(folder.count() == 1);
    CHECK(read_file(path) == "old");
  }
}

TEST_CASE("a pipe is filled") {
  const TemporaryFolder folder;
  const std::string path = folder.path("pipe");
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  std::string got;
  {
    std::jthread reader([&] { got = read_file(path); });
    require_writable(path);
    put(path, std::string(100'000, 'x'));
  }
  CHECK(got == std::string(100'000, 'x'));
}
