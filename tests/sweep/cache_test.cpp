#include "sweep/cache.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

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
          .compute = casync::Picoseconds(2),
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
    const Cache other(path);  // opened while the first one is
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
  // An outcome with a sensitivity replaces one without, whatever journal they are in.
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

/// A line of a journal, with its checksum. Anybody could write one.
std::string line(const std::string& said) { return said + ' ' + io::fingerprint(said) + '\n'; }

TEST_CASE("lines that no simulation comes to count as not there") {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path("cache");
  { Cache(path).put("good", outcome(5)); }
  std::ofstream journal(only_journal(path), std::ios::app);
  const std::string most = std::to_string(INT64_MAX), least = std::to_string(INT64_MIN);
  int wrong = 0;
  for (const std::string& text :
       std::vector<std::string>{"1 -5 0 0 3 - - -",
                                "1 5 -1 2 3 - - -",
                                "1 5 1 -2 3 - - -",
                                "1 5 1 2 -3 - - -",
                                "1 " + most + " 1 2 3 - - -",
                                "1 5 1 " + most + " 3 - - -",
                                "1 5 " + least + " 2 3 - - -",
                                "1 5 6 2 3 - - -",  // forward is longer than the iteration
                                "1 5 1 6 3 - - -",  // so is computation
                                "1 0 0 0 3 - - -",
                                "1 5 1 2 0 - - -",
                                "1 5 1 2 3 nan 0 0",
                                "1 5 1 2 3 0 inf 0",
                                "1 5 1 2 3 0 0 nan",
                                "1 5 1 2 3 0 1e300 0",
                                "1 5 1 2 3 - 0 0",
                                "1 5 1 2 3 0 0",
                                "1 5 1 2 3 0 0 0 0",
                                "2 5 1 2 3 - - -",
                                "1 5.5 1 2 3 - - -",
                                "1",
                                "",
                                "0 0"}) {
    journal << line(fmt::format("wrong{} {}", wrong++, text));
  }
  journal << line("") << line(" ") << line("key") << '\n' << line("1 5 1 2 3 - - -");
  journal << line("last 1 5 1 2 3 - - -");
  journal.close();
  const Cache cache(path);
  CHECK(cache.size() == 2);
  // Four more lines have a valid checksum, but no key or no outcome.
  CHECK(cache.incredible() == static_cast<std::size_t>(wrong) + 4);
  REQUIRE(cache.find("good") != nullptr);
  CHECK(*cache.find("good") == outcome(5));
  REQUIRE(cache.find("last") != nullptr);
  CHECK(*cache.find("last") == outcome(5));
}

TEST_CASE("what others could have written is refused with the remedy") {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path("cache");
  { Cache(path).put("a", outcome(5)); }
  const std::string journal = only_journal(path);
  const auto refusal = [&] { return complaint([&] { Cache cache(path); }); };
  CHECK(fs::status(path).permissions() == fs::perms::owner_all);
  SECTION("the folder") {
    fs::permissions(path, fs::perms::all);
    CHECK_THAT(refusal(), Contains(path + " can be written to by every user") &&
                              Contains("give another `cache`, or none"));
  }
  SECTION("a journal") {
    fs::permissions(journal, fs::perms::others_write, fs::perm_options::add);
    CHECK_THAT(refusal(), Contains(journal) && Contains("every user"));
  }
  SECTION("a link in place of a journal") {
    const std::string elsewhere = folder.file("elsewhere", io::read_file(journal));
    fs::remove(journal);
    fs::create_symlink(elsewhere, journal);
    CHECK_THAT(refusal(), Contains(journal + " is a link"));
  }
  SECTION("a pipe in place of a journal") {
    fs::remove(journal);
    REQUIRE(::mkfifo(journal.c_str(), 0600) == 0);
    CHECK_THAT(refusal(), Contains(journal + " is no regular file"));
  }
  if (::geteuid() != 0) return;  // only root can give files to other users
  constexpr uid_t kOther = 12345;
  SECTION("another user's folder") {
    REQUIRE(::chown(path.c_str(), kOther, kOther) == 0);
    CHECK_THAT(refusal(), Contains("belongs to user 12345"));
  }
  SECTION("another user's journal") {
    REQUIRE(::chown(journal.c_str(), kOther, kOther) == 0);
    CHECK_THAT(refusal(), Contains(journal + " belongs to user 12345"));
  }
  SECTION("another user's plan") {
    Cache cache(path);
    cache.put_plan("p", "text\n");
    REQUIRE(::chown((path + "/p.yaml").c_str(), kOther, kOther) == 0);
    CHECK_THAT(complaint([&] { cache.find_plan("p"); }), Contains("belongs to user 12345"));
  }
}

TEST_CASE("a plan that is not what was kept under its key counts as not there") {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path("cache");
  const std::string text = "nodes: 3\ngradients: []\n";
  {
    Cache cache(path);
    CHECK(cache.find_plan("a") == std::nullopt);
    cache.put_plan("a", text);
    CHECK(cache.find_plan("a") == text);
  }
  const Cache cache(path);
  CHECK(cache.find_plan("a") == text);
  const std::string file = path + "/a.yaml";
  const std::string whole = io::read_file(file);
  for (std::size_t place = 0; place < whole.size(); ++place) {
    std::string damaged = whole;
    damaged[place] ^= 1;
    std::ofstream(file) << damaged;
    CHECK(cache.find_plan("a") == std::nullopt);
    std::ofstream(file) << whole.substr(0, place);
    CHECK(cache.find_plan("a") == std::nullopt);
  }
  std::ofstream(file) << whole << "schedule: fsdp\n";
  CHECK(cache.find_plan("a") == std::nullopt);
  // A copy under another key is ignored, since the checksum covers the key.
  std::ofstream(file) << whole;
  fs::copy_file(file, path + "/b.yaml");
  CHECK(cache.find_plan("b") == std::nullopt);
  CHECK(cache.find_plan("a") == text);
}

TEST_CASE("a folder that is none is refused") {
  const tests::TemporaryFolder folder;
  const std::string file = folder.file("file", "");
  CHECK_THAT(complaint([&] { Cache cache(file); }), Contains(file));
}

/// A sweep of made-up machines that may use a cache.
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
  // Remove the outcomes, and keep the plans.
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

TEST_CASE_METHOD(CachedSweep, "a point that is said to be impossible is simulated") {
  const std::string path = folder.path("cache"), axes = "nodes: [2, 3]\nplan: [none, all, best]\n";
  const std::string whole = run(axes).csv;
  {
    Cache cache(path);
    run(axes, {.cache = &cache});
  }
  // Only baseline ddp may be impossible. Forged lines are believed for it, and for no other plan.
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() != ".journal") continue;
    std::string forged;
    for (const std::string& written : io::read_lines(entry.path().string())) {
      forged += line(written.substr(0, written.find(' ')) + " 0");
    }
    std::ofstream(entry.path()) << forged;
  }
  Cache cache(path);
  const Swept swept = run(axes, {.cache = &cache});
  CHECK(swept.size.known == 0);
  CHECK(swept.csv.size() > whole.size() / 2);
}

TEST_CASE_METHOD(CachedSweep, "a kept plan that was changed is searched again") {
  const std::string best = "nodes: 3\nplan: best\nbandwidth: [100MB/s, 1MB/s]\n";
  const std::string whole = run(best).csv;
  const std::string path = folder.path("cache");
  {
    Cache cache(path);
    run(best, {.cache = &cache});
  }
  std::vector<fs::path> plans;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".yaml") {
      plans.push_back(entry.path());
    } else {
      fs::remove(entry.path());
    }
  }
  REQUIRE(plans.size() == 2);
  std::ofstream(plans[0]) << "schema: hipress.plan/1\ntopology: ring\nnodes: 3\ngradients:\n"
                             "  - {name: late, elements: 64000, algorithm: tbq, K: 1}\n"
                             "  - {name: early, elements: 320, algorithm: tbq, K: 1}\n";
  fs::copy_file(plans[0], plans[1], fs::copy_options::overwrite_existing);
  Cache cache(path);
  CHECK(run(best, {.cache = &cache}).csv == whole);
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
  // With four nodes, these are simulated: `none` (also the baseline), `all` and `ddp`.
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
        "nodes: 2\nplan: all\nprofile: v100-100g\n", "nodes: 2\nplan: all\nnetwork: port\n"}) {
    CAPTURE(other);
    CHECK(known(other) == 0);
  }
  // Change the file under the same name.
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
  // Outcomes with intervals also serve sweeps without.
  CHECK(run(axes, {.cache = &cache}).csv == run(axes).csv);
}

}  // namespace
}  // namespace hipress::sweep
