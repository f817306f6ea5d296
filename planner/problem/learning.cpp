#include "planner/problem/learning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "io/error.hpp"
#include "io/yaml.hpp"
#include "kernels/codec/codec.hpp"
#include "planner/problem/problem.hpp"

namespace hipress::planner {
namespace {

constexpr double kNormal90 = 1.2816;  // quantile of the normal distribution
constexpr double kLeastRatio = 0.01, kMostRatio = 1e6;
constexpr double kAlike = 0.01;  // ratios that differ by less are searched together
constexpr std::string_view kNever = "never";
constexpr std::string_view kDdp = "none";  // the pilot's plan without compression

/// Adds what one gradient's messages lose in a step.
void read_error(const io::YamlNode& row, Learning& learning) {
  row.expect_keys({"plan", "gradient", "step", "error", "error_with_residual", "norm"});
  const auto found = learning.rows.find(row.at("plan").text());
  if (found == learning.rows.end()) return;
  const double lost = row.at("error").number() * row.at("norm").number();
  found->second.lost[row.at("gradient").text()] += lost * lost;
}

StepsRatio read_ratio(const io::YamlNode& row) {
  StepsRatio read;
  read.ratio = row.at("ratio").number(kLeastRatio, kMostRatio, "steps over DDP's");
  const auto end = [&](const char* key, double least, double most) {
    const auto found = row.find(key);
    return found ? found->number(least, most, "an end of the ratio's interval") : read.ratio;
  };
  read.p10 = end("p10", kLeastRatio, read.ratio);
  read.p90 = end("p90", read.ratio, kMostRatio);
  return read;
}

void read_row(const io::YamlNode& row, Learning& learning) {
  row.expect_keys({"plan", "ratio", "p10", "p90", "after", "runs"});
  const std::string plan = row.at("plan").text();
  // A run that never gets there leaves the interval without an end.
  if (row.at("ratio").text() == kNever || !row.has("p90")) {
    learning.never.push_back(plan);
    return;
  }
  learning.rows[plan] = {.ratio = read_ratio(row), .lost = {}};
}

/// The gradient's share of what an algorithm loses of all of them.
double share_of(const models::Model& model, const models::Gradient& gradient, const PilotRow& row) {
  double sum = 0;
  for (const auto& [name, lost] : row.lost) sum += lost;
  if (sum <= 0) {
    return static_cast<double>(gradient.elements) /
           static_cast<double>(models::total_elements(model));
  }
  const auto found = row.lost.find(gradient.name);
  return found != row.lost.end() ? found->second / sum : 0;
}

void add(double share, const StepsRatio& of_algorithm, StepsRatio& sum) {
  sum.ratio += share * (of_algorithm.ratio - 1);
  sum.p10 += share * (of_algorithm.p10 - 1);
  sum.p90 += share * (of_algorithm.p90 - 1);
}

}  // namespace

double StepsRatio::deviation() const {
  return p90 > p10 ? std::log(p90 / p10) / (2 * kNormal90) : 0;
}

std::optional<StepsRatio> Learning::of(const models::Model& model, const casync::Plan& plan,
                                       const std::string& file) const {
  if (const auto found = rows.find(file); !file.empty() && found != rows.end()) {
    return found->second.ratio;
  }
  // Local updates learn otherwise, whatever they are sent as.
  if (kind_of(plan.schedule) == JobKind::kLocalUpdates) return std::nullopt;
  StepsRatio sum;
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    const models::Gradient& gradient = model.gradients[g];
    // What a shard's gather loses counts like what its reduction loses.
    for (const std::int8_t index :
         {plan.decisions[g].algorithm, plan.gather_of(static_cast<std::uint32_t>(g))}) {
      if (index == casync::kRaw) continue;
      const casync::Algorithm& used = plan.algorithms[static_cast<std::size_t>(index)];
      if (used.half_precision && gradient.dtype != models::Dtype::kFloat32) continue;
      const auto row = rows.find(used.name);
      if (row == rows.end()) return std::nullopt;
      add(share_of(model, gradient, row->second), row->second.ratio, sum);
    }
  }
  return sum;
}

std::vector<std::string> Learning::algorithms() const {
  std::vector<std::string> names;
  for (const auto& [name, row] : rows) {
    if (name != kDdp && !io::is_yaml_name(name)) names.push_back(name);
  }
  return names;
}

std::vector<std::string> Learning::known(const std::vector<std::string>& algorithms) const {
  std::vector<std::string> kept;
  std::ranges::copy_if(algorithms, std::back_inserter(kept),
                       [&](const std::string& name) { return rows.contains(name); });
  return kept;
}

std::vector<std::vector<std::string>> Learning::bounded(
    const std::vector<std::string>& algorithms) const {
  std::set<double> ratios;
  for (const std::string& name : algorithms) ratios.insert(rows.at(name).ratio.ratio);
  std::vector<std::vector<std::string>> lists;
  for (auto it = ratios.begin(); it != ratios.end(); ++it) {
    const auto next = std::next(it);
    if (next != ratios.end() && *next <= *it + kAlike) continue;
    lists.emplace_back();
    std::ranges::copy_if(algorithms, std::back_inserter(lists.back()),
                         [&](const auto& name) { return rows.at(name).ratio.ratio <= *it; });
  }
  return lists;
}

Learning read_pilot(const std::string& path) {
  const io::YamlNode root = io::YamlNode::load(path);
  root.expect_keys({"schema", "script", "digest", "ranks", "steps", "seeds", "repeat", "plans",
                    "ratios", "errors", "noise_scale"});
  root.at("schema").integer(1, 1);
  Learning learning = {.path = path, .steps = root.at("steps").integer(1), .rows = {}, .never = {}};
  const io::YamlNode ratios = root.at("ratios");
  for (const io::YamlNode& row : ratios.items()) read_row(row, learning);
  if (learning.rows.empty()) {
    ratios.fail("no plan has a ratio: pilot some, such as --plans none,fp16,int8block");
  }
  learning.rows[std::string(kDdp)] = {};
  if (const auto errors = root.find("errors")) {
    for (const io::YamlNode& row : errors->items()) read_error(row, learning);
  }
  return learning;
}

bool learns_as_ddp(int place) {
  static const int safe = kernels::find_algorithm("int8block")->coarseness;
  return place <= safe;
}

}  // namespace hipress::planner
