#include "replay/drift.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "costs/cluster.hpp"
#include "replay/probes.hpp"
#include "tests/runtime/ranks.hpp"

using namespace hipress;
using namespace hipress::replay;
using namespace hipress::runtime;
using Catch::Matchers::Contains;

namespace {

constexpr costs::Probes kThen = {.copy = 10e9, .codec = 5e9, .transport = 1e9};
/// Spread that explains movements of up to 2 · 0.1, a factor of 1.221.
constexpr costs::Spread kSpread = {.host = 0.1, .links = 0.05};

costs::Probes times(double factor) {
  return {.copy = kThen.copy * factor, .codec = kThen.codec, .transport = kThen.transport};
}

/// Calls replay::watch() with scripted probes: `copies` has the factor of every copy probe.
struct Scripted {
  explicit Scripted(std::vector<double> factors) : copies(std::move(factors)) {}
  std::vector<double> copies;
  std::size_t probed = 0;
  int worked = 0;

  Watched watch(int again) {
    return replay::watch([this] { return times(copies.at(probed++)); },
                         [this] {
                           ++worked;
                           return kSpread;
                         },
                         again);
  }
};

}  // namespace

TEST_CASE("drift is speed now over speed then, of what was probed both times") {
  const Drift found = drift({.copy = 17e9, .codec = 2.5e9, .transport = 0}, kThen);
  CHECK(found.copy == Approx(1.7));
  CHECK(found.codec == Approx(0.5));
  CHECK_FALSE(found.transport);
  CHECK(drift(kThen, {}) == Drift{});
}

TEST_CASE("drift beyond the spread is described with its remedy") {
  CHECK(is_beyond(Drift{.copy = 1.7, .codec = {}, .transport = {}}, kSpread));
  CHECK(is_beyond(Drift{.copy = {}, .codec = {}, .transport = 0.8}, kSpread));
  CHECK_FALSE(is_beyond(Drift{.copy = 1.2, .codec = 0.85, .transport = 1}, kSpread));
  CHECK(describe(Drift{.copy = 1.7, .codec = 1.1, .transport = 0.5}, kSpread) ==
        "the machine is not as it was when profiled (copying 1.7 times as fast, the transport 0.5 "
        "times as fast): profile it again");
  CHECK(describe({}, kSpread).empty());
  // Short probes vary by 10 % anyway, so a ratio of 1.1 is never drift.
  CHECK_FALSE(is_beyond(Drift{.copy = 1.1, .codec = {}, .transport = {}}, costs::Spread{}));
  CHECK(is_beyond(Drift{.copy = 1.11, .codec = {}, .transport = {}}, costs::Spread{}));
}

TEST_CASE("what is measured while the machine is steady is measured once") {
  Scripted steady({1, 1.21});
  const Watched watched = steady.watch(3);
  CHECK(steady.worked == 1);
  CHECK(watched.times == 1);
  CHECK(watched.moved == 0);
  CHECK(watched.probes.copy == Approx(10e9 * 1.1));  // √(1 · 1.21)
  CHECK(describe_movement(watched, "the replay").empty());
}

TEST_CASE("what is measured while the machine changes is measured again, from where it went") {
  Scripted settles({1, 2, 2});
  const Watched watched = settles.watch(3);
  CHECK(settles.worked == 2);
  CHECK(watched.times == 2);
  CHECK(watched.moved == 0);
  CHECK(watched.probes.copy == Approx(20e9));
}

TEST_CASE("a machine that never settles is given up with the movement") {
  Scripted never({1, 2, 1, 2, 1.5});
  const Watched watched = never.watch(3);
  CHECK(never.worked == 4);
  CHECK(watched.times == 4);
  CHECK(watched.moved == Approx(std::log(2 / 1.5)));
  CHECK(
      describe_movement(watched, "profiling") ==
      "the machine's speed varied by 33 % during profiling (fourth attempt), so the intervals are "
      "wide");
  CHECK(widened(kSpread, watched.moved).host == Approx(std::log(2 / 1.5)));
  CHECK(widened(kSpread, 0.01) == kSpread);
  CHECK(widened(kSpread, 7).host == costs::kMaxSpread);

  Scripted once({1, 2});
  const Watched first = once.watch(0);
  CHECK(first.times == 1);
  CHECK(describe_movement(first, "the replay") ==
        "the machine's speed varied by 100 % during the replay, so the intervals are wide");
  CHECK(once.worked == 1);
}

TEST_CASE("a profile as fast as now has its host costs scaled, and links where they are loopback") {
  costs::Profile profile;
  const costs::Curve curve = {.pieces = {{.a_s = 1e-6, .b_s = 1e-9}}};
  profile.codecs["onebit"] = {.encode = curve, .decode = curve, .decode_add = curve};
  profile.merge = curve;
  profile.link = {.overhead_s = 2e-6,
                  .bandwidth = 1e9,
                  .bandwidth_both_ways = 1e9,
                  .latency_s = 4e-6,
                  .core_s_per_byte = 1e-9,
                  .core_s_per_message = 6e-6};
  profile.all_reduce[2] = curve;
  const Drift found{.copy = 2, .codec = 0.5, .transport = 0.8};
  const costs::Profile apart = as_fast_as_now(profile, found);
  CHECK(apart.codec("onebit").encode(0) == Approx(2e-6));
  CHECK(apart.codec("onebit").decode_add(1000) == Approx(4e-6));
  CHECK(apart.merge(1000) == Approx(1e-6));
  CHECK(apart.link.core_s_per_byte == Approx(1.25e-9));
  CHECK(apart.link.core_s_per_message == Approx(7.5e-6));
  CHECK(apart.link.bandwidth == 1e9);  // a slow host does not slow a cable
  CHECK(apart.all_reduce.at(2) == curve);

  profile.shared_host = true;
  const costs::Profile loopback = as_fast_as_now(profile, found);
  CHECK(loopback.link.bandwidth == Approx(0.8e9));
  CHECK(loopback.link.bandwidth_both_ways == Approx(0.8e9));
  CHECK(loopback.link.overhead_s == Approx(2.5e-6));
  CHECK(loopback.link.latency_s == Approx(5e-6));
  CHECK(loopback.all_reduce.at(2)(0) == Approx(1.25e-6));
  CHECK(as_fast_as_now(profile, {}) == profile);
}

TEST_CASE("probes reach something, on threads and in a job, where rank 0's are everybody's") {
  const costs::Probes all = run_probes({.kernels = true, .transport = "memory"});
  CHECK(all.copy > 0);
  CHECK(all.codec > 0);
  CHECK(all.transport > 0);
  const costs::Probes none = run_probes({.kernels = false, .transport = ""});
  CHECK(none == costs::Probes{});

  std::vector<costs::Probes> seen(2);
  const auto errors = run_ranks(2, [&](transport::Endpoint& endpoint) {
    seen[static_cast<std::size_t>(endpoint.rank())] =
        run_probes({.kernels = false, .transport = "tcp"}, endpoint);
  });
  for (const auto& error : errors) CHECK(message_of(error) == "no error");
  CHECK(seen[0].transport > 0);
  CHECK(seen[0] == seen[1]);
}
