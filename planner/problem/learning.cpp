#include "planner/problem/learning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "io/error.hpp"
#include "io/yaml.hpp"
#include "kernels/codec/codec.hpp"

namespace hipress::planner {
namespace {

constexpr double kNormal90 = 1.2816;  // 90th percentile of the normal distribution
constexpr double kLeastRatio = 0.01, kMostRatio = 1e6;
constexpr double kAlike = 0.01;  // algorithms whose ratios differ by less share a search
/// Exponent of a gradient's elements in its weight; docs/learning.md compares it with trainings.
constexpr double kOfSize = 0.1;
/// Errors that widen the 10–90 % interval: a factor on a predicted r − 1, and the relative
/// difference of r between two runs of a plan.
constexpr double kPredicted = 2.5, kRepeated = 0.05;
constexpr double kRatioRounding = 1e-9;
constexpr std::string_view kNeverReached = "never";
constexpr std::string_view kDdp = "none";  // the pilot's plan without compression

/// Adds the squared relative error of a gradient's messages in one step.
void read_error(const io::YamlNode& row, Learning& learning) {
  row.expect_keys({"plan", "gradient", "step", "error", "error_with_residual", "norm", "residual"});
  const auto found = learning.rows.find(row.at("plan").text());
  if (found == learning.rows.end()) return;
  const double error = row.at("error_with_residual").number();
  found->second.lost[row.at("gradient").text()] += error * error;
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
  // If a run never reaches DDP's loss, the interval has no upper end, and the plan has no ratio.
  if (row.at("ratio").text() == kNeverReached || !row.has("p90")) {
    learning.never.push_back(plan);
    return;
  }
  learning.rows[plan] = {.ratio = read_ratio(row), .lost = {}};
}

/// Weights of a model's gradients in the r − 1 of an algorithm; their sum is 1.
std::vector<double> weights_of(const models::Model& model, const PilotRow& row) {
  std::vector<double> weights;
  double sum = 0;
  for (const models::Gradient& gradient : model.gradients) {
    const auto found = row.lost.find(gradient.name);
    const auto elements = static_cast<double>(gradient.elements);
    weights.push_back(found != row.lost.end() ? found->second * std::pow(elements, kOfSize) : 0);
    sum += weights.back();
  }
  if (sum <= 0) {
    for (std::size_t g = 0; g < weights.size(); ++g) {
      weights[g] = static_cast<double>(model.gradients[g].elements);
    }
    sum = static_cast<double>(models::total_elements(model));
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// Total weight of the gradients that each algorithm compresses, by name.
using Shares = std::map<std::string, double>;

/// Shares of the plan's algorithms; nullopt if the pilot has no row of one of them.
std::optional<Shares> shares_of(const models::Model& model, const casync::Plan& plan,
                                const std::map<std::string, PilotRow>& rows) {
  Shares shares;
  std::map<std::string, std::vector<double>> weights;
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    // Losses in the gather of shards count like losses in their reduction.
    for (const std::int8_t index :
         {plan.decisions[g].algorithm, plan.gather_of(static_cast<std::uint32_t>(g))}) {
      if (index == casync::kRaw) continue;
      const casync::Algorithm& used = plan.algorithms[static_cast<std::size_t>(index)];
      if (used.half_precision && model.gradients[g].dtype != models::Dtype::kFloat32) continue;
      const auto row = rows.find(used.name);
      if (row == rows.end()) return std::nullopt;
      std::vector<double>& of_algorithm = weights[used.name];
      if (of_algorithm.empty()) of_algorithm = weights_of(model, row->second);
      shares[used.name] += of_algorithm[g];
    }
  }
  return shares;
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
  // Pilots do not cover local updates with any algorithm.
  const bool each_step = plan.schedule == casync::Schedule() || plan.schedule.row().sharded;
  if (!each_step) return std::nullopt;
  const std::optional<Shares> shares = shares_of(model, plan, rows);
  if (!shares) return std::nullopt;
  // The pilot has trained this case if one algorithm compresses all gradients.
  const bool piloted = shares->size() == 1 && shares->begin()->second > 1 - kRatioRounding;
  const double wider = piloted ? 1 : kPredicted;
  StepsRatio sum;
  for (const auto& [name, share] : *shares) {
    const StepsRatio& one = rows.at(name).ratio;
    sum.ratio += share * (one.ratio - 1);
    sum.p10 += share * (one.p10 - 1) / (one.p10 > 1 ? wider : 1 / wider);
    sum.p90 += share * (one.p90 - 1) * (one.p90 > 1 ? wider : 1 / wider);
  }
  if (!piloted && !shares->empty()) {
    sum.p10 = std::min(sum.p10, sum.ratio / (1 + kRepeated));
    sum.p90 = std::max(sum.p90, sum.ratio * (1 + kRepeated));
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
                    "ratios", "errors", "noise_scale", "curve"});
  root.at("schema").integer(1, 1);
  Learning learning = {.path = path, .steps = root.at("steps").integer(1), .rows = {}, .never = {}};
  const io::YamlNode ratios = root.at("ratios");
  for (const io::YamlNode& row : ratios.items()) read_row(row, learning);
  if (learning.rows.empty()) {
    ratios.fail("no plan has a ratio: pilot some, such as none,fp16,int8block");
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
