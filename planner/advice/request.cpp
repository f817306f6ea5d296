#include "planner/advice/request.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "casync/topology.hpp"
#include "io/alternatives.hpp"
#include "io/error.hpp"
#include "io/processors.hpp"
#include "io/suggestion.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "planner/choices/choices.hpp"
#include "plans/most_algorithms.hpp"
#include "plans/plan_file.hpp"

namespace hipress::planner {

unsigned default_jobs() {
  constexpr std::size_t kMost = 4;
  return static_cast<unsigned>(std::min(io::usable_cores().size(), kMost));
}

namespace {

constexpr std::uint32_t kDefaultNodes = 16;  // SeCoPa.py's

/// Default for sharded jobs, which compute in bf16.
constexpr const char* kSafeInShards = "int8block,bf16";
/// Algorithms of a request with `coarsest` that names none, from which coarser ones are dropped.
constexpr const char* kUsual = "int8block,fp16,int4block,terngrad,onebit";
/// Algorithms published with SeCoPa.
constexpr const char* kPublished = "onebit,fp16";

/// Algorithms of a list; empty for "none".
std::vector<std::string> allowed_algorithms(const std::string& text) {
  if (text == "none") return {};
  for (const std::string& name : kernels::split_algorithms(text)) {
    // Throws for an unknown parameter, before named_algorithms() can throw for too many values.
    algorithm(io::first_alternative(name));
  }
  const std::vector<std::string> names = named_algorithms(text);
  for (const std::string& name : names) algorithm(name);  // throws for unknown algorithms
  return names;
}

Limits limits_of(const Request& request) {
  return {.budget_s = request.budget_s.value_or(Limits{}.budget_s),
          .evaluations = request.evaluations.value_or(-1),
          .seed = request.seed,
          .jobs = request.jobs};
}

const casync::Topology& known_topology(const std::string& name) {
  try {
    return casync::find_topology(name);
  } catch (const std::invalid_argument& error) {
    throw io::InputError(fmt::format("{}, and BEST, which chooses among them", error.what()));
  }
}

/// Removes algorithms that the pilot lacks, or with which its job did not learn.
void leave_out_unknown(const Learning& learning, Problem& problem, const Warn& warn) {
  std::vector<std::string> kept = learning.known(problem.algorithms);
  for (const std::string& name : problem.algorithms) {
    if (std::ranges::find(kept, name) != kept.end()) continue;
    const bool never = std::ranges::find(learning.never, name) != learning.never.end();
    warn(fmt::format("{} is left out: {}", name,
                     never ? "in the pilot it never reached DDP's loss"
                           : "it is not in the pilot; add it to the plans of hipress.pilot"));
  }
  problem.algorithms = std::move(kept);
}

/// Removes algorithms with stages for SeCoPa, whose formulas cover only messages of slices. If the
/// list has no other algorithms, it is kept, and the search rejects it.
void leave_out_stages(const SearchRow& search, Problem& problem, const Warn& warn) {
  if (search.simulates) return;
  std::vector<std::string> kept = of_slices(problem.algorithms);
  if (kept.empty() || kept.size() == problem.algorithms.size()) return;
  warn(
      fmt::format("search {} has no formulas for algorithms that send factors of whole gradients: "
                  "they are left "
                  "out; `search` timeline plans them",
                  search.name));
  problem.algorithms = std::move(kept);
}

}  // namespace

std::string algorithms_of(const Request& request, const SearchRow& search,
                          const Learning* learning) {
  if (!request.algorithms.empty()) return request.algorithms;
  if (learning != nullptr) return fmt::format("{}", fmt::join(learning->algorithms(), ","));
  if (!search.simulates) return kPublished;
  if (!request.coarsest.empty()) return kUsual;
  return kind_of(request.schedule) == JobKind::kSharding ? kSafeInShards : kSafe;
}

void check(const Request& request) {
  const auto word = [](std::string_view option, const std::string& given,
                       std::initializer_list<std::string_view> known) {
    if (std::find(known.begin(), known.end(), given) != known.end()) return;
    throw io::InputError(
        fmt::format("{} {}", option, io::none_of(given, std::span(known.begin(), known.size()))));
  };
  const auto number = [](std::string_view option, double given, double least, double most) {
    if (given >= least && given <= most) return;  // false for NaN
    throw io::InputError(
        fmt::format("{} must be a number from {} to {}, got {}", option, least, most, given));
  };
  word("`transfer_order`", request.transfer_order, {"ready", "need", "best"});
  word("`grouping`", request.grouping, {"any", "none", "auto"});
  word("`write`", request.write, {"advised", "fastest"});
  number("`nnodes`", request.nodes, 0, kMaxNodes);
  number("`budget`", request.budget_s.value_or(0), 0, kMaxBudget_s);
  number("`evaluations`", static_cast<double>(request.evaluations.value_or(0)), 0, INT64_MAX);
  number("`tolerance`", request.tolerance, 0, kMaxTolerance);
  number("`jobs`", request.jobs, 1, kMaxJobs);
  number("`replicas`", request.analysis.replicas.value_or(1), 1, kMaxReplicas);
  number("`bandwidth_uncertainty`", request.analysis.bandwidth_uncertainty.value_or(0), 0,
         kMaxUncertainty);
}

std::vector<std::string> named_algorithms(const std::string& list) {
  std::vector<std::string> names;
  for (const std::string& one : kernels::split_algorithms(list)) {
    for (std::string& name : io::alternatives(one, plans::kMostAlgorithms, "algorithms")) {
      names.push_back(std::move(name));
    }
    if (names.size() <= plans::kMostAlgorithms) continue;
    throw io::InputError(fmt::format(
        "`algorithm` names more than the {} algorithms that a plan can mix; give fewer of them",
        plans::kMostAlgorithms));
  }
  return names;
}

std::string topology_of(const Request& request, const SearchRow& search) {
  std::string asked = request.topology;
  const std::string& plan = request.analysis.plan;
  if (!request.topology_given && !plan.empty()) {
    asked = plans::topology_of_plan(plan).value_or(asked);
  }
  std::string name = asked;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name != "best") {
    const casync::Topology& topology = known_topology(asked);
    if (topology.operation == casync::Operation::kMean) return std::string(topology.name);
    throw io::InputError(
        fmt::format("topology {} does not average gradients: take one of {}, or BEST",
                    topology.name, casync::topology_names(casync::Operation::kMean)));
  }
  if (!search.optimises) {
    throw io::InputError(fmt::format(
        "`topology` BEST compares simulated times, which search {} does not: take `search` "
        "timeline, or one of {}",
        search.name, casync::topology_names(casync::Operation::kMean)));
  }
  return name;
}

Problem problem_of(const Request& request, PlanForm form, const SearchRow& search,
                   const models::Model& model, std::shared_ptr<const Learning> learning,
                   const Warn& warn) {
  Problem problem = {.model = model,
                     .topology = topology_of(request, search),
                     .nodes = request.nodes > 0 ? request.nodes : kDefaultNodes,
                     .algorithms = allowed_algorithms(request.algorithms)};
  problem.accuracy = parse_accuracy(request.accuracy);
  if (!request.coarsest.empty()) {
    problem.algorithms = problem.accuracy.not_coarser(problem.algorithms, request.coarsest);
  }
  if (learning) {
    leave_out_unknown(*learning, problem, warn);
    problem.learning = std::move(learning);
  }
  leave_out_stages(search, problem, warn);
  if (problem.algorithms.empty() && !search.optimises) {
    throw io::InputError(
        fmt::format("search {} needs an algorithm to decide on: allow one, or take `search` "
                    "timeline",
                    search.name));
  }
  const bool says_all = form == PlanForm::kYaml || !request.analysis.plan.empty();
  const bool any = request.grouping == "any" || (request.grouping == "auto" && says_all);
  problem.grouping = any ? Grouping::kAny : Grouping::kNone;
  problem.transfer_order = request.transfer_order == "best"   ? OrderChoice::kBest
                           : request.transfer_order == "need" ? OrderChoice::kNeed
                                                              : OrderChoice::kReady;
  problem.limits = limits_of(request);
  problem.tolerance = request.tolerance;
  problem.schedule = request.schedule;
  problem.shards_by = request.shards_by;
  problem.optimizer = request.optimizer;
  problem.memory_bytes = request.memory_bytes;
  problem.activation_bytes = request.activation_bytes;
  problem.today = request.today;
  problem.plan_file = request.analysis.plan;
  if (kind_of(request.schedule) == JobKind::kSharding) problem.topology = "allreduce";
  problem.trust = request.trust;
  problem.trust.named = named_algorithms(request.algorithms);
  return problem;
}

}  // namespace hipress::planner
