#include "io/private_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "io/error.hpp"
#include "io/file.hpp"
#include "io/memory_file.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace hipress;
using namespace hipress::io;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

constexpr const char* kRemedy = "set HIPRESS_CACHE to a folder of yours";
constexpr std::size_t kMax = 1000;

unsigned mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

void put(const std::string& path, const std::string& text, mode_t mode) {
  std::ofstream(path) << text;
  REQUIRE(::chmod(path.c_str(), mode) == 0);
}

}  // namespace

TEST_CASE("a private folder is made with those above it, for its user alone") {
  const tests::TemporaryFolder temporary;
  const mode_t before = ::umask(0);
  const PrivateFolder folder(temporary.path("a/b"), kRemedy);
  folder.write({{"file", "content"}});
  ::umask(before);
  CHECK(mode_of(temporary.path("a")) == 0700);
  CHECK(mode_of(temporary.path("a/b")) == 0700);
  CHECK(mode_of(temporary.path("a/b/file")) == 0600);
  CHECK(folder.read("file", kMax) == "content");
  CHECK(folder.read("none", kMax) == std::nullopt);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a folder that others can write to is refused with the remedy") {
  const tests::TemporaryFolder temporary;
  fs::create_directory(temporary.path("open"));
  SECTION("itself") {
    ::chmod(temporary.path("open").c_str(), 0777);
    CHECK_THROWS_WITH(PrivateFolder(temporary.path("open"), kRemedy),
                      Contains("can be written to by every user") && Contains(kRemedy));
  }
  SECTION("itself, sticky") {
    ::chmod(temporary.path("open").c_str(), 01777);
    CHECK_THROWS_AS(PrivateFolder(temporary.path("open"), kRemedy), InputError);
  }
  SECTION("one above it") {
    ::chmod(temporary.path("open").c_str(), 0777);
    CHECK_THROWS_WITH(PrivateFolder(temporary.path("open/inner"), kRemedy),
                      Contains("/open can be") && Contains(kRemedy));
  }
  SECTION("one above it that is sticky may stay") {
    ::chmod(temporary.path("open").c_str(), 01777);
    CHECK_NOTHROW(PrivateFolder(temporary.path("open/inner"), kRemedy));
  }
}

TEST_CASE("what belongs to another user is refused") {
  if (::geteuid() != 0) return;  // only root can change the owner
  constexpr uid_t kOther = 12345;
  const tests::TemporaryFolder temporary;
  fs::create_directory(temporary.path("theirs"));
  REQUIRE(::chown(temporary.path("theirs").c_str(), kOther, kOther) == 0);
  CHECK_THROWS_WITH(PrivateFolder(temporary.path("theirs"), kRemedy),
                    Contains("belongs to user 12345") && Contains(kRemedy));
  CHECK_THROWS_WITH(PrivateFolder(temporary.path("theirs/inner"), kRemedy),
                    Contains("belongs to user 12345"));
  const PrivateFolder folder(temporary.path("mine"), kRemedy);
  put(folder.path() + "/file", "text", 0600);
  REQUIRE(::chown((folder.path() + "/file").c_str(), kOther, kOther) == 0);
  CHECK_THROWS_WITH(folder.read("file", kMax), Contains("belongs to user 12345"));
}

TEST_CASE("a folder of results may lie where others may write, but is its user's own") {
  constexpr auto kResults = PrivateFolder::For::kResults;
  const tests::TemporaryFolder temporary;
  fs::create_directory(temporary.path("team"));
  REQUIRE(::chmod(temporary.path("team").c_str(), 0777) == 0);
  const mode_t before = ::umask(0);
  const PrivateFolder folder(temporary.path("team/mine"), kRemedy, kResults);
  ::umask(before);
  CHECK(mode_of(temporary.path("team/mine")) == 0700);
  CHECK(folder.create("b.journal").close());
  folder.write({{"a", "content"}});
  CHECK(folder.names() == std::vector<std::string>{"a", "b.journal"});
  CHECK(mode_of(temporary.path("team/mine/b.journal")) == 0600);
  CHECK_THROWS_AS(folder.create("b.journal"), InputError);  // it exists already
  CHECK_NOTHROW(folder.require_writable());
  REQUIRE(::chmod(temporary.path("team/mine").c_str(), 0770) == 0);
  if (::geteuid() != 0) return;  // only root can change the owner
  constexpr uid_t kOther = 12345;
  REQUIRE(::chown(temporary.path("team/mine").c_str(), 0, kOther) == 0);
  CHECK_THROWS_WITH(PrivateFolder(temporary.path("team/mine"), kRemedy, kResults),
                    Contains("can be written to by group 12345") && Contains(kRemedy));
  REQUIRE(::chown(temporary.path("team/mine").c_str(), kOther, kOther) == 0);
  CHECK_THROWS_WITH(PrivateFolder(temporary.path("team/mine"), kRemedy, kResults),
                    Contains("belongs to user 12345") && Contains(kRemedy));
  // Another user's link, in a folder that everybody can write to, may lead anywhere.
  REQUIRE(::chmod(temporary.path("team").c_str(), 01777) == 0);
  fs::create_directory(temporary.path("victim"));
  fs::create_symlink(temporary.path("victim"), temporary.path("team/link"));
  REQUIRE(::lchown(temporary.path("team/link").c_str(), kOther, kOther) == 0);
  for (const char* path : {"team/link", "team/link/inner"}) {
    CHECK_THROWS_WITH(PrivateFolder(temporary.path(path), kRemedy, kResults),
                      Contains("is a link of another user"));
  }
  CHECK(fs::is_empty(temporary.path("victim")));
}

TEST_CASE("files that may be another's are refused, whatever they hold") {
  const tests::TemporaryFolder temporary;
  const PrivateFolder folder(temporary.path("mine"), kRemedy);
  put(folder.path() + "/open", "text", 0666);
  CHECK_THROWS_WITH(folder.read("open", kMax), Contains("/open can be") && Contains("every user"));
  put(folder.path() + "/target", "text", 0600);
  fs::create_symlink(folder.path() + "/target", folder.path() + "/link");
  CHECK_THROWS_WITH(folder.read("link", kMax), Contains("is a link"));
  REQUIRE(::mkfifo((folder.path() + "/pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(folder.read("pipe", kMax), Contains("no regular file"));
  put(folder.path() + "/long", std::string(kMax + 1, 'x'), 0600);
  CHECK_THROWS_WITH(folder.read("long", kMax), Contains("more than 1000 bytes"));
}

TEST_CASE("writing replaces a link, and does not follow it") {
  const tests::TemporaryFolder temporary;
  const PrivateFolder folder(temporary.path("mine"), kRemedy);
  put(temporary.path("target"), "before", 0600);
  fs::create_symlink(temporary.path("target"), folder.path() + "/name");
  folder.write({{"name", "after"}});
  CHECK(folder.read("name", kMax) == "after");
  CHECK(read_file(temporary.path("target")) == "before");
}

TEST_CASE("a file in memory is what was put in, and stays so") {
  const MemoryFile file("content");
  std::string read(20, '\0');
  read.resize(static_cast<std::size_t>(::read(file.descriptor(), read.data(), read.size())));
  CHECK(read == "content");
  CHECK(::write(file.descriptor(), "x", 1) < 0);
  CHECK(::ftruncate(file.descriptor(), 0) < 0);
}
