#include "io/file.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/io/temporary_folder.hpp"

using namespace hipress::io;
using hipress::tests::complaint;
using hipress::tests::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

std::string write_text(const std::string& path, const std::string& text) {
  write_file(path, [&](std::ostream& stream) { stream << text; });
  return read_file(path);
}

}  // namespace

TEST_CASE("a file is there as a whole, or as it was before") {
  const TemporaryFolder folder;
  const std::string path = folder.path("plan.txt");
  CHECK(write_text(path, "first\n") == "first\n");
  CHECK(write_text(path, "second\n") == "second\n");
  CHECK(folder.count() == 1);  // no temporary file is left

  SECTION("a writer that fails leaves the old file and nothing else") {
    CHECK_THROWS_AS(write_file(path,
                               [](std::ostream& stream) {
                                 stream << "half";
                                 throw std::runtime_error("interrupted");
                               }),
                    std::runtime_error);
    CHECK(read_file(path) == "second\n");
    CHECK(folder.count() == 1);
  }
  SECTION("a new file that fails leaves none") {
    CHECK_THROWS(
        write_file(folder.path("new"), [](std::ostream&) { throw std::runtime_error("x"); }));
    CHECK(folder.count() == 1);
  }
  SECTION("a symbolic link stays one") {
    fs::create_symlink(path, folder.path("link"));
    CHECK(write_text(folder.path("link"), "third\n") == "third\n");
    CHECK(fs::is_symlink(folder.path("link")));
    CHECK(read_file(path) == "third\n");
  }
  SECTION("a symbolic link to what is not there yet stays one") {
    fs::create_symlink("chained", folder.path("link"));
    fs::create_symlink(folder.path("later.txt"), folder.path("chained"));
    CHECK(write_text(folder.path("link"), "third\n") == "third\n");
    CHECK(fs::is_symlink(folder.path("link")));
    CHECK(fs::is_symlink(folder.path("chained")));
    CHECK_FALSE(fs::is_symlink(folder.path("later.txt")));
    CHECK(read_file(folder.path("later.txt")) == "third\n");
  }
  SECTION("a pipe or device is written to, not replaced") {
    write_file("/dev/null", [](std::ostream& stream) { stream << "gone"; });
    CHECK(fs::is_character_file("/dev/null"));
  }
}

TEST_CASE("what cannot be written or read is named with the reason") {
  const TemporaryFolder folder;
  SECTION("no such folder") {
    const std::string path = folder.path("none/plan.txt");
    CHECK_THAT(complaint([&] { write_text(path, ""); }),
               Catch::StartsWith(folder.path("none/plan.txt") + ": cannot be written (") &&
                   Catch::Contains("choose a folder that exists") &&
                   Catch::Contains("No such file or directory"));
  }
  SECTION("a folder instead of a file") {
    CHECK(complaint([&] { write_text(folder.path(""), ""); }) ==
          folder.path("") + ": is a folder, give the name of a file");
    CHECK(complaint([&] { read_file(folder.path("")); }) ==
          folder.path("") + ": is a folder, give the name of a file");
  }
  SECTION("symbolic links in a circle") {
    fs::create_symlink("b", folder.path("a"));
    fs::create_symlink("a", folder.path("b"));
    CHECK_THAT(complaint([&] { write_text(folder.path("a"), ""); }),
               Catch::StartsWith(folder.path("a") + ": cannot be written: Too many levels"));
    CHECK(fs::is_symlink(folder.path("a")));
  }
  SECTION("no such file") {
    CHECK(complaint([&] { read_file(folder.path("none")); }) ==
          folder.path("none") + ": cannot be read: No such file or directory");
  }
}

TEST_CASE("whether a file can be written is known before there is anything to write") {
  const TemporaryFolder folder;
  const std::string path = folder.path("sweep.csv");
  CHECK(complaint([&] { require_writable(path); }) == "no InputError");
  CHECK(complaint([] { require_writable("/dev/null"); }) == "no InputError");
  CHECK(folder.count() == 0);
  CHECK_THAT(complaint([&] { require_writable(folder.path("none/sweep.csv")); }),
             Catch::Contains("choose a folder that exists"));
  CHECK_THAT(complaint([&] { require_writable(folder.path("")); }), Catch::Contains("is a folder"));
  // For a link, its target counts.
  fs::create_symlink("none/sweep.csv", folder.path("link"));
  const auto refused = Catch::StartsWith(folder.path("link") + ": cannot be written (choose");
  CHECK_THAT(complaint([&] { require_writable(folder.path("link")); }), refused);
  CHECK_THAT(complaint([&] { write_text(folder.path("link"), ""); }), refused);
  CHECK(fs::is_symlink(folder.path("link")));
}

TEST_CASE("lines are read whatever their ends") {
  const TemporaryFolder folder;
  const std::vector<std::string> expected = {"a,1", "", "b,2"};
  CHECK(read_lines(folder.file("unix", "a,1\n\nb,2\n")) == expected);
  CHECK(read_lines(folder.file("dos", "a,1\r\n\r\nb,2\r\n")) == expected);
  CHECK(read_lines(folder.file("unfinished", "a,1\n\nb,2")) == expected);
  CHECK(read_lines(folder.file("mark",
                               "\xef\xbb\xbf"
                               "a,1\n\nb,2\n")) == expected);
  CHECK(read_lines(folder.file("empty", "")).empty());
  CHECK(read_lines(folder.file("umlaut", "gewichtsänderung,1\t\n")) ==
        std::vector<std::string>{"gewichtsänderung,1\t"});
}

TEST_CASE("bytes that are no text are refused with their place") {
  const TemporaryFolder folder;
  SECTION("a NUL byte") {
    const std::string path = folder.file("x", std::string("a,1\nb\0c,2\n", 10));
    CHECK(complaint([&] { read_lines(path); }) ==
          path + ":2: byte 0x00 at column 2 is no text; give a UTF-8 text file");
  }
  SECTION("Latin-1") {
    const std::string path = folder.file("x", "a\xe4,1\n");
    CHECK_THAT(complaint([&] { read_lines(path); }), Catch::Contains(":1: byte 0xe4 at column 2"));
  }
  SECTION("a UTF-8 character cut short") {
    const std::string path = folder.file("x", "a\xc3");
    CHECK_THAT(complaint([&] { read_lines(path); }), Catch::Contains(":1: byte 0xc3 at column 2"));
  }
}

TEST_CASE("fields of a line") {
  using Fields = std::vector<std::string_view>;
  CHECK(split_fields("a,1,y") == Fields{"a", "1", "y"});
  CHECK(split_fields(" a b ,\t1 ") == Fields{"a b", "1"});
  CHECK(split_fields("") == Fields{""});
  CHECK(split_fields(",") == Fields{"", ""});
  CHECK(split_fields("a, ,b,") == Fields{"a", "", "b", ""});
  const std::string_view line = "a, ";
  CHECK(split_fields(line)[1].data() == line.data() + 3);  // at its place in the line
}

TEST_CASE("data files are found wherever the tests run") {
  CHECK(fs::is_regular_file(data_file("models/vgg19.yaml")));
  CHECK_THAT(complaint([] { data_file("models/none.yaml"); }),
             Catch::StartsWith("models/none.yaml: no such data file; looked for ") &&
                 Catch::Contains("share/hipress/models/none.yaml and "));
  CHECK_THAT(data_names("models", ".yaml"), Catch::VectorContains(std::string("vgg19")));
  CHECK(data_names("no-such-folder", ".yaml").empty());
}

TEST_CASE("the fingerprint is 64-bit FNV-1a") {
  // Published test vectors of FNV-1a.
  CHECK(fingerprint("") == "cbf29ce484222325");
  CHECK(fingerprint("a") == "af63dc4c8601ec8c");
  CHECK(fingerprint("foobar") == "85944171f73967e8");
}
