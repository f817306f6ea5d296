#include "requests/plan.hpp"

#include <fmt/format.h>

#include "casync/strategy.hpp"
#include "costs/collectives.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "planner/advice/in_words.hpp"
#include "plans/plan_builder.hpp"
#include "plans/plan_file.hpp"
#include "requests/broadcast.hpp"
#include "requests/report.hpp"
#include "requests/schedules.hpp"

namespace hipress::requests {

using namespace planner;

namespace {

/// A text plan that compresses with one algorithm says only that it compresses; which, the tools
/// that replay it must be told if it is not the one that they take for granted. Empty: they need
/// not.
std::string diagnose_algorithm(const models::Model& model, const casync::Plan& plan) {
  const std::vector<std::string> used = plans::used_algorithms(model, plan);
  if (used.size() != 1 || used.front() == plans::PlanContext{.model = model}.algorithm) return {};
  if (is_additive(used.front())) return {};  // the text says it
  return fmt::format(
      "the plan compresses with {}, which its text does not say: take `output` X.yaml, or replay "
      "with `algorithm` {}",
      used.front(), io::quote(used.front()));
}

/// Writes the plan as the output's name says, in a YAML with its fallback.
void write_plan(const PlanRequest& options, const models::Model& model, const SearchResult& found,
                const costs::Profile& profile, const Comparison& comparison,
                const std::optional<plans::DenseFallback>& dense) {
  if (!options.yaml()) return plans::write_plan_text(options.output, model, found.plan);
  plans::write_plan_yaml(options.output, model, found.plan,
                         {.predicted_iteration_s = comparison.planned_s,
                          .search = options.request.search_name(),
                          .profile = profile.name + " " + profile.fingerprint,
                          .network = options.request.network,
                          .lower_bound_s = comparison.lower_bound_s,
                          .transfer_order = found.transfer_order,
                          .dense = dense});
}

/// Adds what whoever replays the plan from its file must know.
void add_replay_diagnostics(const PlanRequest& options, const models::Model& model,
                            const costs::Profile& profile, SearchResult& found) {
  const std::string raw = raw_strategy_of(found.plan);
  if (sends_raw_alone(raw)) {
    const std::string estimate = costs::AllReduceCosts(profile).diagnostic(found.plan.nodes);
    if (!estimate.empty()) found.diagnostics.push_back(estimate);
  }
  if (!options.yaml()) {
    const std::string algorithm = diagnose_algorithm(model, found.plan);
    if (!algorithm.empty()) found.diagnostics.push_back(algorithm);
  }
  if (!found.plan.raw_strategy.empty() && !options.yaml()) {
    found.diagnostics.push_back(fmt::format(
        "raw gradients go by {}, which only a plan YAML says: take `output` X.yaml{}", raw,
        sends_raw_alone(raw)
            ? fmt::format(", or replay with `topology` {} `raw_allreduce`", found.plan.strategy)
            : ""));
  }
  if (found.transfer_order == sim::TransferOrder::kNeed) {
    found.diagnostics.emplace_back(
        options.yaml() ? "the plan is for transfer order need, in which hipress-exec cannot run it"
                       : "the plan is for `transfer_order` need, which only a plan YAML says: take "
                         "`output` X.yaml, or replay with hipress-sim `transfer_order` need");
  }
  const bool grouped = found.plan.bulk.threshold_bytes > 0 || found.plan.batch.threshold_bytes > 0;
  if (grouped && !options.yaml()) {
    found.diagnostics.emplace_back(
        "the plan has bulk groups or batches, which only a plan YAML says: take `output` X.yaml");
  }
}

planner::Hooks hooks_of(const Hooks& hooks) {
  planner::Hooks made;
  made.warn = [hooks](const std::string& text) { warn(hooks, text); };
  made.interrupted = hooks.interrupted;
  made.searched = hooks.stage_done;
  if (!hooks.progress) return made;
  made.progress = [report = hooks.progress](double share, double best_s) {
    report({.stage = "search", .share = share, .best_s = best_s});
  };
  return made;
}

/// The same hooks, whose warnings and notes are in `said`, too.
Hooks noting(const Hooks& hooks, const std::shared_ptr<std::vector<std::string>>& said) {
  Hooks made = hooks;
  made.warn = [hooks, said](const std::string& text) {
    said->push_back(text);
    warn(hooks, text);
  };
  made.inform = [hooks, said](const std::string& text) {
    said->push_back(text);
    inform(hooks, text);
  };
  return made;
}

/// Refuses files that cannot be written, or that would take the place of another.
void check_outputs(const PlanRequest& request, bool writes_plan) {
  if (writes_plan) {
    io::require_writable(request.output);
    io::refuse_input(request.output);
  }
  if (request.report.empty()) return;
  io::require_writable(request.report);
  io::refuse_input(request.report);
  if (writes_plan && request.report == request.output) {
    throw io::InputError(fmt::format("`report` and `output` are one file, {}: give two names",
                                     io::quote(request.report)));
  }
}

/// The quantity whose break-even is looked for: the one that is asked for, or a report's, which
/// has one of bandwidths where plans can be made anew; empty: none.
std::string break_even_quantity(const Planned& planned) {
  const PlanRequest& request = planned.request;
  if (!request.break_even.empty() || request.report.empty()) return request.break_even;
  const bool can_be_found =
      planned.prepared.searches() && planned.advice.comparison.planned_s.has_value();
  return can_be_found ? "bandwidth" : "";
}

/// What would be with other machines, as far as it is asked for.
void look_elsewhere(Planned& planned, const Hooks& hooks) {
  constexpr std::int64_t kEvaluations = 100;  // of each search, unless told otherwise
  const PlanRequest& request = planned.request;
  const std::string quantity = break_even_quantity(planned);
  if (quantity.empty() && !request.advise) return;
  WhatIf what_if(planned.prepared, request.request.evaluations.value_or(kEvaluations),
                 &planned.advice);
  if (!quantity.empty()) {
    planned.break_even = break_even_point(what_if, find_quantity(quantity));
    if (!planned.break_even->diagnostic.empty()) inform(hooks, planned.break_even->diagnostic);
  }
  if (request.advise) planned.in_words = in_words(what_if, planned.advice);
}

}  // namespace

Planned::Planned(const PlanRequest& asked, const Hooks& hooks)
    : request(asked), prepared(asked.request, asked.form(), hooks_of(hooks)) {}

std::unique_ptr<const Planned> plan(const PlanRequest& request, const Hooks& given) {
  refuse_broadcast_fields(request.broadcast);
  refuse_unused(request);
  if (!request.break_even.empty()) find_quantity(request.break_even);
  if ((!request.break_even.empty() || request.advise) && !request.request.analysis.plan.empty()) {
    throw io::InputError(
        "`break_even` and `advise` make plans anew: leave them out, or `plan`, which gives one");
  }
  sim::parse_network(request.request.network);  // refused before files are read
  const auto said = std::make_shared<std::vector<std::string>>();
  const Hooks hooks = noting(given, said);
  auto planned = std::make_unique<Planned>(request, hooks);
  const PreparedRequest& prepared = planned->prepared;
  if (!request.break_even.empty()) check_break_even(prepared, find_quantity(request.break_even));
  const bool writes = prepared.searches() && !request.output.empty();
  check_outputs(request, writes);
  if (writes && !request.yaml()) plans::require_text_names(prepared.model);
  if (prepared.optimises() && hooks.optimises) hooks.optimises();
  planned->advice = advise(prepared);
  const Advice& advice = planned->advice;
  for (const std::string& warning : advice.analysis.warnings) warn(hooks, warning);
  SearchResult& found = planned->advice.found;
  if (writes) {
    add_replay_diagnostics(request, prepared.model, prepared.profile, found);
    write_plan(request, prepared.model, found, prepared.profile, advice.comparison,
               advice.analysis.dense);
  }
  look_elsewhere(*planned, hooks);
  for (const std::string& diagnostic : found.diagnostics) inform(hooks, diagnostic);
  planned->traced = models::read_traced(request.request.input);
  if (request.makes_page()) planned->page = report_page(*planned, *said);
  if (!request.report.empty()) {
    io::write_file(request.report, [&](std::ostream& out) { out << planned->page; });
  }
  return planned;
}

io::Document answer(const PlanRequest& request, const Hooks& hooks) {
  refuse_report(request);
  if (request.job == "broadcast") return document(*plan_broadcast(request, hooks));
  if (request.is_of_schedules()) return document(*answer_of_schedules(request, hooks));
  const auto planned = plan(request, hooks);
  io::Document made = document(*planned);
  if (request.page) made["page"] = planned->page;
  return made;
}

}  // namespace hipress::requests
