#include "requests/hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "io/error.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"
#include "plans/plan_builder.hpp"
#include "requests/shared_fields.hpp"
#include "requests/simulate.hpp"

namespace hipress::requests {
namespace {

/// Hosts pay as long as they add this share of what the first ones do.
constexpr double kPays = 0.5;
/// Communication that takes less of a step does not bound it, nor where no change that is tried
/// shortens it by so much.
constexpr double kBounds = 0.1;
constexpr double kWorthSaying = 1.02;

bool in_shards(const PlanRequest& request) {
  if (request.schedules.empty()) return false;
  const auto set = casync::Schedule::parse_set(request.schedules.front());
  return !set.empty() && planner::kind_of(set.front()) == planner::JobKind::kSharding;
}

SimulateRequest simulation_of(const PlanRequest& request, std::uint32_t hosts) {
  const planner::Request& asked = request.request;
  SimulateRequest made;
  made.input = asked.input;
  made.machines = asked.machines;
  made.machines.hosts = hosts;
  made.times = asked.times;
  made.wrap = asked.wrap;
  made.network = asked.network;
  made.plan = !request.today.empty()              ? request.today
              : !in_shards(request)               ? "ddp"
              : plans::is_cast(asked.times.dtype) ? "fsdp2"
                                                  : "fsdp2_mixed";
  return made;
}

HostsRow row_of(const SimulateRequest& request, const Simulated& done) {
  HostsRow row = {.hosts = request.machines.hosts, .gpus = done.scenario.cluster.nodes};
  row.iteration_s = casync::to_seconds(done.prediction.iteration);
  row.compute_s = casync::to_seconds(compute_time(done.prediction));
  const models::Model& model = done.scenario.model;
  const double units = std::max(1, model.batch) * static_cast<double>(model.micro_steps);
  row.units_per_s = units * (model.batch > 0 ? row.gpus : 1) / row.iteration_s;
  return row;
}

/// Changes that are tried, on a request and what it came to.
struct ChangeRow {
  const char* what;
  std::function<bool(SimulateRequest&, const Simulated&)> change;  ///< false: not for this job
};

const std::vector<ChangeRow>& change_rows() {
  static const std::vector<ChangeRow> rows = {
      {"a network of twice the bandwidth",
       [](SimulateRequest& request, const Simulated& done) {
         request.machines.bandwidth =
             fmt::format("{:.6g}Gbps", 2 * 8 * done.scenario.cluster.link.bandwidth / 1e9);
         return request.machines.hosts > 1;
       }},
      {"gradients in half precision",
       [](SimulateRequest& request, const Simulated& done) {
         request.plan = done.scenario.plan.schedule.row().sharded ? "fsdp2_bf16" : "ddp_fp16";
         return true;
       }},
      {"4 times the micro-steps",
       [](SimulateRequest& request, const Simulated& done) {
         request.times.micro_steps =
             4 * static_cast<std::uint32_t>(done.scenario.model.micro_steps);
         return request.times.batch > 0 && request.times.compute_time.empty();
       }},
      {"twice the batch of a GPU",
       [](SimulateRequest& request, const Simulated&) {
         request.times.batch *= 2;
         return request.times.batch > 0 && request.times.compute_time.empty();
       }},
      {"shards within a host (HSDP)",
       [](SimulateRequest& request, const Simulated& done) {
         request.plan = "hsdp_mixed";
         return done.scenario.plan.schedule.row().sharded && request.machines.hosts > 1;
       }},
  };
  return rows;
}

std::vector<HostsChange> changes_of(const SimulateRequest& request, const Simulated& done) {
  const double before = row_of(request, done).units_per_s;
  std::vector<HostsChange> changes;
  for (const ChangeRow& row : change_rows()) {
    SimulateRequest changed = request;
    if (!row.change(changed, done)) continue;
    try {
      const Simulated other = simulate(changed, {});
      changes.push_back({row.what, row_of(changed, other).units_per_s / before});
    } catch (const io::InputError&) {
      continue;  // no plan of that kind for this model
    }
  }
  std::ranges::stable_sort(changes, std::greater(), &HostsChange::speedup);
  return changes;
}

std::string sentence_of(const HostsAnswer& answer) {
  const HostsRow& first = answer.rows.front();
  const HostsRow& last = answer.rows.back();
  const auto stop =
      std::ranges::find_if(answer.rows, [](const HostsRow& row) { return row.added < kPays; });
  std::string text;
  if (answer.rows.size() > 1) {
    text = stop == answer.rows.end()
               ? fmt::format("more hosts pay up to {}", last.hosts)
               : fmt::format("more than {} host{} do not pay", std::prev(stop)->hosts,
                             std::prev(stop)->hosts > 1 ? "s" : "");
    text += fmt::format(": {} train {:.2f} times as fast as {}; ", last.hosts,
                        last.units_per_s / first.units_per_s, first.hosts);
  }
  const double share = last.exposed_s() / last.iteration_s;
  const bool shrinks =
      !answer.changes.empty() && answer.changes.front().speedup >= 1 / (1 - kBounds / 2);
  text += fmt::format(
      "on {} the job is bound by {}, {:.0f} % of a step is communication that "
      "nothing hides",
      last.hosts, share > kBounds && shrinks ? "the network" : "computation", 100 * share);
  if (answer.changes.empty() || answer.changes.front().speedup < kWorthSaying) return text;
  return text + fmt::format("; {} would make it {:.2f} times as fast", answer.changes.front().what,
                            answer.changes.front().speedup);
}

}  // namespace

std::vector<std::uint32_t> parse_hosts(const std::string& text) {
  std::vector<std::uint32_t> hosts;
  for (const std::string_view field : io::split_fields(text)) {
    const auto count = static_cast<std::uint32_t>(
        io::parse_integer(field, "`hosts`", 1, static_cast<std::int64_t>(costs::kMaxNodes)));
    if (!hosts.empty() && count <= hosts.back()) {
      throw io::InputError(fmt::format(
          "`hosts` must be numbers in ascending order, such as 1,2,4, got {}", io::quote(text)));
    }
    hosts.push_back(count);
  }
  return hosts;
}

HostsAnswer compare_hosts(const PlanRequest& request, const std::vector<std::uint32_t>& hosts,
                          const Hooks& hooks) {
  if (request.request.machines.gpus > 0) {
    throw io::InputError("`gpus` is of one number of hosts: leave it out, or give one");
  }
  HostsAnswer answer;
  std::size_t left = hosts.size();
  for (const std::uint32_t count : hosts) {
    look_for_interrupt(hooks);
    SimulateRequest simulation = simulation_of(request, count);
    const Simulated done = simulate(simulation, --left == 0 ? hooks : Hooks());
    HostsRow row = row_of(simulation, done);
    if (!answer.rows.empty()) {
      const HostsRow &first = answer.rows.front(), &before = answer.rows.back();
      row.added = (row.units_per_s - before.units_per_s) / (row.hosts - before.hosts) /
                  (first.units_per_s / first.hosts);
    }
    answer.rows.push_back(row);
    if (left > 0) continue;
    answer.plan = simulation.plan;
    const models::Model& model = done.scenario.model;
    answer.unit = model.batch > 0 ? (model.unit.empty() ? "units" : model.unit) : "steps";
    answer.changes = changes_of(simulation, done);
  }
  answer.sentence = sentence_of(answer);
  return answer;
}

io::Document document(const HostsAnswer& answer) {
  io::Document hosts = io::Document::list(), changes = io::Document::list();
  for (const HostsRow& row : answer.rows) {
    hosts.push_back({{"hosts", row.hosts},
                     {"gpus", row.gpus},
                     {"iteration_s", row.iteration_s},
                     {"compute_s", row.compute_s},
                     {"exposed_communication_s", row.exposed_s()},
                     {"units_per_s", row.units_per_s},
                     {"added", row.added}});
  }
  for (const HostsChange& change : answer.changes) {
    changes.push_back({{"what", change.what}, {"speedup", change.speedup}});
  }
  return {{"plan", answer.plan},
          {"unit", answer.unit},
          {"hosts", hosts},
          {"changes", changes},
          {"sentence", sentence(answer.sentence)}};
}

}  // namespace hipress::requests
