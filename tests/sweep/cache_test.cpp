#include "sweep/cache.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "io/error.hpp"
#include "io/file.hpp"
#include "sim/forecast.hpp"
#include "sweep/sweep.hpp"
#include "tests/io/temporary_folder.hpp"

namespace hipress::sweep {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using tests::complaint;

Outcome outcome(std::int64_t picoseconds) {
  return {.iteration = casync::Picoseconds(picoseconds),
          .forward = casync::Picoseconds(1),
          .compute = casync::Picoseconds(-2),
          .tasks = 3};
}

std::string only_journal(const std::string& folder) {
  std::string found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    REQUIRE(found.empty());
    found = entry.path().string();
  }
  return found;
}

TEST_CASE("what is put into a cache is found by those that open it later") {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path("made/cache");
  Outcome sensitive = outcome(7);
  sensitive.sensitivity = Sensitivity{1.0 / 3, 2e-300, 1.0 / 7};
  {
    Cache cache(path);
    CHECK(cache.find("a") == nullptr);
    cache.put("a", outcome(5));
    cache.put("b", sensitive);
    cache.put("none", {.possible = false});
    const Cache other(path);  // while the first is still there
    CHECK(other.size() == 3);
  }
  Cache again(path);
  REQUIRE(again.find("a") != nullptr);
  CHECK(*again.find("a") == outcome(5));
  REQUIRE(again.find("b") != nullptr);
  CHECK(*again.find("b") == sensitive);
  REQUIRE(again.find("none") != nullptr);
  CHECK_FALSE(again.find("none")->possible);
  CHECK(again.find("c") == nullptr);
  // What is known better counts, whatever journal it is in.
  again.put("a", sensitive);
  CHECK(*Cache(path).find("a") == sensitive);
}

TEST_CASE("lines that are cut off or damaged count as not there") {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path("cache");
  {
    Cache cache(path);
    cache.put("a", outcome(5));
    cache.put("b", outcome(6));
  }
  const std::string journal = only_journal(path);
  const std::string whole = io::read_file(journal);
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    std::ofstream(journal) << whole.substr(0, length);
    const Cache cut(path);
    const std::size_t lines = static_cast<std::size_t>(
        std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length), '\n'));
    CHECK(cut.size() == lines);
  }
  for (std::size_t place = 0; place < whole.size(); ++place) {
    std::string damaged = whole;
    damaged[place] ^= 1;
    std::ofstream(journal) << damaged;
    const Cache read(path);
    for (const auto& [key, value] : {std::pair("a", 5), std::pair("b", 6)}) {
      const Outcome* const found = read.find(key);
      CHECK((found == nullptr || *found == outcome(value)));
    }
  }
}

TEST_CASE("a folder that is none is refused") {
  const tests::TemporaryFolder folder;
  const std::string file = folder.file("file", "");
  CHECK_THAT(complaint([&] { Cache cache(file); }), Contains(file));
}

/// A sweep of made-up machines, with a cache.
class CachedSweep {
 public:
  CachedSweep() {
    folder.file("two.yaml",
                "name: two\nforward: 1ms\ngradients:\n"
                "  - {name: late, elements: 64000, ready: 3ms}\n"
                "  - {name: early, elements: 320, ready: 2ms}\n");
  }

  struct Swept {
    SweepSize size;
    std::string csv;
  };
  Swept run(const std::string& axes, const Simulating& simulating = {}) const {
    const SweepSpec spec =
        read_sweep(folder.file("spec.yaml", "model: two.yaml\ntopology: ring\n" + axes));
    Sweep sweep(spec, {}, {.evaluations = 20}, simulating);
    std::ostringstream out;
    write_sweep(out, spec, {}, sweep.run(2, {}), sweep.provenance());
    return {sweep.size(), out.str()};
  }

  tests::TemporaryFolder folder;
};

const std::string kAxes = "nodes: [2, 3]\nplan: [none, all, best]\nbandwidth: [1GB/s, 100MB/s]\n";

TEST_CASE_METHOD(CachedSweep, "a sweep that was interrupted simulates what is missing") {
  const std::string whole = run(kAxes).csv;
  const std::int64_t simulations = run(kAxes).size.simulations;
  const std::string path = folder.path("cache");
  std::int64_t all = 0;
  for (int interruption = 0; interruption < 3; ++interruption) {
    Cache cache(path);
    const SweepSpec spec =
        read_sweep(folder.file("spec.yaml", "model: two.yaml\ntopology: ring\n" + kAxes));
    Sweep sweep(spec, {}, {.evaluations = 20}, {.cache = &cache});
    struct Interruption {};
    std::int64_t done = 0;
    CHECK_THROWS_AS(sweep.run(1,
                              [&](auto, auto) {
                                if (++done == 2) throw Interruption();
                              }),
                    Interruption);
    all += done;
  }
  Cache cache(path);
  const Swept rest = run(kAxes, {.cache = &cache});
  CHECK(rest.csv == whole);
  CHECK(rest.size.known > 0);
  CHECK(all + rest.size.simulations == simulations);
  Cache full(path);
  const Swept again = run(kAxes, {.cache = &full});
  CHECK(again.csv == whole);
  CHECK(again.size.known == again.size.points);
  CHECK(again.size.simulations == 0);
  CHECK(again.size.planned == 0);
}

TEST_CASE_METHOD(CachedSweep, "searched plans are kept, and are what they were") {
  const std::string best = "nodes: 3\nplan: best\nbandwidth: [100MB/s, 10MB/s, 1MB/s]\n";
  const std::string whole = run(best).csv;
  const std::string path = folder.path("cache");
  {
    Cache cache(path);
    CHECK(run(best, {.cache = &cache}).csv == whole);
  }
  // Without its outcomes.
  int plans = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".yaml")
      ++plans;
    else
      fs::remove(entry.path());
  }
  CHECK(plans == 3);
  Cache cache(path);
  const Planning forbidden = {
      .make = [](std::string_view name,
                 const planner::PlanRequest& request) -> std::optional<plans::ResolvedPlan> {
        if (planner::is_searched(name)) throw io::InputError("searched again");
        return planner::named_plan(name, request);
      },
      .evaluations = 20};
  const SweepSpec spec =
      read_sweep(folder.file("spec.yaml", "model: two.yaml\ntopology: ring\n" + best));
  Sweep sweep(spec, {}, forbidden, {.cache = &cache});
  std::ostringstream out;
  write_sweep(out, spec, {}, sweep.run(1, {}), sweep.provenance());
  CHECK(out.str() == whole);
}

TEST_CASE_METHOD(CachedSweep, "a longer axis simulates its new points alone") {
  const std::string path = folder.path("cache");
  {
    Cache cache(path);
    run("nodes: [2, 3]\nplan: [none, all]\n", {.cache = &cache});
  }
  Cache cache(path);
  const Swept longer = run("nodes: [2, 4, 3]\nplan: [none, all]\n", {.cache = &cache});
  CHECK(longer.size.known == 4);
  // Of four nodes: none, which is the baseline too, all, and ddp.
  CHECK(longer.size.simulations == 3);
  CHECK(longer.csv == run("nodes: [2, 4, 3]\nplan: [none, all]\n").csv);
}

TEST_CASE_METHOD(CachedSweep, "whatever an outcome depends on makes another of it") {
  const std::string path = folder.path("cache");
  const std::string axes = "nodes: 2\nplan: all\n";
  {
    Cache cache(path);
    run(axes, {.cache = &cache});
  }
  const auto known = [&](const std::string& with) {
    Cache cache(path);
    const Swept swept = run(with, {.cache = &cache});
    CHECK(swept.csv == run(with).csv);
    return swept.size.known;
  };
  CHECK(known(axes) == 1);
  for (const char* other :
       {"nodes: 3\nplan: all\n", "nodes: 2\nplan: all\nalgorithm: fp16\n",
        "nodes: 2\nplan: all\nlatency: 7us\n", "nodes: 2\nplan: all\npartitions: 1\n",
        "nodes: 2\nplan: all\ncompute_time: 9ms\n", "nodes: 2\nplan: all\nstragglers: 1\n",
        "nodes: 2\nplan: all\nprofile: v100_100g\n", "nodes: 2\nplan: all\nnetwork: port\n"}) {
    CAPTURE(other);
    CHECK(known(other) == 0);
  }
  // Another content under the same name.
  folder.file("two.yaml",
              "name: two\nforward: 1ms\ngradients:\n"
              "  - {name: late, elements: 64000, ready: 4ms}\n"
              "  - {name: early, elements: 320, ready: 2ms}\n");
  CHECK(known(axes) == 0);
}

TEST_CASE_METHOD(CachedSweep, "outcomes without intervals are simulated again for them") {
  const std::string path = folder.path("cache"), axes = "nodes: [2, 3]\nplan: [none, all]\n";
  {
    Cache cache(path);
    run(axes, {.cache = &cache});
  }
  const Swept whole = run(axes, {.intervals = true});
  {
    Cache cache(path);
    const Swept swept = run(axes, {.cache = &cache, .intervals = true});
    CHECK(swept.csv == whole.csv);
    CHECK(swept.size.known == 0);
  }
  Cache cache(path);
  const Swept again = run(axes, {.cache = &cache, .intervals = true});
  CHECK(again.csv == whole.csv);
  CHECK(again.size.known == 4);
  // And those with them serve sweeps without.
  CHECK(run(axes, {.cache = &cache}).csv == run(axes).csv);
}

}  // namespace
}  // namespace hipress::sweep
