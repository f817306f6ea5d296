#include "replay/drift.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace hipress::replay {
namespace {

constexpr double kDeviations = 2;
/// Variation of the medians of short probes on an unchanged machine, as a logarithm.
constexpr double kMinMovement = 0.10;

struct ProbeRow {
  const char* does;
  double costs::Probes::*reached;
  std::optional<double> Drift::*ratio;
};
constexpr std::array<ProbeRow, 3> kProbes = {{
    {"copying", &costs::Probes::copy, &Drift::copy},
    {"coding", &costs::Probes::codec, &Drift::codec},
    {"the transport", &costs::Probes::transport, &Drift::transport},
}};

bool is_beyond(const std::optional<double>& ratio, const costs::Spread& spread) {
  return ratio && std::abs(std::log(*ratio)) > explained(spread);
}

/// Factor on times since the profile: the inverse of the ratio of speeds; 1 if unknown.
double slower(const std::optional<double>& ratio) { return ratio ? 1 / *ratio : 1; }

void scale(costs::GatherCosts& costs, double factor) {
  for (auto& [nodes, curve] : costs) curve = curve.times(factor);
}

void scale_transfers(double factor, costs::Profile& profile) {
  costs::LinkCosts& link = profile.link;
  link.core_s_per_byte *= factor;
  link.core_s_per_message *= factor;
  if (!profile.shared_host) return;
  link.overhead_s *= factor;
  link.latency_s *= factor;
  link.bandwidth /= factor;
  link.bandwidth_both_ways /= factor;
  for (auto* const costs : {&profile.fan_in, &profile.fan_out, &profile.all_reduce,
                            &profile.all_gather, &profile.reduce_scatter, &profile.all_to_all})
    scale(*costs, factor);
}

}  // namespace

Drift drift(const costs::Probes& now, const costs::Probes& then) {
  Drift found;
  for (const ProbeRow& row : kProbes) {
    if (now.*row.reached > 0 && then.*row.reached > 0)
      found.*row.ratio = now.*row.reached / then.*row.reached;
  }
  return found;
}

costs::Probes between(const costs::Probes& one, const costs::Probes& other) {
  costs::Probes middle;
  for (const ProbeRow& row : kProbes)
    middle.*row.reached = std::sqrt(one.*row.reached * other.*row.reached);
  return middle;
}

double movement(const costs::Probes& one, const costs::Probes& other) {
  double most = 0;
  const Drift moved = drift(one, other);
  for (const ProbeRow& row : kProbes)
    if (moved.*row.ratio) most = std::max(most, std::abs(std::log(*(moved.*row.ratio))));
  return most;
}

double explained(const costs::Spread& spread) {
  return std::max(kDeviations * spread.host, kMinMovement);
}

bool is_beyond(const Drift& drift, const costs::Spread& spread) {
  return std::ranges::any_of(
      kProbes, [&](const ProbeRow& row) { return is_beyond(drift.*row.ratio, spread); });
}

std::string describe(const Drift& drift, const costs::Spread& spread) {
  std::string speeds;
  for (const ProbeRow& row : kProbes) {
    if (!is_beyond(drift.*row.ratio, spread)) continue;
    speeds += fmt::format("{}{} {:.2g} times as fast", speeds.empty() ? "" : ", ", row.does,
                          *(drift.*row.ratio));
  }
  if (speeds.empty()) return {};
  return fmt::format("the machine is not as it was when profiled ({}): profile it again", speeds);
}

Watched watch(const std::function<costs::Probes()>& probe,
              const std::function<costs::Spread()>& work, int again) {
  costs::Probes before = probe();
  for (int times = 1;; ++times) {
    const costs::Spread spread = work();
    const costs::Probes after = probe();
    const double moved = movement(before, after);
    const bool steady = moved <= explained(spread);
    if (steady || times > again) {
      return {.probes = between(before, after), .moved = steady ? 0 : moved, .times = times};
    }
    before = after;
  }
}

costs::Spread widened(costs::Spread spread, double moved) {
  spread.host = std::min(std::max(spread.host, moved), costs::kMaxSpread);
  return spread;
}

std::string describe_movement(const Watched& watched, std::string_view during) {
  if (watched.moved == 0) return {};
  constexpr std::array<std::string_view, 3> kLater = {"second", "third", "fourth"};
  std::string attempt;
  if (watched.times > 1) {
    const auto later = static_cast<std::size_t>(watched.times) - 2;
    attempt = later < kLater.size() ? fmt::format(" ({} attempt)", kLater[later])
                                    : fmt::format(" (attempt {})", watched.times);
  }
  return fmt::format("{} by {:.0f} % during {}{}, so the intervals are wide", kMoved,
                     100 * std::expm1(watched.moved), during, attempt);
}

costs::Profile as_fast_as_now(const costs::Profile& profile, const Drift& drift) {
  costs::Profile now = profile;
  for (auto& [name, codec] : now.codecs) codec = codec.times(slower(drift.codec));
  now.merge = now.merge.times(slower(drift.copy));
  now.memory_bandwidth /= slower(drift.copy);
  scale_transfers(slower(drift.transport), now);
  return now;
}

}  // namespace hipress::replay
