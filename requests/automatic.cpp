#include "requests/automatic.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "casync/topology.hpp"
#include "costs/description.hpp"
#include "io/document.hpp"
#include "io/quantity.hpp"
#include "job/clock.hpp"
#include "job/first.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "planner/advice/advice.hpp"
#include "plans/plan_builder.hpp"
#include "plans/plan_yaml.hpp"
#include "requests/cached_profile.hpp"

namespace hipress::requests {
namespace {

constexpr double kSearchBudget_s = 1;

/// Machine and network of a rank. Ranks of one boot share cores; if they are also in one network
/// namespace, their messages stay within the machine.
struct RankPlace {
  std::string boot, network;
};

RankPlace place_here() {
  std::error_code none;  // containers may lack /proc
  return {.boot = job::machine_clock().boot,
          .network = std::filesystem::read_symlink("/proc/thread-self/ns/net", none).string()};
}

std::vector<RankPlace> gather_places(transport::Endpoint& endpoint) {
  const RankPlace mine = place_here();
  std::vector<RankPlace> all;
  for (const std::string& text : endpoint.all_gather(mine.boot + "\n" + mine.network)) {
    const std::size_t end = text.find('\n');
    all.push_back({.boot = text.substr(0, end), .network = text.substr(end + 1)});
  }
  return all;
}

/// Number of ranks on each machine, if all machines have equally many, with consecutive numbers.
/// Otherwise, or if a rank's machine is unknown, 1.
std::uint32_t ranks_per_machine(const std::vector<RankPlace>& places) {
  std::set<std::string> boots;
  for (const RankPlace& place : places) boots.insert(place.boot);
  const std::size_t each = places.size() / boots.size();
  if (boots.contains("") || each * boots.size() != places.size()) return 1;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    if (places[rank].boot != places[rank - rank % each].boot) return 1;
  }
  return static_cast<std::uint32_t>(each);
}

/// Machines to plan for, with the measured links. But if all messages stay within one machine, as
/// those of the profile did (`shared_host`), with the profile's links, which cost cores.
costs::MachineOptions machines_of(const std::string& profile, const std::vector<RankPlace>& places,
                                  const runtime::Links& links) {
  costs::MachineOptions machines;
  machines.profile = profile;
  const RankPlace& first = places.front();
  const bool one_network = std::ranges::all_of(places, [&](const RankPlace& place) {
    return !place.boot.empty() && place.boot == first.boot && place.network == first.network;
  });
  if (one_network && costs::read_costs(machines).shared_host) return machines;
  machines.bandwidth = fmt::format("{:.0f}B/s", std::max(links.bandwidth, 1.0));
  machines.latency = fmt::format("{:.1f}us", 1e6 * links.latency_s);
  const std::uint32_t each = ranks_per_machine(places);
  if (each < places.size()) machines.nodes_per_host = each;
  return machines;
}

/// Converts a plan of the comparison. `response` gives its time's interval; nullopt: none.
AutomaticPlan plan_of(const planner::PreparedRequest& prepared, const planner::TimedPlan& timed,
                      const std::optional<sim::Response>& response, const costs::Spread& spread,
                      const std::string& name) {
  const models::Model& model = prepared.model;
  AutomaticPlan made{
      .yaml =
          plans::plan_yaml(model, timed.plan,
                           {.predicted_iteration_s = timed.iteration_s,
                            .search = std::string(prepared.search.name),
                            .profile = prepared.profile.name + " " + prepared.profile.fingerprint,
                            .network = prepared.request.network}),
      .topology = timed.plan.topology,
      .what = fmt::format("uncompressed ({})", name.empty() ? timed.plan.topology : name),
      .iteration_s = timed.iteration_s};
  if (planner::compresses(model, timed.plan)) {
    made.what = fmt::format("{} for {} of {} gradients",
                            fmt::join(plans::used_algorithms(model, timed.plan), "+"),
                            plans::count_compressed(model, timed.plan), model.gradients.size());
  }
  made.interval = response ? sim::interval(*response, spread)
                           : sim::Interval{timed.iteration_s, timed.iteration_s};
  return made;
}

/// Fills in the plans and their predicted speedup.
void take(const planner::PreparedRequest& prepared, const planner::Advice& advice,
          AutomaticChoice& choice) {
  const planner::Comparison& times = advice.comparison;
  if (!times.planned_s || !times.uncompressed) {
    throw io::RunError(fmt::format("no plan could be simulated{}",
                                   times.not_simulated.empty()
                                       ? ", its graphs are too large: start fewer ranks"
                                       : ": " + times.not_simulated));
  }
  const planner::Contender& plain = *times.uncompressed;
  choice.plain = plan_of(prepared, plain.plan, plain.response, times.spread, plain.name);
  std::optional<planner::Contender> best = times.compressed;
  if (planner::compresses(prepared.model, advice.found.plan)) {
    best = {.name = {},
            .plan = {advice.found.plan, advice.found.transfer_order, *times.planned_s},
            .machines = nullptr,
            .response = times.planned};
  }
  if (!best) return;
  choice.planned = plan_of(prepared, best->plan, best->response, times.spread, best->name);
  choice.gain = choice.plain.iteration_s / choice.planned->iteration_s;
  // Without intervals of both plans, the speedup's is extended to 1: the plan is not worth taking.
  choice.gain_p10 = std::min(choice.gain, 1.0);
  choice.gain_p90 = std::max(choice.gain, 1.0);
  if (!best->response || !plain.response) return;
  const sim::Saving saving = sim::saving(*best->response, *plain.response, times.spread);
  choice.gain_p10 = 1 / (1 - std::min(saving.p10, 0.999));
  choice.gain_p90 = 1 / (1 - std::min(saving.p90, 0.999));
}

AutomaticChoice plan_for(const AutomaticRequest& request, const std::vector<RankPlace>& places,
                         const runtime::Links& links, const Hooks& hooks) {
  const auto nodes = static_cast<std::uint32_t>(places.size());
  const std::string profile =
      request.profile.empty() ? cached_profile(request.algorithms, nodes, hooks) : request.profile;
  planner::Request asked;
  asked.model = request.model;
  asked.topology = request.topology;
  asked.topology_given = true;
  asked.nodes = nodes;
  asked.machines = machines_of(profile, places, links);
  asked.algorithms = request.algorithms;
  asked.network = request.network;
  asked.budget_s = kSearchBudget_s;
  asked.jobs = request.jobs;
  planner::Hooks callbacks;
  callbacks.interrupted = hooks.interrupted;
  const auto began = job::Clock::now();
  const planner::PreparedRequest prepared(asked, planner::PlanForm::kYaml, callbacks);
  const planner::Advice advice = planner::advise(prepared);
  AutomaticChoice choice{.links = links,
                         .machines = costs::describe_machines(
                             prepared.profile, prepared.machines->cluster, prepared.model)};
  take(prepared, advice, choice);
  choice.planning_s = std::chrono::duration<double>(job::Clock::now() - began).count();
  return choice;
}

// ---- the choice as a message

io::Document message_of(const AutomaticPlan& plan) {
  return {{"yaml", plan.yaml},     {"topology", plan.topology},    {"what", plan.what},
          {"s", plan.iteration_s}, {"p10_s", plan.interval.p10_s}, {"p90_s", plan.interval.p90_s}};
}

double number_in(const io::Document& message, const char* name) {
  return message.find(name)->number().value();
}

AutomaticPlan plan_in(const io::Document& message) {
  return {.yaml = *message.find("yaml")->text(),
          .topology = *message.find("topology")->text(),
          .what = *message.find("what")->text(),
          .iteration_s = number_in(message, "s"),
          .interval = {number_in(message, "p10_s"), number_in(message, "p90_s")}};
}

io::Document message_of(const AutomaticChoice& choice) {
  return {{"machines", choice.machines},
          {"planning_s", choice.planning_s},
          {"plain", message_of(choice.plain)},
          {"planned", choice.planned ? message_of(*choice.planned) : io::Document()},
          {"gain", choice.gain},
          {"gain_p10", choice.gain_p10},
          {"gain_p90", choice.gain_p90}};
}

AutomaticChoice choice_in(const io::Document& message, const runtime::Links& links) {
  AutomaticChoice choice{.links = links,
                         .machines = *message.find("machines")->text(),
                         .planning_s = number_in(message, "planning_s"),
                         .plain = plan_in(*message.find("plain")),
                         .planned = {},
                         .gain = number_in(message, "gain"),
                         .gain_p10 = number_in(message, "gain_p10"),
                         .gain_p90 = number_in(message, "gain_p90")};
  const io::Document& planned = *message.find("planned");
  if (!planned.is_null()) choice.planned = plan_in(planned);
  return choice;
}

}  // namespace

std::string AutomaticChoice::prediction() const {
  if (!planned) {
    return fmt::format("no plan with compression is possible; {} takes {}", plain.what,
                       io::format_duration(plain.iteration_s));
  }
  return fmt::format("{} is {:.2f} times ({:.2f} to {:.2f}) as fast as {}: {} instead of {}",
                     planned->what, gain, gain_p10, gain_p90, plain.what,
                     io::format_duration(planned->iteration_s),
                     io::format_duration(plain.iteration_s));
}

AutomaticChoice choose(transport::Endpoint& endpoint, const AutomaticRequest& request,
                       const Hooks& hooks) {
  if (endpoint.size() < 2) {
    throw io::InputError("one rank alone has nothing to send, and so nothing to plan");
  }
  const std::vector<RankPlace> places = gather_places(endpoint);
  const runtime::Links links = runtime::measure_links(endpoint, request.timeout_s);
  const auto make = [&](io::InterruptFlag ended) {
    Hooks within = hooks;
    within.interrupted = ended;
    return message_of(plan_for(request, places, links, within)).print();
  };
  const std::string made = job::made_by_first(endpoint, make, hooks.interrupted);
  return choice_in(io::Document::parse(made, "rank 0's plan"), links);
}

plans::ResolvedPlan resolve(const AutomaticPlan& plan, const AutomaticRequest& request,
                            std::uint32_t ranks) {
  return plans::parse_plan_yaml(
      plan.yaml, plan.what,
      {.model = *request.model,
       .topology = plan.topology,
       .nodes = ranks,
       .trust = {.named = kernels::split_algorithms(request.algorithms)}});
}

std::string describe(const runtime::Links& links) {
  return fmt::format("{}, {}", costs::describe_bandwidth(links.bandwidth),
                     io::format_duration(links.latency_s));
}

}  // namespace hipress::requests
