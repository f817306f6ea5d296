#include "tools/sim/report.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "costs/assumed_spread.hpp"
#include "costs/description.hpp"
#include "io/quantity.hpp"
#include "io/spelling.hpp"
#include "sim/critical_path.hpp"

namespace hipress::sim {
namespace {

using casync::Kind;
using casync::TaskId;
using requests::Prediction;

std::string duration(Picoseconds time) {
  const std::string text = io::format_duration(casync::to_seconds(std::chrono::abs(time)));
  return time.count() < 0 ? "-" + text : text;
}

double share_of(Picoseconds part, Picoseconds whole) {
  return whole.count() > 0 ? static_cast<double>(part.count()) / static_cast<double>(whole.count())
                           : 0.0;
}

void line(std::ostream& out, std::string_view label, const std::string& value) {
  fmt::print(out, "{:<24}{}\n", label, value);
}

/// Time by which the path's computation after `begin` was slowed, compared with running alone.
Picoseconds slowed_on_path(const Prediction& prediction, Picoseconds begin) {
  const traces::Timeline& times = prediction.result.timeline;
  Picoseconds slowed{};
  if (times.slowed.empty()) return slowed;
  for (const TaskId id : prediction.critical_path) {
    if (times.start[id] >= begin) slowed += times.slowed[id];
  }
  return slowed;
}

/// Composition of the critical path from `begin` to its end: "Send 8.1ms (71.0 %), on the wire
/// 0.4ms (3.5 %)".
std::string describe_path(const Prediction& prediction, Picoseconds begin) {
  const PathTimes times =
      path_times(prediction.graph, prediction.result.timeline, prediction.critical_path, begin);
  const Picoseconds length = prediction.result.iteration - begin;
  std::string text;
  const auto add = [&](std::string_view what, Picoseconds time) {
    if (time.count() == 0) return;
    text += fmt::format("{}{} {} ({:.1f} %)", text.empty() ? "" : ", ", what, duration(time),
                        100 * share_of(time, length));
  };
  for (std::size_t kind = 0; kind < times.by_kind.size(); ++kind) {
    add(casync::to_string(static_cast<Kind>(kind)), times.by_kind[kind]);
  }
  const Picoseconds slowed = slowed_on_path(prediction, begin);
  if (slowed.count() > 0) text += fmt::format("; {} of it computation slowed", duration(slowed));
  add("on the wire", times.wire);
  return text.empty() ? "none, no task takes time" : text;
}

/// Steps of the critical path that are printed as one: they have the same kind and gradient, whose
/// partitions and hops follow each other on a path. All Backward tasks are one stretch, and so are
/// all Forward tasks.
struct Stretch {
  Kind kind = Kind::kForward;
  TaskId first = 0;
  TaskId last = 0;
  std::int64_t steps = 0;
  Picoseconds time{};
  bool travels = false;  // it visits several nodes
};

std::vector<Stretch> stretches_of(const Prediction& prediction) {
  const traces::Timeline& times = prediction.result.timeline;
  std::map<std::pair<Kind, std::uint32_t>, Stretch> stretches;
  for (const TaskId id : prediction.critical_path) {
    const casync::Task& task = prediction.graph[id];
    if (times.start[id] == times.end[id]) continue;  // a receive, or a task without cost
    const bool computes = is_computation(task);
    Stretch& stretch = stretches[{task.kind, computes ? 0 : task.gradient}];
    if (stretch.steps++ == 0) stretch.first = id;
    stretch.travels |= task.node != prediction.graph[stretch.first].node;
    stretch.kind = task.kind;
    stretch.last = id;
    stretch.time += times.end[id] - times.start[id];
  }
  std::vector<Stretch> list;
  for (const auto& [key, stretch] : stretches) list.push_back(stretch);
  return list;
}

std::string gradients_of(const Prediction& prediction, const Stretch& stretch) {
  if (stretch.kind == Kind::kForward || stretch.kind == Kind::kSteps) return "";
  const auto name = [&](TaskId id) { return prediction.names[prediction.graph[id].gradient]; };
  const std::string first = name(stretch.first), last = name(stretch.last);
  return first == last ? first : first + " … " + last;
}

/// First node of a stretch: "3", or "3 …" if the stretch also visits other nodes.
std::string nodes_of(const Prediction& prediction, const Stretch& stretch) {
  return fmt::format("{}{}", prediction.graph[stretch.first].node, stretch.travels ? " …" : "");
}

/// Prints the longest stretches of the path in chronological order. The JSON has every step.
void print_path(std::ostream& out, const Prediction& prediction) {
  constexpr std::size_t kShown = 10;
  const traces::Timeline& times = prediction.result.timeline;
  std::vector<Stretch> stretches = stretches_of(prediction);
  if (stretches.empty()) return;
  std::stable_sort(stretches.begin(), stretches.end(),
                   [](const Stretch& a, const Stretch& b) { return a.time > b.time; });
  const std::size_t all = stretches.size();
  stretches.resize(std::min(all, kShown));
  std::stable_sort(stretches.begin(), stretches.end(), [&](const Stretch& a, const Stretch& b) {
    return times.start[a.first] < times.start[b.first];
  });
  fmt::print(out, "\ncritical path by kind and gradient{}:\n",
             all > kShown ? fmt::format(", the {} of {} that take longest", kShown, all) : "");
  fmt::print(out, "  {:<9}{:>6}{:>12}{:>12}{:>7}{:>12}{:>9}  gradient\n", "kind", "node", "start",
             "end", "steps", "time", "share");
  for (const Stretch& stretch : stretches) {
    fmt::print(out, "  {:<9}{:>6}{:>12}{:>12}{:>7}{:>12}{:>7.1f} %  {}\n",
               casync::to_string(stretch.kind), nodes_of(prediction, stretch),
               duration(times.start[stretch.first]), duration(times.end[stretch.last]),
               stretch.steps, duration(stretch.time),
               100 * share_of(stretch.time, prediction.result.iteration),
               gradients_of(prediction, stretch));
  }
}

/// Bytes sent per node: "33.7MB", or "33.7MB to 40.1MB" if the nodes differ visibly.
std::string describe_bytes_sent(const std::vector<std::int64_t>& bytes_sent) {
  const auto [least, most] = std::minmax_element(bytes_sent.begin(), bytes_sent.end());
  const std::string low = io::format_amount(*least);
  const std::string high = io::format_amount(*most);
  return low == high ? low : low + " to " + high;
}

/// Shares after their name: "egress 12 %", or "egress 12 to 40 %" if they differ visibly.
template <class Items, class Share>
std::string describe_shares(std::string_view name, const Items& items, Share share) {
  double least = 1e300, most = 0;
  for (const auto& item : items) {
    least = std::min(least, share(item));
    most = std::max(most, share(item));
  }
  const std::string low = fmt::format("{:.1f}", 100 * least);
  const std::string high = fmt::format("{:.1f}", 100 * most);
  return fmt::format("{} {}{} %", name, low, low == high ? "" : " to " + high);
}

std::string describe_utilisation(const Utilisation& use) {
  const auto nodes = [&](std::string_view name, auto share) {
    return describe_shares(name, use.nodes, share);
  };
  std::string text = nodes("compute", [](const NodeUse& node) { return node.compute; }) + ", " +
                     nodes("codec", [](const NodeUse& node) { return node.codec; }) + ", " +
                     nodes("egress", [](const NodeUse& node) { return node.egress.utilisation; }) +
                     ", " +
                     nodes("ingress", [](const NodeUse& node) { return node.ingress.utilisation; });
  const bool half_duplex = std::any_of(use.nodes.begin(), use.nodes.end(), [](const NodeUse& node) {
    return 2 * node.both_ways > 1.0001 * (node.egress.utilisation + node.ingress.utilisation);
  });
  if (half_duplex) {
    text += ", " + nodes("both ways", [](const NodeUse& node) { return node.both_ways; });
  }
  const bool has_gpus = std::any_of(use.nodes.begin(), use.nodes.end(),
                                    [](const NodeUse& node) { return node.local > 0; });
  if (has_gpus) text += ", " + nodes("GPU links", [](const NodeUse& node) { return node.local; });
  const auto shared = [&](std::string_view what, std::string_view out, std::string_view in,
                          const std::vector<SharedLinkUse>& links) {
    if (links.empty()) return std::string();
    return fmt::format(", {} {}, {}", what,
                       describe_shares(out, links, [](const auto& l) { return l.out.utilisation; }),
                       describe_shares(in, links, [](const auto& l) { return l.in.utilisation; }));
  };
  text +=
      shared("NICs", "out", "in", use.host_links) + shared("racks", "up", "down", use.rack_links);
  if (use.hosts.empty()) return text;
  return text + ", " +
         describe_shares("host cores", use.hosts, [](const HostUse& h) { return h.utilisation; });
}

std::string describe_folding(const Prediction& prediction) {
  const casync::TaskGraph& graph = prediction.graph;
  if (!graph.folded) {
    const std::string& why = prediction.why_whole;
    return fmt::format("all {}{}{}", graph.nodes, why.empty() ? "" : ", since ", why);
  }
  const std::string stands = fmt::format("1, which stands for all {}", graph.nodes);
  if (!prediction.folding_bounds) return stands;
  const FoldingBounds& bounds = *prediction.folding_bounds;
  return fmt::format(
      "{}; {} to {} with all slices as short as the shortest and as long as the longest "
      "({:.2f} % apart)",
      stands, duration(bounds.shortest), duration(bounds.longest),
      100 * share_of(bounds.longest - bounds.shortest, bounds.shortest));
}

void print_sensitivities(std::ostream& out, const Prediction& prediction) {
  if (prediction.sensitivities.empty()) return;
  fmt::print(out, "\nif one thing were 10 % better:\n");
  for (const Sensitivity& row : prediction.sensitivities) {
    const auto improvement =
        std::find_if(improvements().begin(), improvements().end(),
                     [&](const Improvement& other) { return other.name == row.name; });
    fmt::print(out, "  {:<16}{:>12}{:>8.2f} %  {}\n", row.name, duration(row.iteration),
               100 * share_of(row.change, prediction.iteration), improvement->help);
  }
}

void print_sources(std::ostream& out, const Scenario& scenario, const Prediction& prediction) {
  const costs::Profile& profile = scenario.profile;
  fmt::print(out, "\nsources of the interval, from deviations that profile {} {}:\n", profile.name,
             profile.spread ? "gives" : "lacks, so they are assumed");
  for (const SpreadSource& source :
       explain_interval(prediction.response, costs::spread_of(profile))) {
    fmt::print(out, "  {:<9}{:>5.1f} %  alone {:<28}{:>5.1f} % of it  {}\n", source.name,
               100 * source.deviation,
               fmt::format("{} to {}", io::format_duration(source.alone.p10_s),
                           io::format_duration(source.alone.p90_s)),
               100 * source.share, source.help);
  }
}

/// Iteration time: "12ms". If it is a mean, the number of periods is added.
std::string describe_iteration(const Prediction& prediction) {
  const std::string time = duration(prediction.iteration);
  if (!prediction.steady) return time;
  if (prediction.steps > 1) {
    return fmt::format("{} a step, of {} periods of {} steps ({})", time,
                       prediction.steady->periods.size() + 1, prediction.steps,
                       prediction.steady->settled ? "settled" : "mean of the last half");
  }
  return fmt::format("{}, the period of {} back to back ({})", time,
                     prediction.steady->periods.size() + 1,
                     prediction.steady->settled ? "settled" : "mean of the last half");
}

/// Prints results of a schedule other than ddp.
void print_schedule(std::ostream& out, const Scenario& scenario, const Prediction& prediction) {
  const casync::Schedule& schedule = scenario.plan.schedule;
  if (schedule == casync::Schedule()) return;
  line(out, "schedule", fmt::format("{}: {}", schedule.text(), schedule.row().help));
  const ComputeUtilisation busy = requests::compute_utilisation(scenario, prediction);
  line(out, "compute utilisation",
       fmt::format("{:.1f} %; {:.1f} to {:.1f} % in 8 runs of 10", 100 * busy.share, 100 * busy.p10,
                   100 * busy.p90));
  line(out, "traffic per node",
       fmt::format("{} a step, {} a day, at most {} over a step",
                   io::format_amount(static_cast<std::int64_t>(prediction.traffic.bytes_per_step)),
                   io::format_amount(static_cast<std::int64_t>(prediction.traffic.bytes_per_day)),
                   io::format_bit_rate(prediction.traffic.peak_bits_per_s / 8)));
}

/// Prints by how much concurrent work slows computation: "3.2ms on node 3, 4.1 % of the iteration:
/// 2ms by codecs, 1.2ms by transfers".
void print_slowdown(std::ostream& out, const Scenario& scenario, const Prediction& prediction) {
  const Slowdown slowdown = requests::slowdown_of_step(scenario, prediction);
  if (slowdown.total().count() == 0) return;
  std::string by;
  const auto add = [&](std::string_view whom, Picoseconds time) {
    if (time.count() == 0) return;
    by += fmt::format("{} {} by {}", by.empty() ? ":" : ",", duration(time), whom);
  };
  add("codecs", slowdown.by_codecs);
  add("transfers", slowdown.by_transfers);
  add("other ranks' computation", slowdown.by_computation);
  line(out, "of it slowed",
       fmt::format("{} on node {}, {:.1f} % of the iteration{}", duration(slowdown.total()),
                   prediction.slowdowns.slowest(),
                   100 * share_of(slowdown.total(), prediction.iteration), by));
}

}  // namespace

void print_report(std::ostream& out, const Scenario& scenario, const Prediction& prediction) {
  const Result& result = prediction.result;
  const Picoseconds compute = compute_time(prediction);
  line(out, "plan",
       fmt::format("{} gradients, {}, N = {}", scenario.model.gradients.size(),
                   scenario.plan.topology, scenario.plan.nodes));
  line(out, "costs",
       fmt::format("{}; network {}",
                   io::as_command_line(costs::describe_machines(scenario.profile, scenario.cluster,
                                                                scenario.model)),
                   to_string(scenario.network)));
  if (!prediction.default_profile.empty()) {
    line(out, "default", io::as_command_line(prediction.default_profile));
  }
  const Interval range = intervals_of(scenario, prediction).iteration;
  line(out, "iteration",
       fmt::format("{}; {} to {} in 8 runs of 10", describe_iteration(prediction),
                   io::format_duration(range.p10_s), io::format_duration(range.p90_s)));
  if (prediction.steps == 1 && prediction.graph.groups.empty()) {
    line(out, "synchronisation", duration(synchronisation_time(prediction)));
  }
  line(out, "compute", duration(compute));
  print_slowdown(out, scenario, prediction);
  line(out, "exposed communication", duration(prediction.iteration - compute));
  print_schedule(out, scenario, prediction);
  line(out, "sent per node", describe_bytes_sent(bytes_per_iteration(scenario, prediction)));
  if (prediction.replicas) {
    const Replicas& all = *prediction.replicas;
    line(out, fmt::format("over {} replicas", all.count),
         fmt::format("mean {}, p10 {}, p50 {}, p90 {}, p99 {}", duration(all.mean),
                     duration(all.p10), duration(all.p50), duration(all.p90), duration(all.p99)));
  }
  line(out, "critical path", describe_path(prediction, Picoseconds{}));
  const bool ends_with_communication = prediction.steps == 1 && prediction.graph.groups.empty();
  if (ends_with_communication && result.iteration > result.compute) {
    line(out, "its exposed part", describe_path(prediction, result.compute));
  }
  line(out, "utilisation", describe_utilisation(prediction.utilisation));
  line(out, "nodes simulated", describe_folding(prediction));
  line(out, "tasks",
       fmt::format("{} in {}, {:.3g} a second", prediction.graph.tasks(),
                   io::format_duration(prediction.simulation_s),
                   prediction.graph.tasks() / prediction.simulation_s));
  print_path(out, prediction);
  print_sensitivities(out, prediction);
  if (prediction.explains_interval) print_sources(out, scenario, prediction);
}

}  // namespace hipress::sim
