#include "planner/bound/costs.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hipress::planner {
namespace {

/// Number of elements at which codecs' bytes per element are computed. Headers do not matter there.
constexpr std::int64_t kManyElements = std::int64_t{1} << 40;

}  // namespace

double picoseconds(double seconds) {
  return static_cast<double>(casync::from_seconds(seconds).count());
}

LeastCost::LeastCost(costs::Curve curve, std::uint32_t gpus, double fastest, bool rounds_by_speed)
    : curve_(std::move(curve)), gpus_(gpus), fastest_(fastest), rounds_by_speed_(rounds_by_speed) {
  find_line();
}

double LeastCost::of(std::int64_t x) const {
  if (curve_.pieces.empty() || x == 0) return 0;
  const std::int64_t share = (x + gpus_ - 1) / gpus_;
  double seconds = curve_(share);
  for (const costs::Curve::Piece& piece : curve_.pieces) {
    if (piece.from > static_cast<double>(share)) {
      seconds = std::min(seconds, curve_.at(std::ceil(piece.from)));
    }
  }
  return slow(picoseconds(seconds));
}

/// The minimum is at x or at an end of a later piece, since the last piece rises by at least B per
/// element. The floor is left out: below it, more elements cost nothing.
double LeastCost::of_part(std::int64_t x) const {
  if (curve_.pieces.empty() || x == 0) return 0;
  const costs::Curve lines = {curve_.pieces, 0};
  const auto share = static_cast<double>((x + gpus_ - 1) / gpus_);
  const double slope = line_.b * static_cast<double>(gpus_);
  double least = slow(picoseconds(lines.at(share)) - 1);
  for (const costs::Curve::Piece& piece : curve_.pieces) {
    if (piece.from <= share) continue;
    for (const double end : {piece.from, std::nextafter(piece.from, 0.0)}) {
      least = std::min(least, slow(picoseconds(lines.at(end)) - 1) - slope * (end - share));
    }
  }
  return std::max(least * kSlack, 0.0);
}

/// Checks the line at the ends of the curve's pieces, where it is nearest to them. The last piece
/// has no end, so its slope matters, too. The floor is left out, as it would give a piece a corner.
void LeastCost::find_line() {
  if (curve_.pieces.empty()) return;
  const costs::Curve lines = {curve_.pieces, 0};
  double slope = curve_.pieces.back().b_s;
  const auto each_end = [&](auto visit) {
    visit(1.0);
    for (const costs::Curve::Piece& piece : curve_.pieces) {
      if (piece.from <= 1) continue;
      visit(piece.from);
      visit(std::nextafter(piece.from, 0.0));
    }
  };
  each_end([&](double x) { slope = std::min(slope, lines.at(x) / x); });
  slope = std::max(slope, 0.0);
  double constant = kInfinity;
  each_end([&](double x) { constant = std::min(constant, lines.at(x) - slope * x); });
  constant = std::max(constant, 0.0);
  line_ = {slow(constant * kPicosecondsPerSecond - 1), slow(slope * kPicosecondsPerSecond / gpus_)};
  line_ = {std::max(line_.a * kSlack, 0.0), std::max(line_.b * kSlack, 0.0)};
}

/// Time on the fastest node; slower nodes take proportionally longer.
double LeastCost::slow(double nominal) const {
  const double time = fastest_ == 1 ? nominal : std::floor(nominal / fastest_ + 0.5);
  return rounds_by_speed_ ? std::max(time - 1, 0.0) : time;
}

double least_stage(double seconds, double fastest, bool rounds_by_speed) {
  const double nominal = picoseconds(seconds);
  const double time = fastest == 1 ? nominal : std::floor(nominal / fastest + 0.5);
  return rounds_by_speed ? std::max(time - 1, 0.0) : time;
}

std::int64_t Form::bytes(std::int64_t elements) const {
  return algorithm == nullptr ? elements * static_cast<std::int64_t>(sizeof(float))
                              : algorithm->message_bytes(elements);
}

std::vector<Form> forms_of(const Machines& machines,
                           const std::vector<casync::Algorithm>& algorithms,
                           const ReadyTimes& ready) {
  const auto least = [&](const costs::Curve& curve) {
    return LeastCost(curve, machines.cluster.gpus_per_node, ready.speeds.front(),
                     rounds_by_speed(ready));
  };
  std::vector<Form> forms(algorithms.size() + 1);
  forms[0].add = least(machines.profile.merge);
  forms[0].bytes_per_element = sizeof(float);
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    Form& form = forms[i + 1];
    form.algorithm = &algorithms[i];
    const costs::CodecCosts& codec = machines.profile.codec(algorithms[i].name);
    form.encode = least(codec.encode);
    form.decode = least(codec.decode);
    form.add = least(codec.decode_add);
    form.bytes_per_element = static_cast<double>(form.bytes(kManyElements)) /
                             static_cast<double>(kManyElements) * kSlack;
  }
  return forms;
}

PortLimit port_limit(const Machines& machines) {
  const costs::Cluster& cluster = machines.cluster;
  PortLimit limit;
  if (machines.network == sim::Network::kPort || costs::is_hierarchical(cluster)) return limit;
  const costs::LinkCosts& link = cluster.link;
  limit.credit = picoseconds(static_cast<double>(link.burst_bytes) / link.bandwidth);
  // With bursts the factor stays 1: credit returns while the other direction uses the link.
  if (link.burst_bytes == 0)
    limit.factor = std::max(1.0, link.bandwidth / link.bandwidth_both_ways);
  return limit;
}

LeastAllReduce::LeastAllReduce(const Machines& machines)
    : machines_(machines),
      costs_(machines.profile),
      ring_(costs::ring_costs(machines.cluster)),
      nodes_(machines.cluster.nodes) {}

double LeastAllReduce::time(std::int64_t bytes) const {
  return picoseconds(
      costs_.seconds(nodes_, bytes, ring_, costs::ranks_per_core(machines_.cluster)));
}

/// The measured line if there is one; otherwise that of an ideal ring, which is a lower bound.
Line LeastAllReduce::line() const {
  if (nodes_ < 2) return {};
  const costs::Profile& profile = machines_.profile;
  const auto exact = profile.all_reduce.find(static_cast<int>(nodes_));
  if (exact != profile.all_reduce.end() && ring_ == profile.link) {
    return LeastCost(exact->second, 1, 1, false).line();
  }
  if (ring_.span.hosts > 0) {
    return {0, kSlack * kPicosecondsPerSecond * costs_.least_s_per_byte(nodes_, ring_)};
  }
  const double steps = kSlack * 2 * (nodes_ - 1) * kPicosecondsPerSecond;
  const double constant = steps * (ring_.overhead_s + ring_.latency_s) - 1;
  return {std::max(constant, 0.0), steps / nodes_ / ring_.bandwidth};
}

LeastMessage::LeastMessage(const Machines& machines) {
  const costs::Cluster& cluster = machines.cluster;
  const auto add = [&](costs::Path path) { paths_.push_back(costs::path_costs(cluster, path)); };
  if (cluster.host_link) add(costs::Path::kWithinHost);
  add(costs::Path::kBetweenHosts);
  for (std::size_t levels = 1; levels <= cluster.racks.size(); ++levels) {
    add(costs::between_racks(levels));
  }
  latency_ = kInfinity;
  for (const costs::LinkCosts& path : paths_) {
    latency_ = std::min(latency_, picoseconds(path.latency_s));
  }
  // A node's own port and its host's work at the same time, so a message counts half on each.
  share_ = cluster.host_link ? 0.5 : 1;
  whole_is_on_port_ = paths_.size() == 1;
  fastest_link_ = cluster.link.bandwidth;
  if (cluster.host_link) fastest_link_ = std::max(fastest_link_, cluster.host_link->bandwidth);
  burst_ = port_limit(machines).credit;
  const double o = !cluster.racks.empty() ? 0 : picoseconds(cluster.link.overhead_s) - 1;
  between_hosts_ = {std::max(o, 0.0), kSlack / cluster.link.bandwidth * kPicosecondsPerSecond};
}

double LeastMessage::time(std::int64_t bytes) const {
  double least = kInfinity;
  for (const costs::LinkCosts& path : paths_) {
    least = std::min(least, picoseconds(path.overhead_s) +
                                picoseconds(static_cast<double>(bytes) / path.bandwidth));
  }
  return least;
}

double LeastMessage::work(std::int64_t bytes) const {
  if (whole_is_on_port_) return time(bytes);
  return share_ * kSlack * static_cast<double>(bytes) / fastest_link_ * kPicosecondsPerSecond;
}

Line LeastMessage::line() const {
  Line line = {whole_is_on_port_ ? picoseconds(paths_.front().overhead_s) - 1 : 0.0,
               share_ * kSlack / fastest_link_ * kPicosecondsPerSecond};
  line.a = std::max(line.a, 0.0);
  return line;
}

}  // namespace hipress::planner
