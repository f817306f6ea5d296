#include "requests/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "costs/assumed_spread.hpp"
#include "costs/cluster.hpp"
#include "costs/description.hpp"
#include "io/error.hpp"
#include "io/version.hpp"
#include "planner/problem/pilot_pictures.hpp"
#include "report/page.hpp"
#include "requests/report_table.hpp"
#include "requests/report_timeline.hpp"

namespace hipress::requests {

using namespace planner;

namespace {

/// Limits on the number of tasks in all simulations but the timeline's: for a requested file, and
/// for a page that is only kept in memory and must be made fast.
constexpr double kMostTasksOfFile = 2e7, kMostTasksInMemory = 5e5;

using Json = io::Document;

Json model_json(const models::Model& model) {
  return {{"name", model.name},
          {"source", model.source},
          {"gradients", model.gradients.size()},
          {"elements", models::total_elements(model)},
          {"batch", model.batch},
          {"unit", model.unit},
          {"forward_s", model.forward_s},
          {"backward_s", models::backward_s(model)}};
}

/// Says what the intervals of predicted times come from, such as "from the measured spread of
/// runs".
std::string spread_in_words(const costs::Profile& profile) {
  const std::string_view origin = costs::origin_of(profile);
  const bool is_measured = origin == "measured";
  if (profile.spread && is_measured) return "from the measured spread of runs";
  if (profile.spread) {
    return fmt::format("from a spread of runs that the profile assumes (it is {}, not measured)",
                       origin);
  }
  return is_measured ? "from an assumed spread of runs, since the profile states none"
                     : fmt::format(
                           "from an assumed spread of runs, a wide one, since the costs are "
                           "{}, not measured",
                           origin);
}

Json profile_json(const costs::Profile& profile) {
  std::size_t samples = 0;
  for (const costs::Profile::Series& series : profile.samples) samples += series.samples.size();
  const costs::Spread spread = costs::spread_of(profile);
  Json notes = Json::list();
  for (const std::string& note : profile.notes) notes.push_back(sentence(note));
  return {{"name", profile.name},
          {"origin", costs::origin_of(profile)},
          {"source", profile.source},
          {"hardware", profile.hardware},
          {"device", profile.device},
          {"fingerprint", profile.fingerprint},
          {"shared_host", profile.shared_host},
          {"samples", samples},
          {"spread_in_words", spread_in_words(profile)},
          {"spread",
           {{"host", spread.host},
            {"links", spread.links},
            {"compute", spread.compute},
            {"model", spread.model}}},
          {"notes", notes}};
}

/// Data of the plan's problem, and the basis of its numbers.
Json about_json(const Planned& planned) {
  const Advice& advice = planned.advice;
  const Problem& problem = *advice.problem;
  const Request& request = planned.prepared->request;
  return {{"tool", io::version()},
          {"nodes", advice.found.plan.nodes},
          {"gpus_per_node", problem.machines->cluster.gpus_per_node},
          {"network", request.network},
          {"transfer_order", casync::to_string(advice.found.transfer_order)},
          {"search", planned.prepared->searches() ? Json(request.search_name()) : Json()},
          {"output", planned.request.output},
          {"machines", sentence(costs::describe_machines(
                           planned.prepared->profile, problem.machines->cluster, problem.model))},
          {"profile_given", request.machines.names_profile()},
          {"model", model_json(problem.model)},
          {"profile", profile_json(planned.prepared->profile)}};
}

/// Part of document() for the page: without `explain` and `compare`, which have rows per gradient.
Json plan_json(const Planned& planned) {
  const Json whole = document(planned);
  Json shown = Json::object();
  for (const Json::Member& member : *whole.members()) {
    if (member.name != "explain" && member.name != "compare") shown[member.name] = member.value;
  }
  return shown;
}

/// Number of gradients whose errors the page shows: the largest ones.
constexpr std::size_t kMostErrors = 40;

/// The pilot's errors by gradient and plan; null if not measured.
Json errors_json(const PilotPictures& pictures, const models::Model& model) {
  std::vector<const models::Gradient*> shown;
  for (const models::Gradient& gradient : model.gradients) shown.push_back(&gradient);
  const std::size_t count = std::min(shown.size(), kMostErrors);
  std::ranges::stable_sort(shown, std::greater(), &models::Gradient::elements);
  shown.resize(count);
  std::ranges::sort(shown);  // restore the model's order
  Json plans = Json::list(), names = Json::list(), rows = Json::list();
  for (const auto& [plan, errors] : pictures.errors) plans.push_back(plan);
  for (const models::Gradient* gradient : shown) {
    Json row = Json::list();
    for (const auto& [plan, errors] : pictures.errors) {
      const auto found = errors.find(gradient->name);
      row.push_back(found == errors.end() ? Json() : Json(found->second));
    }
    names.push_back(gradient->name);
    rows.push_back(row);
  }
  return {
      {"plans", plans}, {"gradients", names}, {"errors", rows}, {"all", model.gradients.size()}};
}

std::string title_of(const Planned& planned) {
  const models::Model& model = planned.advice.problem->model;
  const costs::Cluster& cluster = planned.advice.problem->machines->cluster;
  const std::uint32_t nodes = planned.advice.found.plan.nodes;
  const std::uint32_t of_host = costs::nodes_per_host(cluster);
  std::string together;
  if (cluster.gpus_per_node > 1) together = fmt::format(" of {} GPUs", cluster.gpus_per_node);
  if (of_host > 1 && of_host < nodes) together = fmt::format(", {} on each host", of_host);
  const casync::Schedule& schedule = planned.advice.found.plan.schedule;
  return fmt::format("{} on {} nodes{}{}", model.name.empty() ? "A model" : model.name, nodes,
                     together,
                     schedule == casync::Schedule() ? "" : ", schedule " + schedule.text());
}

}  // namespace

std::string report_page(const Planned& planned, const std::vector<std::string>& said) {
  std::string reason;
  const std::optional<PlanSimulation> simulated = simulate_plan(planned, reason);
  Json all = {{"plan", plan_json(planned)}, {"about", about_json(planned)}, {"said", Json::list()}};
  for (const std::string& one : said) all["said"].push_back(sentence(one));
  const double most_tasks = planned.request.report.empty() ? kMostTasksInMemory : kMostTasksOfFile;
  all["sensitivity"] = simulated ? sensitivity_json(*simulated, most_tasks) : Json();
  all["no_timeline"] = sentence(reason);
  if (const auto& learning = planned.advice.problem->learning) {
    all["errors"] = errors_json(read_pilot_pictures(learning->path), planned.advice.problem->model);
  }
  for (PageRoom room;; room = room.halved()) {
    const report::Headline headline = {
        .title = report::cut_text(title_of(planned), room.texts),
        .answer = report::answer_sentence(all["plan"]),
        .details = report::cut_text(sentence(planned.advice.verdict.sentence), room.texts)};
    Json data = report::cut(all, room.texts);
    data["gradients"] = plan_table_json(planned, simulated ? &*simulated : nullptr, room);
    data["timeline"] = simulated ? timeline_json(*simulated, room) : Json();
    data["critical_path"] = simulated ? path_json(*simulated, room) : Json();
    std::string made = report::page(headline, data);
    if (made.size() <= kMostPageBytes || room.spans < 10) return made;
  }
}

}  // namespace hipress::requests
