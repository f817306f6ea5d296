#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "casync/topology.hpp"
#include "planner/advice/break_even_point.hpp"
#include "planner/problem/state_memory.hpp"
#include "requests/headings.hpp"
#include "requests/plan_request.hpp"
#include "requests/shared_fields.hpp"

namespace hipress::requests {

using namespace planner;

namespace {

/// True if the schedules' kinds are known and all are sharded. shards_nothing(): none is sharded.
bool shards_only(const PlanRequest& of) {
  const auto shards = [](JobKind kind) { return kind == JobKind::kSharding; };
  return !of.kinds.empty() && std::ranges::all_of(of.kinds, shards);
}
bool shards_nothing(const PlanRequest& of) {
  return !of.kinds.empty() && std::ranges::find(of.kinds, JobKind::kSharding) == of.kinds.end();
}
bool shards_by_library(const PlanRequest& of) {
  return shards_only(of) && of.known_shards_by() == casync::kLibrary;
}

/// Search for schedules that average in every step; null if no such schedule is requested.
const SearchRow* search_of(const PlanRequest& of) {
  const bool averages = std::ranges::find(of.kinds, JobKind::kAveraging) != of.kinds.end();
  return averages ? &find_search(of.request.search_name()) : nullptr;
}

/// Cases in which fields of a plan request are refused or have no effect, with the reasons.
struct Cases {
  using Of = const PlanRequest&;
  Of request;
  Case in(bool (*holds)(Of), const char* why) const {
    return when([&of = request, holds] { return holds(of); }, why);
  }

  Case broadcasts = in([](Of of) { return of.job == "broadcast"; },
                       "applies to plans that average gradients: leave it out, or take `job` mean");
  Case no_computation = in([](Of of) { return of.job == "broadcast"; },
                           "has no use, since a broadcast waits for no computation: leave it out");
  Case averages = in([](Of of) { return of.job != "broadcast"; },
                     "applies to `job` broadcast: add that, or leave it out");
  Case bandwidths =
      in([](Of of) { return of.required_bandwidth; },
         "applies to a plan, and `required_bandwidth` finds none: leave one of them out");
  Case no_search =
      in([](Of of) { return of.required_bandwidth; }, "`required_bandwidth` searches no plan");
  Case given_plan = in([](Of of) { return !of.request.analysis.plan.empty(); },
                       "needs new plans, and `plan` gives one: leave one of them out");
  Case not_robust = in([](Of of) { return !of.request.analysis.robust; }, "it applies to `robust`");
  Case own_search = in([](Of of) { return !of.kinds.empty() && search_of(of) == nullptr; },
                       "plans of schedules have their own search");
  Case no_budget = [&of = request] {
    const SearchRow* const search = search_of(of);
    if (search == nullptr || search->optimises) return std::string();
    return fmt::format("search {} does not iterate", search->name);
  };
  Case no_passes = in(
      [](Of of) {
        const SearchRow* const search = search_of(of);
        const bool searches = search != nullptr && of.request.analysis.plan.empty();
        return !of.kinds.empty() && !(searches && search->optimises);
      },
      "passes run only after searches that optimise");
  Case only_messages = in([](Of of) { return shards_only(of) && !shards_by_library(of); },
                          "messages carry the shards, as `shards_by` says");
  Case only_collectives = in(
      shards_by_library, "a library's collectives carry the shards, one at a time on each network");
  Case no_shards =
      in(shards_nothing,
         "applies to sharded schedules, such as `schedule` fsdp: give one, or leave it out");
  Case no_layers = in(
      [](Of of) { return of.schedules.empty() && of.request.analysis.plan.empty(); },
      "applies to layers, which ddp does not have: give `schedule`, such as fsdp, or leave it out");
  Case no_gpu_memory = in([](Of of) { return of.gpu_memory.empty() && of.hosts.size() < 2; },
                          "needs `gpu_memory`: give both, or leave it out");
  Case several_hosts = in([](Of of) { return of.hosts.size() > 1; },
                          "applies to a plan, and several `hosts` compare the job's present plan: "
                          "leave it out, or give one number of hosts");
  Case no_bandwidths = in([](Of of) { return !of.required_bandwidth; },
                          "needs `required_bandwidth`: give that too, or leave it out");
};

void add(Fields& made, AnalysisOptions& options, const Cases& cases) {
  made.under(headings::kQuestions, cases.broadcasts, cases.bandwidths);
  made.add("explain", &options.explain,
           "Explain each gradient's decision, the cost of the second-best decision, and the plan's "
           "memory");
  made.add("compare", &options.compare,
           "Compare the plan with this one (a file, or none, all, fp16 …): times, bytes, and the "
           "cost of each difference alone");
  made.add("plan", &options.plan,
           "Explain or compare this plan (a file or a name) instead of searching one; no file is "
           "written");
  made.add("robust", &options.robust,
           "Choose the plan with the best 90th percentile of the iteration time, under "
           "`jitter` and `bandwidth_uncertainty`");
  made.add("jitter", &options.jitter,
           "Distribution of the factor by which each task's time varies: lognormal:S, uniform:W, "
           "samples:FILE (as in hipress-sim)")
      .idle(cases.not_robust);
  made.add("bandwidth_uncertainty", &options.bandwidth_uncertainty,
           "Uncertainty of the links' bandwidth, as a share: 0.2 for 80 to 120 % of it")
      .between(0, kMaxUncertainty)
      .idle(cases.not_robust);
  made.add("replicas", &options.replicas,
           "Number of draws for comparing plans; a larger number gives steadier percentiles "
           "(default: 100)")
      .from(1, kMaxReplicas)
      .idle(cases.not_robust);
  made.add(
          "disable_pass", &options.disabled_passes,
          "Passes to leave out, separated by commas; passes improve the plan after search timeline")
      .under(headings::kSearch)
      .idle(cases.no_passes);
}

/// Refuses fields that a comparison of numbers of hosts does not use. `page` stays allowed, since
/// the packages set it in every request.
void refuse_beside_hosts(Fields& fields, const Cases& cases) {
  static const std::set<std::string_view> kUsed = {"input",
                                                   "machine",
                                                   "hosts",
                                                   "gpus",
                                                   "profile",
                                                   "cluster",
                                                   "bandwidth",
                                                   "latency",
                                                   "overhead",
                                                   "gpu_bandwidth",
                                                   "network",
                                                   "scale_kernels",
                                                   "schedule",
                                                   "wrap",
                                                   "today",
                                                   "batch",
                                                   "seq",
                                                   "dtype",
                                                   "checkpoint",
                                                   "micro_steps",
                                                   "mfu",
                                                   "tokens_per_s",
                                                   "forward",
                                                   "per_gradient",
                                                   "compute_time",
                                                   "assume_cost",
                                                   "gpus_per_node",
                                                   "page",
                                                   "optimizer",
                                                   "gpu_memory",
                                                   "activation_memory"};
  for (Field& field : fields) {
    if (!kUsed.contains(field.name)) field.not_for(cases.several_hosts);
  }
}

/// Optimizers for help: "adamw (two moments in fp32), …".
std::string describe_optimizers() {
  std::string text;
  for (const OptimizerRow& row : optimizers()) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", row.name, row.help);
  }
  return text;
}

}  // namespace

Fields fields(PlanRequest& request) {
  Fields made(request.given);
  const Cases cases{.request = request};
  made.under(headings::kJob);
  made.add("input", &request.request.input,
           "Gradients: name,elements lines, CSV, model YAML, a model's name, or a description of "
           "one: config.json, *.safetensors, *.onnx, a listing of names and shapes")
      .with_default();
  made.under(headings::kBroadcast);
  made.add("job", &request.job,
           "Kind of plan: mean (gradients are averaged), or broadcast (one node's tensors go to "
           "all others: parameters at the start, weights to samplers)")
      .one_of({"mean", "broadcast"})
      .with_default();
  BroadcastRequest& broadcast = request.broadcast;
  made.under(headings::kBroadcast, cases.averages);
  made.add("bytes", &broadcast.bytes, "Size of the single tensor to broadcast, say 64MB");
  made.add("root", &broadcast.root, "Node that broadcasts (default: 0)").from(0, UINT32_MAX);
  made.add("chunks", &broadcast.chunks,
           "Number of chunks of a broadcast's largest tensor (default: the best of all counts)")
      .from(1, kMaxNodes);
  made.add("lossless", &broadcast.lossless,
           "Refuse algorithms that change the values of a broadcast");
  made.under(headings::kPlan);
  made.add("topology", &request.request.topology,
           fmt::format("Topology of gradients: {}, of which allreduce carries only raw, "
                       "half-precision and low-rank gradients; BEST tries all of them, with "
                       "all-reduce for raw gradients (search timeline), and is the default with a "
                       "`machine`. A broadcast takes {}, or BEST, its default",
                       casync::topology_names(casync::Operation::kMean),
                       casync::topology_names(casync::Operation::kBroadcast)))
      .with_default()
      .idle(cases.only_messages, cases.only_collectives);
  made.under(headings::kMachines);
  made.add("nnodes", &request.request.nodes, "Number of nodes (default: the cluster's, else 16)")
      .from(1, kMaxNodes);
  add(made, request.request.machines, "default: published with SeCoPa");
  Field& hosts = made.at("hosts");
  hosts.to = &request.hosts;
  hosts.help += "; several numbers, 1,2,4, compare the gain of each added host, without a plan";
  add(made, request.request.times, cases.no_computation);
  add_job(made, request.request.times, cases.no_computation);
  made.under(headings::kPlan);
  made.add("algorithm", &request.request.algorithms,
           "Algorithms that the plan may use, separated by commas (fp16 only if it is listed), or "
           "none; 'powersgd(rank=1|2|4)' tries several values of a parameter. All of them average "
           "gradients, except dgc with a momentum, which is an optimizer of its own (default: the "
           "`pilot`'s, or else those known not to slow learning: int8block,fp16, or int8block,bf16 "
           "for sharded schedules, and coarser ones as `coarsest` allows; for `search` secopa "
           "onebit,fp16; for a broadcast the lossless ones)");
  made.under(headings::kPlan, cases.broadcasts);
  made.add("pilot", &request.request.pilot,
           "File written by python -m hipress.pilot, with the steps that the job needs under each "
           "algorithm; the plan is then the one that reaches DDP's loss soonest")
      .file();
  made.add("write", &request.request.write,
           "Plan to write if the advice is not to compress: advised (the best one without "
           "compression), or fastest")
      .one_of({"advised", "fastest"})
      .under(headings::kOutput)
      .with_default()
      .idle(cases.no_search);
  made.add("coarsest", &request.request.coarsest,
           "Leave out algorithms that give up more than this one: " + describe_accuracy_order());
  made.add(
          "accuracy", &request.request.accuracy,
          "Coarseness of a program, in the order of `coarsest`: as coarse as an algorithm, "
          "tern.pse=terngrad, or from 1 (fp16) to 5 (dgc), the default; may be given several times")
      .repeated();
  made.under(headings::kSearch, cases.broadcasts);
  made.add("search", &request.request.search,
           "One of: " + search_names() +
               " (default: timeline with a profile or cluster, else secopa)")
      .idle(cases.no_search, cases.own_search);
  made.add("grouping", &request.request.grouping,
           "Use of bulk groups and batches: any, none, or auto (any, unless the output is a text, "
           "which cannot hold them)")
      .one_of({"any", "none", "auto"})
      .with_default()
      .idle(cases.no_search, cases.own_search);
  made.add("transfer_order", &request.request.transfer_order,
           "Order of waiting messages: ready or need (as in hipress-sim), or the better of the two "
           "(best). A given plan keeps its own order unless this option is set")
      .one_of({"ready", "need", "best"})
      .under(headings::kPlan)
      .with_default()
      .idle(cases.no_search, cases.own_search);
  made.under(headings::kMachines);
  made.add("network", &request.request.network,
           "Sharing of links by transfers: port (one message at a time) or fair (max-min)")
      .with_default()
      .idle(cases.only_collectives);
  made.under(headings::kSearch);
  made.add("budget", &request.request.budget_s,
           "Seconds for search timeline and the passes after it; more may find a better plan "
           "(default: 2)")
      .between(0, kMaxBudget_s)
      .idle(cases.no_search, cases.no_budget);
  made.add("evaluations", &request.request.evaluations,
           "Simulations for search timeline, instead of seconds; every machine then finds the same "
           "plan")
      .from(0, INT64_MAX)
      .idle(cases.no_search, cases.no_budget);
  made.under(headings::kSearch, cases.broadcasts);
  made.add("tolerance", &request.request.tolerance,
           "Share by which an iteration may be longer in exchange for less compression")
      .between(0, kMaxTolerance)
      .with_default();
  made.add("seed", &request.request.seed, "Seed of the search's random moves")
      .from(0)
      .with_default()
      .idle(cases.no_search, cases.own_search);
  made.under(headings::kSearch);
  made.add("jobs", &request.request.jobs,
           "Number of simulating threads (default: one per core, at most 4)")
      .from(1, kMaxJobs);
  made.under(headings::kPlan, cases.broadcasts);
  made.add("schedule", &request.schedules,
           "Schedule of the synchronisation: " + describe_schedules() +
               ". Several schedules are compared, and so are several values of a parameter with | "
               "between them; BEST compares ddp, fsdp and hsdp (default: ddp)")
      .repeated();
  made.add("wrap", &request.wraps, describe_wrap() + "; several are compared")
      .repeated()
      .not_for(cases.no_layers);
  made.add("shards_by", &request.shards_by,
           "Carrier of shards, for sharded schedules and their baselines: a library's collectives "
           "(library), or messages between nodes, around a ring (ring) or straight to their owners "
           "(direct) (default: library)")
      .not_for(cases.no_shards);
  made.add("gpu_memory", &request.gpu_memory,
           "Memory of each GPU, such as 80GB; schedules whose parameters, gradients and optimizer "
           "state need more are not chosen (default: no limit; several `hosts`: the machine's)")
      .under(headings::kMachines);
  made.add("activation_memory", &request.activation_memory,
           "Part of `gpu_memory` that activations take, such as 20GB (default: the model's value)")
      .under(headings::kMachines)
      .not_for(cases.no_gpu_memory);
  made.add("today", &request.today,
           "Baseline that the job runs now, such as ddp_fp16 or fsdp2, to which the verdict "
           "compares the plan (default: ddp; for sharded schedules fsdp2_mixed, or fsdp2 for a "
           "model in half precision)")
      .under(headings::kJob)
      .idle(cases.no_search);
  made.add("optimizer", &request.optimizer,
           "Optimizer whose state counts as memory: " + describe_optimizers())
      .under(headings::kJob)
      .with_default();
  made.under(headings::kQuestions, cases.broadcasts);
  made.add(
      "required_bandwidth", &request.required_bandwidth,
      "Find, instead of a plan, the least bandwidth at which computation takes each share of the "
      "time in `utilization`, for each `schedule` and `algorithm` (by default uncompressed)");
  made.add("utilization", &request.utilization,
           "Computation's shares of the time, for `required_bandwidth`, separated by commas; a "
           "larger share needs faster links (default: 50%,80%,90%,95%,99%)")
      .not_for(cases.no_bandwidths);
  made.add("break_even", &request.break_even,
           "Quantity to vary: find the values at which compression begins or ceases to pay, with "
           "an interval and the curve; plans are searched anew for every value: " +
               quantity_names())
      .not_for(cases.bandwidths, cases.given_plan);
  made.add("advise", &request.advise,
           "Add advice in words: the job's bottleneck, the best bucket_cap_mb of DDP or wrapping "
           "of FSDP, the effect of other machines and another schedule, and when not to compress")
      .not_for(cases.bandwidths, cases.given_plan);
  made.under(headings::kOutput);
  made.add("output", &request.output, "Plan to write: SeCoPa's text, or X.yaml with everything")
      .with_default()
      .file()
      .idle(cases.no_search);
  made.under(headings::kOutput, cases.broadcasts, cases.bandwidths);
  made.add("report", &request.report,
           "Page to write, such as report.html: verdict, predicted timeline and plan in one file "
           "to share, which a browser opens without a network (default: none)")
      .file();
  made.under(headings::kOutput);  // a page that cannot be made is left out
  made.add("page", &request.page, "Put the page of `report` into the result, as `page`");
  add(made, request.request.trust);
  add(made, request.request.analysis, cases);
  refuse_beside_hosts(made, cases);
  return made;
}

}  // namespace hipress::requests
