// Tests gradients that are read from files, and means that are written to files.

#include "replay/gradient_files.hpp"

#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "io/file.hpp"
#include "replay/replay.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/runtime/fixtures.hpp"
#include "tests/runtime/ranks.hpp"

using namespace hipress;
using namespace hipress::replay;
using namespace hipress::runtime;
using Catch::Contains;
using tests::complaint;
using tests::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

using Values = std::vector<float>;

void write(const std::string& folder, std::uint32_t rank, std::uint32_t gradient,
           const Values& values) {
  const std::string path = gradient_file(folder, rank, gradient);
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(sizeof(float) * values.size()));
}

Values read(const std::string& folder, std::uint32_t rank, std::uint32_t gradient) {
  const std::string bytes = io::read_file(gradient_file(folder, rank, gradient));
  Values values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), sizeof(float) * values.size());
  return values;
}

/// Elements of a gradient on a rank: small whole numbers, whose sums are exact.
Values counted(std::uint32_t rank, std::uint32_t gradient, std::int64_t elements) {
  Values values;
  for (std::int64_t i = 0; i < elements; ++i) {
    values.push_back(static_cast<float>((i * 7 + rank * 3 + gradient) % 64));
  }
  return values;
}

/// Writes the values that `make` returns for every rank and gradient of a case; returns the folder.
template <class Make>
std::string write_all(const TemporaryFolder& folder, const Case& made, const Make& make) {
  const std::string path = folder.path("in");
  for (std::uint32_t rank = 0; rank < made.graph.nodes; ++rank) {
    for (std::uint32_t g = 0; g < made.model.gradients.size(); ++g) {
      write(path, rank, g, make(rank, g, made.model.gradients[g].elements));
    }
  }
  return path;
}

/// Replays two iterations with the gradients in `in`; returns the folder of the means.
std::string means_of(const TemporaryFolder& folder, const Case& made, const std::string& in,
                     const std::string& transport = "memory") {
  const GradientFiles gradients(in, made.model, made.graph.nodes);
  const std::string out = folder.path("out-" + transport);
  fs::remove_all(out);
  prepare_means(out, 0, made.graph.nodes);
  ReplayOptions options{.warmup = 1, .iterations = 1, .progress = {}};
  options.gradients = &gradients;
  options.means = out;
  CHECK(replay_threads(transport, made.model, made.plan, made.graph, options).verified);
  return out;
}

float nan_with(std::uint32_t payload) { return std::bit_cast<float>(0x7fc00000u | payload); }

/// Values that generated gradients never have, repeated for a loop's vector part and its tail.
Values awkward(std::uint32_t rank, std::uint32_t gradient, std::int64_t elements) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::array<float, 12> kinds{
      rank == 1 ? nan_with(1) : 1.0f,  // NaN on one rank
      nan_with(rank + 2),              // a different NaN on every rank
      rank == 0 ? kInfinity : 2.0f,
      rank % 2 == 0 ? kInfinity : -kInfinity,
      3e38f,                           // the sum overflows
      rank % 2 == 0 ? 3e38f : -3e38f,  // the sum may overflow, depending on its order
      -0.0f,
      1e-45f * static_cast<float>(rank + 1),  // subnormal, also when divided
      1e-38f,
      70000.0f,  // beyond fp16
      1e-7f,     // subnormal in fp16
      static_cast<float>(rank) - 1.5f};
  Values values;
  for (std::int64_t i = 0; i < elements; ++i) {
    values.push_back(kinds[static_cast<std::size_t>(i + gradient) % kinds.size()]);
  }
  return values;
}

}  // namespace

TEST_CASE("given gradients are averaged, and every rank writes its means") {
  // The mean of small whole numbers on 2 or 4 ranks is exact, in any order and in half precision.
  for (const std::uint32_t nodes : {1u, 2u, 4u}) {
    for (const std::string topology : {"ps", "ring", "allreduce"}) {
      for (const std::string form : {"raw", "fp16"}) {
        CAPTURE(nodes, topology, form);
        const TemporaryFolder folder;
        Case made = make_case(topology, nodes, 2, form, {33, 1, 9000, 64});
        const std::string out = means_of(folder, made, write_all(folder, made, counted));
        for (std::uint32_t g = 0; g < made.model.gradients.size(); ++g) {
          Values mean(static_cast<std::size_t>(made.model.gradients[g].elements), 0.0f);
          for (std::uint32_t rank = 0; rank < nodes; ++rank) {
            const Values own = counted(rank, g, made.model.gradients[g].elements);
            for (std::size_t i = 0; i < mean.size(); ++i) {
              mean[i] += own[i] / static_cast<float>(nodes);
            }
          }
          for (std::uint32_t rank = 0; rank < nodes; ++rank) CHECK(read(out, rank, g) == mean);
        }
      }
    }
  }
}

TEST_CASE("members of bulk groups are read from and written to their own files") {
  const TemporaryFolder folder;
  Case made = make_case("ps", 2, 1, "raw", {33, 1, 20000, 64});
  made.plan.plan.bulk.threshold_bytes = 1024;
  made.graph = casync::expand_to_run(made.model, made.plan.plan);
  const std::string out = means_of(folder, made, write_all(folder, made, counted));
  for (std::uint32_t g = 0; g < made.model.gradients.size(); ++g) {
    const std::int64_t elements = made.model.gradients[g].elements;
    const Values zero = counted(0, g, elements), one = counted(1, g, elements);
    const Values got = read(out, 1, g);
    REQUIRE(got.size() == zero.size());
    for (std::size_t i = 0; i < got.size(); ++i) REQUIRE(got[i] == (zero[i] + one[i]) / 2);
  }
}

TEST_CASE("NaNs, infinities, overflow and subnormal numbers verify") {
  for (const std::string topology : {"ps", "ring", "allreduce"}) {
    for (const std::string form : {"raw", "fp16", "bf16", "onebit", "dgc", "terngrad"}) {
      if (topology == "allreduce" && !can_be_summed(form)) continue;
      for (const std::string transport : {"memory", "tcp"}) {
        CAPTURE(topology, form, transport);
        const TemporaryFolder folder;
        const Case made = make_case(topology, 3, 2, form, {1, 45, 9001});
        const std::string out = means_of(folder, made, write_all(folder, made, awkward), transport);
        const Values got = read(out, 2, 2);
        REQUIRE(got.size() == 9001);
        // Element i is kinds[(i + 2) % 12]: elements 10 and 11 have a NaN, which all forms keep.
        CHECK(std::isnan(got[10]));
        CHECK(std::isnan(got[11]));
      }
    }
  }
}

TEST_CASE("a wrong sum of given gradients does not verify, NaN or not") {
  // In this graph, the Merge wrongly leaves out the division by N.
  for (const float value : {5.0f, 1e-40f}) {
    const TemporaryFolder folder;
    Case made = make_case("ps", 2, 1, "raw", {10});
    const std::string in = write_all(folder, made, [&](auto, auto, std::int64_t n) {
      return Values(static_cast<std::size_t>(n), value);
    });
    for (casync::TaskId id = 0; id < made.graph.tasks(); ++id) {
      casync::Task& task = made.graph[id];
      if (task.kind == casync::Kind::kMerge) task.flags = casync::kAccumulate;
    }
    const GradientFiles gradients(in, made.model, 2);
    ReplayOptions options{.progress = {}};
    options.gradients = &gradients;
    CHECK_THROWS_WITH(replay_threads("memory", made.model, made.plan, made.graph, options),
                      Contains("gradient 'g0', element 0: the reference gives"));
  }
}

TEST_CASE("a stretch of a gradient is read from its place") {
  const TemporaryFolder folder;
  const Case made = make_case("ps", 2, 1, "raw", {100});
  const GradientFiles files(write_all(folder, made, counted), made.model, 2);
  Values part(30);
  files.read(1, 0, 50, part);
  const Values whole = counted(1, 0, 100);
  CHECK(part == Values(whole.begin() + 50, whole.begin() + 80));
}

TEST_CASE("folders of gradients that do not fit the model are refused with the file's name") {
  const TemporaryFolder folder;
  const Case made = make_case("ps", 2, 1, "raw", {100, 7});
  const std::string in = write_all(folder, made, counted);
  const auto complaint_of = [&](const std::string& path) {
    return complaint([&] { GradientFiles(path, made.model, 2); });
  };
  CHECK(complaint_of(in) == "no InputError");
  SECTION("no folder") {
    CHECK_THAT(complaint_of(folder.path("absent")),
               Contains("absent: cannot be read") && Contains("rank0/0.f32"));
  }
  SECTION("a file instead of a folder") {
    CHECK_THAT(complaint_of(folder.file("file", "x")), Contains("file: is no folder"));
  }
  SECTION("a missing file") {
    fs::remove(gradient_file(in, 1, 1));
    CHECK_THAT(complaint_of(in),
               Contains("rank1/1.f32: cannot be read") && Contains("28 bytes") && Contains("'g1'"));
  }
  SECTION("a missing rank") {
    fs::remove_all(fs::path(in) / "rank1");
    CHECK_THAT(complaint_of(in), Contains("rank1/0.f32: cannot be read"));
  }
  SECTION("a folder in a file's place") {
    fs::remove(gradient_file(in, 0, 0));
    fs::create_directory(gradient_file(in, 0, 0));
    CHECK_THAT(complaint_of(in), Contains("rank0/0.f32: is not a regular file"));
  }
  for (const std::int64_t bytes : {0, 399, 401, 404}) {
    DYNAMIC_SECTION(bytes << " bytes instead of 400") {
      fs::resize_file(gradient_file(in, 1, 0), static_cast<std::uintmax_t>(bytes));
      CHECK_THAT(complaint_of(in), Contains("rank1/0.f32: has " + std::to_string(bytes) +
                                            " bytes; give 400: gradient 'g0' has 100 elements"));
    }
  }
}

TEST_CASE("a file that shrinks or goes during the run ends it with the file's name") {
  for (const bool goes : {false, true}) {
    const TemporaryFolder folder;
    const Case made = make_case("ps", 2, 1, "raw", {100});
    const std::string in = write_all(folder, made, counted);
    const GradientFiles gradients(in, made.model, 2);
    ReplayOptions options{.progress = {}};
    options.gradients = &gradients;
    const std::string path = gradient_file(in, 1, 0);
    goes ? static_cast<void>(fs::remove(path)) : fs::resize_file(path, 4);
    CHECK_THROWS_WITH(replay_threads("memory", made.model, made.plan, made.graph, options),
                      Contains("rank1/0.f32: cannot be read"));
  }
}

TEST_CASE("a folder of means is made, or taken if it holds no file") {
  const TemporaryFolder folder;
  const std::string out = folder.path("a/b/out");
  prepare_means(out, 0, 3);
  CHECK(fs::is_directory(fs::path(out) / "rank2"));
  prepare_means(out, 1, 1);  // as another rank does at the same time
  SECTION("a file of another run") {
    write(out, 7, 0, {1.0f});
    CHECK_THAT(complaint([&] { prepare_means(out, 0, 1); }),
               Contains("out: holds rank7/0.f32 already; give a new or an empty folder"));
  }
  SECTION("a file instead of a folder") {
    CHECK_THAT(complaint([&] { prepare_means(folder.file("file", "x"), 0, 1); }), Contains("file"));
  }
}
