#include "sim/traffic.hpp"

#include <algorithm>
#include <vector>

namespace hipress::sim {
namespace {

using casync::TaskId;

constexpr double kSecondsPerDay = 86400;

/// Bytes sent by one node over time: a rate that changes when messages start and end.
class Sent {
 public:
  void add(Picoseconds start, Picoseconds end, std::int64_t bytes) {
    if (end <= start) return;
    const double rate = static_cast<double>(bytes) / casync::to_seconds(end - start);
    changes_.push_back({casync::to_seconds(start), rate});
    changes_.push_back({casync::to_seconds(end), -rate});
  }

  /// Maximum number of bytes in any window of that length. Between instants at which an end of the
  /// window meets a change, the sum is linear, so its maximum is at such an instant.
  double most_within(double length_s) {
    if (changes_.empty()) return 0;
    sum_up();
    double most = 0;
    std::size_t behind = 0, ahead = 0;
    for (const Change& change : changes_) {
      most = std::max(most, at(change.time_s + length_s, ahead) - change.sent);
      most = std::max(most, change.sent - at(change.time_s - length_s, behind));
    }
    return most;
  }

 private:
  struct Change {
    double time_s = 0;
    double rate = 0;  // change of the rate in bytes/s; after sum_up(), the new rate
    double sent = 0;  // bytes until then
  };

  void sum_up() {
    std::sort(changes_.begin(), changes_.end(),
              [](const Change& a, const Change& b) { return a.time_s < b.time_s; });
    double rate = 0, sent = 0, reached_s = changes_.front().time_s;
    for (Change& change : changes_) {
      sent += rate * (change.time_s - reached_s);
      reached_s = change.time_s;
      rate = std::max(0.0, rate + change.rate);
      change.rate = rate;
      change.sent = sent;
    }
    changes_.back().rate = 0;
  }

  /// Bytes sent until `time_s`; `place` only grows, so times must not decrease.
  double at(double time_s, std::size_t& place) const {
    while (place + 1 < changes_.size() && changes_[place + 1].time_s <= time_s) ++place;
    const Change& last = changes_[place];
    return time_s < last.time_s ? last.sent : last.sent + last.rate * (time_s - last.time_s);
  }

  std::vector<Change> changes_;
};

}  // namespace

Traffic traffic(const Scenario& scenario, const casync::TaskGraph& graph, const Result& result,
                Picoseconds step, Picoseconds compute) {
  traces::require_same_graph(graph, result.timeline);
  std::vector<Sent> sent(graph.representatives());
  for (TaskId id = 0; id < graph.tasks(); ++id) {
    const casync::Task& task = graph[id];
    const casync::Resource resource = resource_of(task.kind);
    if (resource != casync::Resource::kPorts && resource != casync::Resource::kCollective) continue;
    sent[graph.representative(task.node)].add(result.timeline.start[id], result.timeline.end[id],
                                              casync::bytes_sent(graph, task));
  }
  const auto most = std::ranges::max_element(result.bytes_sent);
  const double steps = scenario.iterations * static_cast<double>(steps_per_period(scenario));
  Traffic found;
  found.bytes_per_step = most == result.bytes_sent.end() ? 0 : static_cast<double>(*most) / steps;
  const double step_s = casync::to_seconds(step), compute_s = casync::to_seconds(compute);
  if (step_s > 0) found.bytes_per_day = found.bytes_per_step * kSecondsPerDay / step_s;
  if (compute_s <= 0) return found;
  for (Sent& of_node : sent) {
    found.peak_bits_per_s =
        std::max(found.peak_bits_per_s, 8 * of_node.most_within(compute_s) / compute_s);
  }
  return found;
}

}  // namespace hipress::sim
