#include "io/error.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <string>

using hipress::io::InputError;

TEST_CASE("an error about a file knows the file and the line that its message names") {
  const InputError in_line("a: b.yaml", 7, "unknown key");
  CHECK(std::string(in_line.what()) == "a: b.yaml:7: unknown key");
  REQUIRE(in_line.file() != nullptr);
  CHECK(*in_line.file() == "a: b.yaml");
  CHECK(in_line.line() == 7);

  const InputError as_a_whole("x.txt", 0, "is empty");
  CHECK(std::string(as_a_whole.what()) == "x.txt: is empty");
  CHECK(as_a_whole.line() == 0);

  CHECK(InputError("12:30: no file is named here").file() == nullptr);
}

namespace {

InputError refused(const std::string& path) {
  try {
    hipress::io::refuse_file(path, "read", ENOENT);
  } catch (const InputError& error) {
    return error;
  }
}

}  // namespace

TEST_CASE("messages quote no more than the beginning of what is long") {
  using hipress::io::quote;
  const std::string most(80, 'x');
  CHECK(quote(most) == fmt::format("'{}'", most));
  CHECK(quote(most + "y") == fmt::format("'{}…'", most));
  CHECK(quote(most.substr(1) + "\u00e4") == fmt::format("'{}…'", most.substr(1)));
  CHECK(quote(std::string(77, 'x') + "\xff\xff\xff\xff") ==
        fmt::format(R"('{}\xff\xff\xff…')", std::string(77, 'x')));
  // A path is shown in full if it is short enough to exist (below PATH_MAX).
  const std::string path(4095, 'p'), none(10'000'000, 'p');
  CHECK(std::string(InputError(path, 3, "is wrong").what()) == path + ":3: is wrong");
  const InputError error(none, 0, "cannot be read");
  CHECK(std::string(error.what()) == std::string(80, 'p') + "…: cannot be read");
  CHECK(*error.file() == none);
}

TEST_CASE("a file that cannot be read is the one that the error is about") {
  const InputError error = refused("none.yaml");
  CHECK(std::string(error.what()) == "none.yaml: cannot be read: No such file or directory");
  REQUIRE(error.file() != nullptr);
  CHECK(*error.file() == "none.yaml");
}
