#include "kernels/codec/state_store.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <random>

#include "io/error.hpp"

namespace hipress::kernels {
namespace {

using Catch::Contains;

/// A path in a new folder, which the destructor removes.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name)
      : folder_(std::filesystem::temp_directory_path() /
                ("hipress_state_" + std::to_string(std::random_device()()))) {
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / name).string();
  }
  ~TemporaryFile() { std::filesystem::remove_all(folder_); }
  const std::string& path() const { return path_; }

 private:
  std::filesystem::path folder_;
  std::string path_;
};

/// Adds three entries of two gradients, with 2·5 + 1·3 + 1·0 floats.
void fill(StateStore& store) {
  float* first = store.get("conv1.weight", 0, 5, 2);
  for (int i = 0; i < 10; ++i) first[i] = static_cast<float>(i) / 8;
  float* second = store.get("conv1.weight", 1, 3, 1);
  for (int i = 0; i < 3; ++i) second[i] = -static_cast<float>(i);
  store.get("empty", 0, 0, 1);
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST_CASE("state is zero at first and kept by gradient and role") {
  StateStore store;
  float* state = store.get("w", 0, 4, 1);
  CHECK(std::vector<float>(state, state + 4) == std::vector<float>(4, 0.0f));
  state[2] = 5;
  CHECK(store.get("w", 0, 4, 1)[2] == 5);
  CHECK(store.get("w", 1, 4, 1)[2] == 0);
  CHECK(store.get("v", 0, 4, 1)[2] == 0);
}

TEST_CASE("its size is the arrays' floats") {
  StateStore store;
  CHECK(store.bytes() == 0);
  fill(store);
  CHECK(store.bytes() == (10 + 3) * 4);
}

TEST_CASE("a slice begins at its element, array by array") {
  StateStore store;
  fill(store);
  const State slice = store.slice("conv1.weight", 0, 5, 2, 3);
  CHECK(slice.data[0] == 3.0f / 8);
  CHECK(slice.data[slice.stride] == 8.0f / 8);  // element 3 of array 1 is number 5 + 3
}

TEST_CASE("the same gradient with another size is another model") {
  StateStore store;
  store.get("w", 0, 4, 1);
  CHECK_THROWS_WITH(store.get("w", 0, 5, 1), Contains("'w'") && Contains("1 arrays of 4 elements"));
  CHECK_THROWS_AS(store.get("w", 0, 4, 2), std::invalid_argument);
  CHECK_THROWS_AS(store.get("x", 0, -1, 1), std::invalid_argument);
  CHECK_THROWS_AS(store.get("y", 0, std::numeric_limits<std::int64_t>::max(), 1),
                  std::invalid_argument);
}

// With a sanitizer, an allocation that fails ends the program instead of throwing.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("state that there is no memory for leaves the store as it was") {
  StateStore store;
  CHECK_THROWS_AS(store.get("w", 0, std::int64_t{1} << 60, 1), std::bad_alloc);
  CHECK(store.get("w", 0, 4, 1)[3] == 0);
}
#endif

TEST_CASE("a slice lies within its gradient") {
  StateStore store;
  const auto codec = make_codec("onebit");
  CHECK(store.slice("w", 0, 5, 1, 5).data == store.get("w", 0, 5, 1) + 5);
  CHECK_NOTHROW(store.slice_of(*codec, "w", 0, 5, 2, 3));
  CHECK_THROWS_AS(store.slice("w", 0, 5, 1, 6), std::invalid_argument);
  CHECK_THROWS_AS(store.slice("w", 0, 5, 1, -1), std::invalid_argument);
  CHECK_THROWS_WITH(store.slice_of(*codec, "w", 0, 5, 2, 4),
                    Contains("a slice of 4 elements from element 2 on, of 5"));
  CHECK_THROWS_AS(store.slice_of(*codec, "w", 0, 5, -1, 2), std::invalid_argument);
  CHECK_THROWS_AS(store.slice_of(*codec, "w", 0, 5, 3, -1), std::invalid_argument);
  CHECK_THROWS_AS(store.slice_of(*codec, "w", 0, 5, 2, std::numeric_limits<std::int64_t>::max()),
                  std::invalid_argument);
}

TEST_CASE("names that could not be loaded are not saved") {
  const TemporaryFile file("state");
  StateStore store, loaded;
  store.get(std::string(65536, 'x'), 0, 1, 1)[0] = 3;
  store.save(file.path());
  loaded.load(file.path());
  CHECK(loaded.get(std::string(65536, 'x'), 0, 1, 1)[0] == 3);
  store.get(std::string(65537, 'y'), 0, 1, 1);
  CHECK_THROWS_WITH(store.save(file.path()), Contains(file.path()) && Contains("65537 bytes"));
  CHECK_NOTHROW(loaded.load(file.path()));  // the last good file still exists
}

TEST_CASE("what was saved is loaded, and replaces what was there") {
  const TemporaryFile file("state");
  StateStore saved, loaded;
  fill(saved);
  saved.save(file.path());
  loaded.get("old", 0, 7, 1);
  loaded.load(file.path());
  CHECK(loaded.bytes() == saved.bytes());
  const float* first = loaded.get("conv1.weight", 0, 5, 2);
  for (int i = 0; i < 10; ++i) CHECK(first[i] == static_cast<float>(i) / 8);
  CHECK(loaded.get("conv1.weight", 1, 3, 1)[2] == -2);
  CHECK(loaded.get("old", 0, 2, 1)[0] == 0);  // the old entry of 7 elements is gone
  // Saving a loaded store gives the same file.
  const TemporaryFile again("again");
  StateStore copy;
  copy.load(file.path());
  copy.save(again.path());
  CHECK(bytes_of(again.path()) == bytes_of(file.path()));
}

TEST_CASE("a file cut anywhere is refused and leaves the store as it was") {
  const TemporaryFile file("state");
  StateStore saved;
  fill(saved);
  saved.save(file.path());
  const std::string whole = bytes_of(file.path());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_bytes(file.path(), whole.substr(0, length));
    StateStore store;
    store.get("w", 0, 4, 1)[0] = 9;
    REQUIRE_THROWS_AS(store.load(file.path()), io::InputError);
    REQUIRE(store.get("w", 0, 4, 1)[0] == 9);
  }
}

TEST_CASE("what is no state file is refused with its path and the reason") {
  const TemporaryFile file("state");
  StateStore store;
  const auto refuses = [&](const std::string& bytes, const char* reason) {
    write_bytes(file.path(), bytes);
    CHECK_THROWS_WITH(store.load(file.path()), Contains(file.path()) && Contains(reason));
  };
  StateStore saved;
  fill(saved);
  saved.save(file.path());
  const std::string whole = bytes_of(file.path());

  SECTION("missing") { CHECK_THROWS_AS(store.load(file.path() + ".missing"), io::InputError); }
  SECTION("a folder") {
    CHECK_THROWS_AS(store.load(std::filesystem::path(file.path()).parent_path().string()),
                    io::InputError);
  }
  SECTION("something else") { refuses("#!/bin/sh\necho hello, world\n", "not a state file"); }
  SECTION("another version") {
    std::string other = whole;
    other[7] = '9';
    refuses(other, "not a state file of this version");
  }
  SECTION("another byte order") {
    std::string other = whole;
    std::swap(other[8], other[11]);
    refuses(other, "byte order");
  }
  SECTION("something behind the end") { refuses(whole + "x", "follows its end"); }
  SECTION("a length beyond the file") {
    // Entry 1: name length at 20, name of 12 bytes at 24, role at 36, arrays at 40, elements at 44.
    std::string other = whole;
    other[44 + 6] = '\x7f';
    refuses(other, "conv1.weight");
  }
  SECTION("a residual that is not finite") {
    StateStore bad;
    bad.get("w", 0, 1, 1)[0] = std::numeric_limits<float>::quiet_NaN();
    bad.save(file.path());
    refuses(bytes_of(file.path()), "not finite");
  }
}

TEST_CASE("a file with any byte changed is refused", "[slow]") {
  const TemporaryFile file("state");
  StateStore store;
  float* const values = store.get("fc.weight", 0, 40, 2);
  for (int i = 0; i < 80; ++i) values[i] = static_cast<float>(i);
  store.save(file.path());
  std::ifstream in(file.path(), std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  const auto write = [&](const std::string& bytes) {
    std::ofstream(file.path(), std::ios::binary | std::ios::trunc) << bytes;
  };
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const unsigned flip : {0x01u, 0x80u, 0xffu}) {
      std::string bad = good;
      bad[at] = static_cast<char>(static_cast<unsigned char>(bad[at]) ^ flip);
      write(bad);
      CAPTURE(at, flip);
      CHECK_THROWS_AS(StateStore().load(file.path()), io::InputError);
    }
  }
  // Files of earlier versions have no checksum.
  std::string before = good;
  before.replace(0, 8, "HPSTATE1");
  before.erase(before.size() - 16, 8);
  write(before);
  StateStore loaded;
  loaded.load(file.path());
  CHECK(loaded.get("fc.weight", 0, 40, 2)[79] == 79);
}

/// Writes a state file of one gradient whose numbers are a hole, which takes no space on the disk.
void write_hole(const std::string& path, const std::string& gradient, std::int64_t elements) {
  StateStore store;
  store.get(gradient, 0, 1, 1);
  store.save(path);
  std::string header = bytes_of(path).substr(0, 20 + 4 + gradient.size() + 4 + 4 + 8);
  std::memcpy(header.data() + header.size() - 8, &elements, 8);
  write_bytes(path, header);
  std::filesystem::resize_file(path, header.size() + static_cast<std::size_t>(elements) * 4 + 16);
}

TEST_CASE("a state file with a hole takes no memory") {
  const TemporaryFile file("state");
  StateStore store;
  float* const mine = store.get("w", 0, 4, 1);
  mine[3] = 9;
  // 8.796 TB exceed a machine's memory, but not the largest file of ext4.
  write_hole(file.path(), "w", std::int64_t{1} << 41);
  CHECK_THROWS_AS(store.load(file.path()), io::RunError);
  CHECK_THROWS_WITH(store.load(file.path()), Contains(file.path() + ": has 8.796TB, and ") &&
                                                 Contains("of memory are free; take a checkpoint"));
  // A file that fits the memory is compared before its numbers are read: otherwise, the missing end
  // mark and checksum after 64 MiB of zeros would be the error.
  for (const char* gradient : {"w", "v"}) {
    write_hole(file.path(), gradient, std::int64_t{1} << 24);
    CHECK_THROWS_WITH(store.restore(file.path()), Contains(file.path()) && Contains("role 0, ") &&
                                                      Contains("load it under the plan"));
  }
  CHECK(store.get("w", 0, 4, 1) == mine);
  CHECK(mine[3] == 9);
}

TEST_CASE("a folder that cannot be written to is an error") {
  StateStore store;
  CHECK_THROWS_AS(store.save("/nonexistent/folder/state"), io::InputError);
}

TEST_CASE("state store: a file is restored into arrays that stay in place") {
  const TemporaryFile file("state");
  StateStore saved;
  fill(saved);
  saved.save(file.path());
  StateStore store;
  float* const first = store.get("conv1.weight", 0, 5, 2);
  float* const second = store.get("conv1.weight", 1, 3, 1);
  SECTION("of the same gradients") {
    store.get("empty", 0, 0, 1);
    store.restore(file.path());
    for (int i = 0; i < 10; ++i) CHECK(first[i] == static_cast<float>(i) / 8);
    for (int i = 0; i < 3; ++i) CHECK(second[i] == -static_cast<float>(i));
    CHECK(store.get("conv1.weight", 0, 5, 2) == first);
  }
  SECTION("not with one more in the file") {
    CHECK_THROWS_WITH(store.restore(file.path()),
                      Contains("'empty', role 0") && Contains("nothing here keeps"));
    CHECK(first[9] == 0);
  }
  SECTION("not with one more in the store, or one of another length") {
    store.get("empty", 0, 0, 1);
    store.get("conv1.weight", 2, 5, 2);
    CHECK_THROWS_WITH(store.restore(file.path()),
                      Contains("has no state of gradient 'conv1.weight', role 2, with 2 arrays"));
    CHECK(first[9] == 0);
  }
}

}  // namespace
}  // namespace hipress::kernels
