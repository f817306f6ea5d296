#include "planner/advice/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>

#include "casync/layout.hpp"
#include "io/error.hpp"
#include "io/quantity.hpp"
#include "models/wrap.hpp"
#include "planner/baselines/baselines.hpp"
#include "planner/baselines/ddp.hpp"
#include "planner/timing/evaluation.hpp"

namespace hipress::planner {
namespace {

/// Least saving that is worth a change of a setting, as a share of the time.
constexpr double kWorthChanging = 0.005;

void add_time(const std::string& value, const models::Model& model, const casync::Plan& plan,
              const Machines& machines, Setting& setting) {
  if (const auto time = affordable_iteration(model, plan, machines).iteration_s) {
    setting.times.push_back({value, *time});
  }
}

/// By gradient: the place of its bucket among the buckets.
std::vector<std::size_t> places(const models::Model& model, int cap_mb) {
  std::vector<std::size_t> found(model.gradients.size());
  std::size_t place = 0;
  for (const std::vector<std::uint32_t>& bucket : ddp_buckets(model, cap_mb)) {
    for (const std::uint32_t g : bucket) found[g] = place;
    ++place;
  }
  return found;
}

/// By gradient: the place of its unit in a plan, in the order of backward.
std::vector<std::size_t> places(const models::Model& model, const casync::Plan& plan) {
  const casync::Layout layout = casync::make_layout(model, plan);
  std::vector<std::size_t> found(model.gradients.size());
  for (std::size_t place = 0; place < layout.order.size(); ++place) {
    for (const std::uint32_t g : layout.units[layout.order[place]].members) found[g] = place;
  }
  return found;
}

/// Names of a model's layers.
std::set<std::string> layers_of(const models::Model& model) {
  std::set<std::string> names;
  for (const models::Gradient& gradient : model.gradients) names.insert(gradient.layer);
  return names;
}

}  // namespace

const SettingTime& Setting::best() const {
  const auto fastest = std::ranges::min_element(times, {}, &SettingTime::iteration_s);
  const bool worth = fastest->iteration_s < (1 - kWorthChanging) * times.front().iteration_s;
  return worth ? *fastest : times.front();
}

void charge_buckets(const casync::Plan& plan, models::Model& model) {
  const std::vector<std::size_t> now = places(model, kBucketCap_mb), then = places(model, plan);
  for (std::size_t g = 0; g < model.gradients.size(); ++g) {
    const double more = static_cast<double>(then[g]) - static_cast<double>(now[g]);
    double& ready_s = model.gradients[g].ready_s;
    ready_s = std::max(0.0, ready_s + more * kBucketTime_s);
  }
}

Setting bucket_cap(const Problem& problem) {
  Setting setting = {.name = "bucket_cap_mb"};
  for (const int cap_mb : {kBucketCap_mb, 1, 5, 50, 100, 250}) {
    const casync::Plan plan = ddp(problem, cap_mb);
    models::Model model = problem.model;
    charge_buckets(plan, model);
    add_time(fmt::format("{}", cap_mb), model, plan, *problem.machines, setting);
  }
  return setting;
}

Setting fsdp_wrapping(const Problem& problem) {
  struct Rule {
    const char* title;
    const char* rule;  ///< rule for models::wrap(); empty: the model's layers; null: all as one
  };
  constexpr Rule kRules[] = {{"each layer", ""},
                             {"modules of at least 10M elements", "10M"},
                             {"modules of at least 100M elements", "100M"},
                             {"the whole model", nullptr}};
  Setting setting = {.name = "FSDP's wrapping"};
  const bool half = has_half_precision(problem.model);
  std::set<std::set<std::string>> known;
  for (const Rule& rule : kRules) {
    models::Model model = problem.model;
    try {
      if (rule.rule == nullptr) {
        for (models::Gradient& gradient : model.gradients) gradient.layer = models::kRootLayer;
      } else if (*rule.rule != '\0') {
        models::wrap(rule.rule, model);
      }
      if (!known.insert(layers_of(model)).second) continue;
      const Problem wrapped = {.model = model,
                               .topology = problem.topology,
                               .nodes = problem.nodes,
                               .algorithms = {},
                               .machines = problem.machines,
                               .shards_by = problem.shards_by};
      casync::Plan plan = find_baseline(half ? "fsdp2" : "fsdp2_mixed")->make(wrapped);
      plan.schedule.timetable(model);
      add_time(rule.title, model, plan, *problem.machines, setting);
    } catch (const io::InputError&) {
      continue;  // no module is that large
    }
  }
  return setting;
}

std::string describe(const Setting& setting) {
  if (setting.times.size() < 2) return {};
  const SettingTime &first = setting.times.front(), &best = setting.best();
  std::string text = fmt::format("{} {}", setting.name, best.value);
  text += &best == &first
              ? fmt::format(", as now, is best: {}", io::format_duration(first.iteration_s))
              : fmt::format(" saves {:.1f} % of {} with {}",
                            100 * (1 - best.iteration_s / first.iteration_s),
                            io::format_duration(first.iteration_s), first.value);
  for (const SettingTime& one : setting.times) {
    if (&one == &best || &one == &first) continue;
    text +=
        fmt::format(", {} {:+.1f} %", one.value, 100 * (one.iteration_s / first.iteration_s - 1));
  }
  return text;
}

}  // namespace hipress::planner
