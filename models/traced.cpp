#include "models/traced.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>

#include "io/quantity.hpp"
#include "io/yaml.hpp"
#include "models/bound_by.hpp"

namespace hipress::models {

Traced parse_traced(const io::YamlNode& node) {
  node.expect_keys({"steps", "step", "compute", "communication", "exposed_communication", "idle",
                    "other_communication"});
  Traced traced;
  traced.steps = static_cast<int>(node.at("steps").integer(1, INT32_MAX));
  traced.step_s = node.at("step").duration();
  if (traced.step_s <= 0) node.at("step").fail("must be longer than 0");
  const auto part = [&](const char* key) {
    const io::YamlNode child = node.at(key);
    const double seconds = child.duration();
    // Written values are rounded.
    constexpr double kRounding = 1e-6;
    if (seconds > traced.step_s * (1 + kRounding)) {
      child.fail(fmt::format("must be at most the step, {}, got {}",
                             io::format_duration(traced.step_s), io::format_duration(seconds)));
    }
    return seconds;
  };
  traced.compute_s = part("compute");
  traced.communication_s = part("communication");
  traced.exposed_communication_s = part("exposed_communication");
  traced.idle_s = part("idle");
  if (node.find("other_communication")) traced.other_communication_s = part("other_communication");
  return traced;
}

std::optional<Traced> read_traced(const std::string& path) {
  std::error_code error;
  // Do not read a pipe: read_model() needs its content.
  if (!io::is_yaml_name(path) || !std::filesystem::is_regular_file(path, error)) return {};
  const io::YamlNode root = io::YamlNode::load(path);
  const auto node = root.find("traced");
  if (!node) return {};
  return parse_traced(*node);
}

std::string most_gain(const Traced& traced) {
  const double share = traced.exposed_communication_s / traced.step_s;
  std::string text = fmt::format(
      "the traced job can gain at most {:.1f} % by compression: {} of its steps of {} is exposed "
      "communication",
      100 * share, io::format_duration(traced.exposed_communication_s),
      io::format_duration(traced.step_s));
  constexpr double kWorthSaying = 0.005;  // share of a step
  if (traced.other_communication_s > kWorthSaying * traced.step_s) {
    text += fmt::format(", and {} more is exposed, but carries no gradients",
                        io::format_duration(traced.other_communication_s));
  }
  const double compute = traced.compute_s / traced.step_s, idle = traced.idle_s / traced.step_s;
  const Gain gains[] = {
      {"computation", compute / 2}, {"communication", share / 2}, {"launches", idle / 2}};
  text += fmt::format(
      "; it is bound by {}: its GPU computes for {:.0f} % of a step, and for {:.0f} % it does "
      "nothing, waiting for the CPU",
      bound_by(gains), 100 * compute, 100 * idle);
  return text;
}

}  // namespace hipress::models
