#include "io/error.hpp"

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

TEST_CASE("a file that cannot be read is the one that the error is about") {
  const InputError error = refused("none.yaml");
  CHECK(std::string(error.what()) == "none.yaml: cannot be read: No such file or directory");
  REQUIRE(error.file() != nullptr);
  CHECK(*error.file() == "none.yaml");
}
