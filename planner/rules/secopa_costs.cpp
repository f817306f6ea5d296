#include "planner/rules/secopa_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/codec/algorithm_list.hpp"

namespace hipress::planner {
namespace {

/// Published line A + B·x in ms; constant for x at which it is below `overhead_ms`.
struct Line {
  double b_ms = 0;  ///< per element
  double a_ms = 0;
  double overhead_ms = 0;

  double operator()(double x) const {
    const double meeting = (overhead_ms - a_ms) / b_ms;
    return x < std::max(0.0, meeting) ? overhead_ms : a_ms + b_ms * x;
  }
};

/// Line for a number of nodes. Lists are sorted by that number.
struct FittedLine {
  int nodes;
  Line line;
};

constexpr Line kEncode = {1.4133e-8, 5.8938e-2, 0.05408};
constexpr Line kDecode = {6.2041e-9, 1.3956e-1, 0.07287};  // x: compressed elements
constexpr Line kSend = {8.5005e-7, 2.0337e-1, 0.09766};
constexpr std::array kGather = {FittedLine{4, {2.7156e-6, 0.41930, 0.15573}},
                                FittedLine{8, {6.1167e-6, 0.80768, 0.28778}},
                                FittedLine{16, {1.2937e-5, 1.4406, 0.59503}}};
constexpr std::array kBroadcast = {FittedLine{4, {2.7157e-6, 0.22156, 0.14820}},
                                   FittedLine{8, {6.1172e-6, 0.27285, 0.29666}},
                                   FittedLine{16, {1.2915e-5, 0.45538, 0.58353}}};
constexpr double kCompressionRatio = 1.0 / 16;

/// The fits for the numbers of nodes next to N, and N's position between them: 0 at the lower, 1 at
/// the upper. If N has a fit or is outside of all, both are the same fit, and the position is 0.
struct Neighbours {
  std::size_t lower = 0;
  std::size_t upper = 0;
  double fraction = 0;
};

Neighbours find_neighbours(int nodes, const std::vector<int>& fitted) {
  const auto above = std::lower_bound(fitted.begin(), fitted.end(), nodes);
  const auto upper = static_cast<std::size_t>(above - fitted.begin());
  if (above == fitted.end()) return {fitted.size() - 1, fitted.size() - 1, 0};
  if (upper == 0 || *above == nodes) return {upper, upper, 0};
  const double span = fitted[upper] - fitted[upper - 1];
  return {upper - 1, upper, (nodes - fitted[upper - 1]) / span};
}

/// Interpolates the cost per peer, since costs grow with the number of peers. `lower` is the cost
/// with `lower_nodes`, `upper` that with `upper_nodes`.
double interpolate(double lower, int lower_nodes, double upper, int upper_nodes, double fraction,
                   int nodes) {
  const double per_peer_lower = lower / (lower_nodes - 1);
  const double per_peer_upper = upper / (upper_nodes - 1);
  return (per_peer_lower + (per_peer_upper - per_peer_lower) * fraction) * (nodes - 1);
}

Line line_for(int nodes, const std::array<FittedLine, 3>& fitted) {
  const Neighbours neighbours = find_neighbours(nodes, published_nodes());
  const auto& [lower_nodes, lower] = fitted[neighbours.lower];
  const auto& [upper_nodes, upper] = fitted[neighbours.upper];
  if (lower_nodes == nodes) return lower;  // avoids rounding
  const auto blend = [&, from = lower_nodes, to = upper_nodes](double low, double high) {
    return interpolate(low, from, high, to, neighbours.fraction, nodes);
  };
  return {blend(lower.b_ms, upper.b_ms), blend(lower.a_ms, upper.a_ms),
          blend(lower.overhead_ms, upper.overhead_ms)};
}

/// Cost as a function of x bytes per sender, from measurements with some numbers of nodes.
std::function<double(double)> gather_for(int nodes, const costs::GatherCosts& costs) {
  const std::vector<int> fitted = fitted_nodes(costs);
  const Neighbours neighbours = find_neighbours(nodes, fitted);
  const int lower_nodes = fitted[neighbours.lower];
  const int upper_nodes = fitted[neighbours.upper];
  return [=, lower = costs.at(lower_nodes), upper = costs.at(upper_nodes)](double bytes) {
    if (lower_nodes == nodes) return lower.at(bytes);
    return interpolate(lower.at(bytes), lower_nodes, upper.at(bytes), upper_nodes,
                       neighbours.fraction, nodes);
  };
}

/// Cost of N−1 messages through the port that they share.
std::function<double(double)> gather_through(const costs::LinkCosts& link, int nodes) {
  return [link, nodes](double bytes) {
    return link.latency_s + (nodes - 1) * (link.overhead_s + bytes / link.bandwidth);
  };
}

}  // namespace

std::vector<int> published_nodes() { return {4, 8, 16}; }

std::vector<int> fitted_nodes(const costs::GatherCosts& costs) {
  std::vector<int> nodes;
  for (const auto& [count, curve] : costs) nodes.push_back(count);
  return nodes;
}

SecopaCosts published_costs(std::uint32_t nodes) {
  const Line gather = line_for(static_cast<int>(nodes), kGather);
  const Line broadcast = line_for(static_cast<int>(nodes), kBroadcast);
  const auto of_compressed = [](const Line& line) {
    return [line](double x) { return line(kCompressionRatio * x); };
  };
  return {.encode = kEncode,
          .decode = of_compressed(kDecode),
          .raw = {gather, broadcast, kSend},
          .compressed = {of_compressed(gather), of_compressed(broadcast), of_compressed(kSend)}};
}

std::string diagnose_published_costs(const std::string& algorithm) {
  if (!kernels::program_file(algorithm)) return {};
  return fmt::format(
      "{} is planned with the costs that SeCoPa published for V100s, which are not its own: "
      "measure "
      "it with hipress-profile `algorithm` {}, and give `profile`",
      algorithm, algorithm);
}

SecopaCosts measured_costs(const costs::Profile& profile, const casync::Algorithm& algorithm,
                           std::uint32_t nodes) {
  const costs::CodecCosts& codec = profile.codec(algorithm.name);
  const costs::LinkCosts& link = profile.link;
  const int count = static_cast<int>(nodes);
  const auto gather =
      profile.fan_in.empty() ? gather_through(link, count) : gather_for(count, profile.fan_in);
  const auto broadcast =
      profile.fan_out.empty() ? gather_through(link, count) : gather_for(count, profile.fan_out);
  // Every node of a ring sends and receives at the same time.
  const auto send = [link](double bytes) {
    return link.overhead_s + bytes / link.bandwidth_both_ways + link.latency_s;
  };
  const auto of_raw = [](std::function<double(double)> cost) {
    return [cost = std::move(cost)](double x) { return cost(x * sizeof(float)); };
  };
  const auto of_message = [&algorithm](std::function<double(double)> cost) {
    return [cost = std::move(cost), algorithm](double x) {
      const auto elements = static_cast<std::int64_t>(std::ceil(x));
      return cost(static_cast<double>(algorithm.message_bytes(elements)));
    };
  };
  return {.encode = [curve = codec.encode](double x) { return curve.at(x); },
          .decode = [curve = codec.decode](double x) { return curve.at(x); },
          .raw = {of_raw(gather), of_raw(broadcast), of_raw(send)},
          .compressed = {of_message(gather), of_message(broadcast), of_message(send)}};
}

costs::Profile profile_on_link(costs::Profile profile, const costs::LinkCosts& link) {
  if (profile.link == link) return profile;
  profile.link = link;
  profile.fan_in.clear();
  profile.fan_out.clear();
  return profile;
}

std::string describe_interpolation(std::uint32_t nodes, const std::vector<int>& fitted) {
  const int count = static_cast<int>(nodes);
  const Neighbours neighbours = find_neighbours(count, fitted);
  const int lower = fitted[neighbours.lower];
  const int upper = fitted[neighbours.upper];
  if (lower == count) return {};
  const std::string subject = fmt::format("gather and broadcast among {} nodes", nodes);
  if (lower != upper)
    return fmt::format("{}: interpolated between {} and {} nodes", subject, lower, upper);
  return fmt::format("{}: extrapolated from {} nodes, with the same cost per peer", subject, lower);
}

}  // namespace hipress::planner
