#include "costs/link_yaml.hpp"

#include <fmt/format.h>

#include "io/error.hpp"
#include "io/quantity.hpp"

namespace hipress::costs {

double duration_or(const io::YamlNode& node, std::string_view key, double otherwise) {
  const auto child = node.find(key);
  return child ? child->duration() : otherwise;
}

std::string complaint_about_burst(const LinkCosts& link) {
  if (static_cast<double>(link.burst_bytes) <= io::kLongestDuration_s * link.bandwidth) return {};
  return fmt::format("a burst of {} takes more than {:g} s at {}",
                     io::format_size(link.burst_bytes), io::kLongestDuration_s,
                     io::format_bandwidth(link.bandwidth));
}

std::optional<double> bandwidth_in(const io::YamlNode& node, const Profile& profile) {
  const auto bandwidth = node.find("bandwidth"), rate = node.find("rate");
  if (!rate) return bandwidth ? std::optional(bandwidth->bandwidth()) : std::nullopt;
  if (bandwidth) {
    rate->fail(
        "give either bandwidth, which messages reach, or rate, which is the link's nominal speed, "
        "but not both");
  }
  if (profile.link_rate == 0) {
    rate->fail(fmt::format(
        "profile {} has no rate of its link (links.rate), so the share of a rate that messages "
        "reach is unknown: give bandwidth here, or rate in the profile's links",
        io::quote(profile.name)));
  }
  return rate->bandwidth() * profile.link.bandwidth / profile.link_rate;
}

double required_bandwidth(const io::YamlNode& node, const Profile& profile) {
  const std::optional<double> bandwidth = bandwidth_in(node, profile);
  return bandwidth ? *bandwidth : node.at("bandwidth").bandwidth();
}

LinkCosts read_link(const io::YamlNode& node, const LinkCosts& defaults,
                    std::optional<double> bandwidth) {
  LinkCosts link = defaults;
  if (bandwidth) link.set_bandwidth(*bandwidth);
  if (const auto both_ways = node.find("bandwidth_both_ways")) {
    link.bandwidth_both_ways = both_ways->bandwidth();
    if (link.bandwidth_both_ways > link.bandwidth) {
      both_ways->fail(
          "each direction cannot be faster when both are busy than the bandwidth one way");
    }
  }
  if (const auto burst = node.find("burst")) link.burst_bytes = burst->size();
  if (const std::string complaint = complaint_about_burst(link); !complaint.empty()) {
    (node.has("burst") ? node.at("burst") : node).fail(complaint);
  }
  link.overhead_s = duration_or(node, "overhead", link.overhead_s);
  link.latency_s = duration_or(node, "latency", link.latency_s);
  link.core_s_per_message = duration_or(node, "core_time_per_message", link.core_s_per_message);
  if (const auto per_byte = node.find("core_s_per_byte")) {
    link.core_s_per_byte = per_byte->number(0, kMaxSlope_s);
  }
  if (const auto factor = node.find("core_factor_interrupting")) {
    link.core_factor_interrupting =
        factor->number(1, kMaxRatio, "a byte costs no less where it interrupts");
  }
  return link;
}

}  // namespace hipress::costs
