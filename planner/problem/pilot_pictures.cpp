#include "planner/problem/pilot_pictures.hpp"

#include <cmath>

#include "io/yaml.hpp"

namespace hipress::planner {
namespace {

std::map<std::string, std::map<std::string, double>> errors_of(const io::YamlNode& rows) {
  std::map<std::string, std::map<std::string, double>> sums;
  std::map<std::pair<std::string, std::string>, double> counts;
  for (const io::YamlNode& row : rows.items()) {
    const std::string plan = row.at("plan").text(), gradient = row.at("gradient").text();
    if (io::is_yaml_name(plan)) continue;
    const double error = row.at("error").number();
    sums[plan][gradient] += error * error;
    ++counts[{plan, gradient}];
  }
  for (auto& [plan, of_plan] : sums) {
    for (auto& [gradient, sum] : of_plan) sum = std::sqrt(sum / counts.at({plan, gradient}));
  }
  return sums;
}

}  // namespace

PilotPictures read_pilot_pictures(const std::string& path) {
  const io::YamlNode root = io::YamlNode::load(path);
  PilotPictures pictures;
  if (const auto rows = root.find("errors")) pictures.errors = errors_of(*rows);
  if (const auto curve = root.find("curve")) {
    for (const io::YamlNode& row : curve->items()) {
      row.expect_keys({"step", "loss"});
      pictures.curve.push_back(
          {.step = row.at("step").integer(1), .loss = row.at("loss").number()});
    }
  }
  return pictures;
}

}  // namespace hipress::planner
