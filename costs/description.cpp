#include "costs/description.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "costs/density.hpp"
#include "costs/fabric.hpp"
#include "costs/stage_costs.hpp"
#include "costs/traffic.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"

namespace hipress::costs {
std::string describe_bandwidth(double bytes_per_s) {
  const double bits = bytes_per_s * 8;
  if (bits >= 1e9) return fmt::format("{:.4g} Gbit/s", bits / 1e9);
  if (bits >= 1e6) return fmt::format("{:.4g} Mbit/s", bits / 1e6);
  return fmt::format("{:.4g} kbit/s", bits / 1e3);
}

namespace {

/// Bandwidth in units of links within a machine, such as "250 GB/s".
std::string byte_rate(double bytes_per_s) { return fmt::format("{:.4g} GB/s", bytes_per_s / 1e9); }

/// A number and its noun: "1 node", "8 nodes".
std::string counted(std::uint32_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? std::string_view() : "s");
}

std::string describe_nodes(const Cluster& cluster) {
  std::string text = counted(cluster.nodes, cluster.site ? "site" : "node");
  if (cluster.site) text += " × " + counted(cluster.site->nodes, "node");
  const std::uint32_t gpus = gpus_per_machine(cluster);
  if (gpus > 1) text += fmt::format(" × {} GPUs", gpus);
  if (share_a_host(cluster)) {
    const std::uint32_t hosts = *std::max_element(cluster.host.begin(), cluster.host.end()) + 1;
    text += " on " + counted(hosts, "host");
    if (hosts > 1 && !shares_hosts(cluster)) text += " that share neither a link nor cores";
  }
  return text;
}

std::string describe_link(const LinkCosts& link) {
  std::string text = describe_bandwidth(link.bandwidth);
  if (link.bandwidth_both_ways < link.bandwidth) {
    text += fmt::format(" ({} each way when both are busy)",
                        describe_bandwidth(link.bandwidth_both_ways));
  }
  return fmt::format("{} + {} latency + {} overhead", text, io::format_duration(link.latency_s),
                     io::format_duration(link.overhead_s));
}

std::string describe_levels_beside_links(const Cluster& cluster) {
  std::string text;
  if (cluster.site) text += ", within sites " + describe_link(cluster.site->link);
  if (gpus_per_machine(cluster) > 1) {
    text += fmt::format(", GPUs {}", byte_rate(cluster.gpu_link.bandwidth));
  }
  if (cluster.host_link) {
    text += fmt::format(", within hosts {}", byte_rate(cluster.host_link->bandwidth));
  }
  if (!cluster.slow_links.empty()) {
    const auto slowest = std::ranges::min_element(cluster.slow_links, {}, &SlowLink::bandwidth);
    text += fmt::format(", {} down to {}",
                        counted(static_cast<std::uint32_t>(cluster.slow_links.size()),
                                cluster.site ? "pair of their own" : "slower link"),
                        describe_bandwidth(slowest->bandwidth));
  }
  if (cluster.host_link && cluster.cards.count > 1 && !cluster.of_machine) {
    text += fmt::format(", {} cards a host", cluster.cards.count);
  }
  if (!cluster.racks.empty()) text += ", " + describe_racks(cluster);
  const auto other = std::count_if(cluster.compute_speed.begin(), cluster.compute_speed.end(),
                                   [](double speed) { return speed != 1; });
  if (other > 0) text += fmt::format(", {} of another speed", other);
  return text;
}

std::string describe_compute(const models::Model& model) {
  const double backward_s = models::backward_s(model);
  const double forward_s = model.forward_s + model.optimizer_s;
  if (backward_s == 0 && forward_s == 0) return "compute not known (`compute_time`)";
  const std::string forward = forward_s > 0 ? io::format_duration(forward_s) : "not known";
  const std::string compute = io::format_duration(models::before_backward_s(model) + backward_s);
  if (model.micro_steps == 1) return fmt::format("compute {} (forward {})", compute, forward);
  return fmt::format("compute {} ({} micro-steps of {}; optimizer {})", compute, model.micro_steps,
                     io::format_duration(model.forward_s + backward_s),
                     io::format_duration(model.optimizer_s));
}

}  // namespace

std::string_view origin_of(const Profile& profile) {
  constexpr std::array<std::string_view, 4> kOrigins = {"measured", "derived", "estimated",
                                                        "published"};
  constexpr std::string_view kNot = "not ";
  std::size_t first = std::string::npos;
  std::string_view found = "of own making";
  for (const std::string_view origin : kOrigins) {
    const std::size_t place = profile.source.find(origin);
    if (place >= first) continue;
    const std::string_view before = std::string_view(profile.source).substr(0, place);
    if (before.ends_with(kNot)) continue;  // as in "derived, not measured"
    first = place;
    found = origin;
  }
  return found;
}

std::string describe_origin(const Profile& profile, bool given) {
  const std::string text = fmt::format("profile {} ({})", profile.name, origin_of(profile));
  if (given) return text;
  return text + ", " + std::string(kWhyDefault);
}

std::string foreign_costs(const Profile& profile, const std::string& algorithm) {
  const std::string row = profile.row_of(algorithm);
  if (row == algorithm) return {};
  if (row.empty()) {
    if (!estimated_costs(profile, algorithm)) return {};
    return fmt::format(
        "{} is charged an estimate, its least memory traffic at {:.0f} % of the memory bandwidth "
        "and its launches, since profile {} has no costs of it; hipress-profile `algorithm` {} "
        "measures them",
        algorithm, 100 * profile.estimate->share_of_memory, profile.name, io::quote(algorithm));
  }
  const bool any_rank = !profile.codecs.at(row).stages.empty();
  if (any_rank && with_rank(row, {}) == with_rank(algorithm, {})) return {};
  std::string whose = fmt::format("the cost of {}", row);
  if (const auto rows = density_rows(profile, algorithm)) {
    if (rows->measured) return {};
    if (rows->below != rows->above) {
      whose = fmt::format("in proportion between {} and {}", rows->below, rows->above);
    }
  }
  return fmt::format(
      "{} is charged {}, since profile {} has no costs of its own for it; hipress-profile "
      "`algorithm` {} measures them",
      algorithm, whose, profile.name, io::quote(algorithm));
}

std::string describe_mix(const Cluster& cluster, const models::Model& model) {
  const bool computes = models::before_backward_s(model) + models::backward_s(model) > 0;
  if (!cluster.overlap.matrix || !computes) return {};
  return fmt::format("{}mix {}", model.mix ? "" : "assumed ",
                     models::describe(model.mix.value_or(models::assumed_mix())));
}

std::string describe_machines(const Profile& profile, const Cluster& cluster,
                              const models::Model& model) {
  const std::string mix = describe_mix(cluster, model);
  const bool of_machine = cluster.of_machine && profile.machine;
  const std::string host =
      !of_machine ? std::string()
                  : fmt::format("{}{}", share_a_host(cluster) ? " of " : ", each of a host of ",
                                describe_host(*profile.machine));
  return fmt::format("profile {} ({}), {}{}, links {}{}; {}{}{}", profile.name, origin_of(profile),
                     describe_nodes(cluster), host, describe_link(cluster.link),
                     describe_levels_beside_links(cluster), describe_compute(model),
                     mix.empty() ? "" : ", ", mix);
}

}  // namespace hipress::costs
