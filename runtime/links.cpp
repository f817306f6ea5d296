#include "runtime/links.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "job/gather.hpp"
#include "runtime/engine.hpp"

namespace hipress::runtime {
namespace {

/// A burst of `times` all-reduces, of which the first is a warm-up. A message between two ranks has
/// `elements` numbers.
struct Burst {
  std::int64_t elements = 0;
  int times = 0;
};
constexpr Burst kSmall{64, 6};
/// Bursts of longer and longer messages; the last one may be cut short by kMostElements.
constexpr std::array<Burst, 3> kLonger = {
    {{std::int64_t{1} << 15, 4}, {std::int64_t{1} << 17, 4}, {std::int64_t{1} << 19, 4}}};
/// Maximum number of elements of an all-reduce. With many ranks, it shortens the messages.
constexpr std::int64_t kMostElements = std::int64_t{1} << 22;
/// Time of an all-reduce, in seconds, from which longer messages are not tried: training waits
/// meanwhile.
constexpr double kLongEnough_s = 0.005;
/// Lower limit of `between_s` in measure_links(), as a share of the time with the longer messages:
/// on a busy machine, the shorter messages may even take longer.
constexpr double kLeastShare = 0.02;

/// Result of a burst.
struct Timed {
  double bytes = 0;    ///< size of a message between two ranks
  double seconds = 0;  ///< time of each rank's fastest all-reduce, averaged over the ranks
};

Timed time(transport::Endpoint& endpoint, double timeout_s, const Burst& burst) {
  const std::int64_t ranks = endpoint.size();
  const std::int64_t elements = std::max(ranks, std::min(ranks * burst.elements, kMostElements));
  const auto compiled = compile({{.name = "link", .elements = elements}},
                                PlanChoice{.nodes = static_cast<std::uint32_t>(ranks)});
  Engine engine(endpoint, compiled, {.timeout_s = timeout_s});
  std::vector<float> values(static_cast<std::size_t>(elements));
  double shortest_s = std::numeric_limits<double>::infinity();
  for (int i = 0; i < burst.times; ++i) {
    const auto began = transport::Clock::now();
    engine.submit(0, {.data = values.data(), .elements = elements}).wait();
    const std::chrono::duration<double> took = transport::Clock::now() - began;
    if (i > 0) shortest_s = std::min(shortest_s, took.count());
  }
  const std::vector<double> all = job::gather(endpoint, shortest_s);
  return {.bytes = static_cast<double>(elements) / static_cast<double>(ranks) * sizeof(float),
          .seconds = std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(ranks)};
}

}  // namespace

// With N ranks, an all-reduce takes 2(N-1) consecutive messages of m bytes between two ranks. Its
// time is 2(N-1)(a + m/b), with latency a in seconds and bandwidth b in bytes per second.
Links measure_links(transport::Endpoint& endpoint, double timeout_s) {
  if (endpoint.size() < 2) throw std::invalid_argument("one rank alone has no links");
  const double hops = 2.0 * (endpoint.size() - 1);
  const Timed small = time(endpoint, timeout_s, kSmall);
  Timed shorter = small, longer = small;
  for (const Burst& burst : kLonger) {
    const Timed timed = time(endpoint, timeout_s, burst);
    if (timed.bytes == longer.bytes) break;
    shorter = std::exchange(longer, timed);
    if (longer.seconds >= kLongEnough_s) break;
  }
  const double between_s = std::max(longer.seconds - shorter.seconds, kLeastShare * longer.seconds);
  return {.bandwidth = hops * (longer.bytes - shorter.bytes) / between_s,
          .latency_s = small.seconds / hops};
}

}  // namespace hipress::runtime
