#include <fmt/format.h>

#include <algorithm>

#include "casync/topology.hpp"
#include "planner/advice/break_even_point.hpp"
#include "planner/problem/state_memory.hpp"
#include "requests/headings.hpp"
#include "requests/plan_request.hpp"
#include "requests/shared_fields.hpp"

namespace hipress::requests {

using namespace planner;

namespace {

/// The kinds of the schedules are known, and all of them shard, or none does.
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

/// The search for plans of averages in every step; null: they are not asked for.
const SearchRow* search_of(const PlanRequest& of) {
  const bool averages = std::ranges::find(of.kinds, JobKind::kAveraging) != of.kinds.end();
  return averages ? &find_search(of.request.search_name()) : nullptr;
}

/// The cases in which fields of a plan request do not count, with the reasons.
struct Cases {
  using Of = const PlanRequest&;
  Of request;
  Case in(bool (*holds)(Of), const char* why) const {
    return when([&of = request, holds] { return holds(of); }, why);
  }

  Case broadcasts = in([](Of of) { return of.job == "broadcast"; },
                       "is of plans that average gradients: leave it out, or take `job` mean");
  Case no_computation =
      in([](Of of) { return of.job == "broadcast"; },
         "is of no use, since a broadcast waits for no computation: leave it out");
  Case averages = in([](Of of) { return of.job != "broadcast"; },
                     "is for `job` broadcast: add that, or leave it out");
  Case bandwidths = in([](Of of) { return of.required_bandwidth; },
                       "is of a plan, and `required_bandwidth` finds none: leave one of them out");
  Case no_search =
      in([](Of of) { return of.required_bandwidth; }, "`required_bandwidth` searches no plan");
  Case given_plan = in([](Of of) { return !of.request.analysis.plan.empty(); },
                       "makes plans anew, and `plan` gives one: leave one of them out");
  Case not_robust = in([](Of of) { return !of.request.analysis.robust; }, "it is for `robust`");
  Case own_search = in([](Of of) { return !of.kinds.empty() && search_of(of) == nullptr; },
                       "plans of schedules have a search of their own");
  Case no_budget = [&of = request] {
    const SearchRow* const search = search_of(of);
    if (search == nullptr || search->has_budget || search->optimises) return std::string();
    return fmt::format("search {} does not iterate", search->name);
  };
  Case no_passes = in(
      [](Of of) {
        const SearchRow* const search = search_of(of);
        const bool searches = search != nullptr && of.request.analysis.plan.empty();
        return !of.kinds.empty() && !(searches && search->optimises);
      },
      "passes run after searches that optimise, and there is none");
  Case only_messages = in([](Of of) { return shards_only(of) && !shards_by_library(of); },
                          "shards go as `shards_by` says");
  Case only_collectives =
      in(shards_by_library, "shards go by a library's collectives, one at a time on each network");
  Case no_shards =
      in(shards_nothing,
         "is of sharded schedules, such as `schedule` fsdp: give one, or leave it out");
  Case no_layers =
      in([](Of of) { return of.schedules.empty() && of.request.analysis.plan.empty(); },
         "is of layers, which ddp has not: give `schedule`, such as fsdp, or leave it out");
  Case no_gpu_memory = in([](Of of) { return of.gpu_memory.empty(); },
                          "is of `gpu_memory`: give both, or leave it out");
  Case no_bandwidths = in([](Of of) { return !of.required_bandwidth; },
                          "is of `required_bandwidth`: give that too, or leave it out");
};

void add(Fields& made, AnalysisOptions& options, const Cases& cases) {
  made.under(headings::kQuestions, cases.broadcasts, cases.bandwidths);
  made.add("explain", &options.explain,
           "Say for every gradient why the plan treats it as it does, what the next best option "
           "would cost, and how much memory the plan takes");
  made.add("compare", &options.compare,
           "Compare the plan with this one (a file, or none, all, fp16 …): times, bytes, and what "
           "each difference alone is worth");
  made.add("plan", &options.plan,
           "Explain or compare this plan (a file or a name) instead of searching one; "
           "nothing is written");
  made.add("robust", &options.robust,
           "Choose the plan with the best 90th percentile of the iteration time, under "
           "`jitter` and `bandwidth_uncertainty`");
  made.add("jitter", &options.jitter,
           "Distribution of the factor by which each task's time varies: lognormal:S, uniform:W, "
           "samples:FILE (as in hipress-sim)")
      .idle(cases.not_robust);
  made.add("bandwidth_uncertainty", &options.bandwidth_uncertainty,
           "How uncertain the links' bandwidth is: 0.2 for 80 to 120 % of it")
      .between(0, kMaxUncertainty)
      .idle(cases.not_robust);
  made.add("replicas", &options.replicas,
           "Draws that plans are compared on; more: steadier percentiles (default: 100)")
      .from(1, kMaxReplicas)
      .idle(cases.not_robust);
  made.add("disable_pass", &options.disabled_passes,
           "Passes to leave out, which polish the plan after search timeline, separated by commas")
      .under(headings::kSearch)
      .idle(cases.no_passes);
}

/// "adamw (two moments in fp32), …".
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
           "Gradients: name,elements lines, CSV, model YAML or a shipped model")
      .with_default();
  made.under(headings::kBroadcast);
  made.add("job", &request.job,
           "What is planned: mean (gradients are averaged), or broadcast (one node's tensors "
           "go to all others: parameters at the start, weights to samplers)")
      .one_of({"mean", "broadcast"})
      .with_default();
  BroadcastRequest& broadcast = request.broadcast;
  made.under(headings::kBroadcast, cases.averages);
  made.add("bytes", &broadcast.bytes, "Size of the one tensor that is broadcast, say 64MB");
  made.add("root", &broadcast.root, "Node that broadcasts (default: 0)").from(0, UINT32_MAX);
  made.add("chunks", &broadcast.chunks,
           "Chunks of the largest tensor of a broadcast (default: the best of all counts)")
      .from(1, kMaxNodes);
  made.add("lossless", &broadcast.lossless, "Refuse algorithms that change what is broadcast");
  made.under(headings::kPlan);
  made.add("topology", &request.request.topology,
           fmt::format("How gradients travel: {}, of which allreduce carries only raw, "
                       "half-precision and low-rank gradients; BEST tries all of them, with "
                       "all-reduce for what stays raw (search timeline), and is the default with a "
                       "`machine`. A broadcast takes {}, "
                       "which encodes anew on every node, for comparison, or BEST, its default",
                       casync::topology_names(casync::Operation::kMean),
                       casync::topology_names(casync::Operation::kBroadcast)))
      .with_default()
      .idle(cases.only_messages, cases.only_collectives);
  made.under(headings::kMachines);
  made.add("nnodes", &request.request.nodes, "Number of nodes (default: the cluster's, else 16)")
      .from(1, kMaxNodes);
  add(made, request.request.machines, "default: published with SeCoPa");
  add(made, request.request.times, cases.no_computation);
  add_job(made, request.request.times, cases.no_computation);
  made.under(headings::kPlan);
  made.add("algorithm", &request.request.algorithms,
           "Algorithms that the plan may use, separated by commas (fp16 only if it is listed), or "
           "none; 'powersgd(rank=1|2|4)' tries several values of a parameter. All of them average "
           "gradients, except dgc with a momentum, which is an optimizer of its own (default: the "
           "`pilot`'s, else those that are known not to slow learning, int8block,fp16 "
           "(int8block,bf16 of "
           "sharded schedules), and coarser "
           "ones that `coarsest` asks for; of `search` secopa onebit,fp16; of a broadcast those "
           "that lose nothing)");
  made.under(headings::kPlan, cases.broadcasts);
  made.add("pilot", &request.request.pilot,
           "File of python -m hipress.pilot, which has measured how many more steps the job needs "
           "with each algorithm: the plan is then the one that reaches DDP's loss soonest")
      .file();
  made.add("write", &request.request.write,
           "Which plan is written when the advice is not to compress: advised (the best one "
           "without compression), or fastest")
      .one_of({"advised", "fastest"})
      .under(headings::kOutput)
      .with_default()
      .idle(cases.no_search);
  made.add("coarsest", &request.request.coarsest,
           "Leave out algorithms that give up more than this one: " + describe_accuracy_order());
  made.add(
          "accuracy", &request.request.accuracy,
          "How coarse a program is, in the order of `coarsest`: as coarse as an algorithm, "
          "tern.pse=terngrad, or from 1 (fp16) to 4 (dgc), the default; may be given several times")
      .repeated();
  made.under(headings::kSearch, cases.broadcasts);
  made.add("search", &request.request.search,
           "One of: " + search_names() +
               " (default: timeline with a profile or cluster, else secopa)")
      .idle(cases.no_search, cases.own_search);
  made.add("grouping", &request.request.grouping,
           "Whether the search also forms bulk groups and batches: any, none, or auto (any, unless "
           "the output is a text, which cannot hold them)")
      .one_of({"any", "none", "auto"})
      .with_default()
      .idle(cases.no_search, cases.own_search);
  made.add("transfer_order", &request.request.transfer_order,
           "Which waiting message goes first: ready or need (as in hipress-sim), or the better of "
           "the two (best). A given plan keeps its own order unless this option is set")
      .one_of({"ready", "need", "best"})
      .under(headings::kPlan)
      .with_default()
      .idle(cases.no_search, cases.own_search);
  made.under(headings::kMachines);
  made.add("network", &request.request.network,
           "How transfers share links: port (one message at a time) or fair (max-min)")
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
           "How much longer an iteration may take, as a share, in exchange for compressing less")
      .between(0, kMaxTolerance)
      .with_default();
  made.add("seed", &request.request.seed, "Seed of the search's random moves")
      .from(0)
      .with_default()
      .idle(cases.no_search, cases.own_search);
  made.under(headings::kSearch);
  made.add("jobs", &request.request.jobs,
           "Threads that simulate (default: one per core, at most 4)")
      .from(1, kMaxJobs);
  made.under(headings::kPlan, cases.broadcasts);
  made.add("schedule", &request.schedules,
           "When gradients are synchronised: " + describe_schedules() +
               ". Several schedules are compared, and so are several values of a parameter with | "
               "between them; BEST compares ddp, fsdp and hsdp (default: ddp)")
      .repeated();
  made.add("wrap", &request.wraps, describe_wrap() + "; several are compared")
      .repeated()
      .not_for(cases.no_layers);
  made.add("shards_by", &request.shards_by,
           "What carries the shards of sharded schedules and of their baselines: a library's "
           "collectives (library), or messages between nodes, around a ring (ring) or straight to "
           "their owners (direct) (default: library)")
      .not_for(cases.no_shards);
  made.add("gpu_memory", &request.gpu_memory,
           "Memory of each GPU, such as 80GB; schedules whose parameters, gradients and optimizer "
           "state take more are not chosen (default: whatever is needed)")
      .under(headings::kMachines);
  made.add("activation_memory", &request.activation_memory,
           "Of `gpu_memory`, what activations take, such as 20GB (default: what the model says)")
      .under(headings::kMachines)
      .not_for(cases.no_gpu_memory);
  made.add("today", &request.today,
           "What the job runs today, of which the verdict says what a plan saves: a baseline such "
           "as "
           "ddp_fp16 or fsdp2 (default: ddp, and of sharded schedules fsdp2_mixed, or fsdp2 of a "
           "model in half precision)")
      .under(headings::kJob)
      .idle(cases.no_search);
  made.add("optimizer", &request.optimizer,
           "Optimizer whose state is counted as memory: " + describe_optimizers())
      .under(headings::kJob)
      .with_default();
  made.under(headings::kQuestions, cases.broadcasts);
  made.add("required_bandwidth", &request.required_bandwidth,
           "Instead of a plan, find the least bandwidth at which computation takes each share of "
           "the "
           "time in `utilization`, for each `schedule` and `algorithm` (by default uncompressed)");
  made.add("utilization", &request.utilization,
           "Shares of the time that computation is to take, for `required_bandwidth`, separated by "
           "commas; a larger share needs faster links (default: 50%,80%,90%,95%,99%)")
      .not_for(cases.no_bandwidths);
  made.add("break_even", &request.break_even,
           "Also say at which value of this quantity compressing begins or ceases to pay, with an "
           "interval and the curve; plans are searched anew for every value: " +
               quantity_names())
      .not_for(cases.bandwidths, cases.given_plan);
  made.add("advise", &request.advise,
           "Also say in words what bounds the job, what other machines and another schedule would "
           "bring, and when not to compress")
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
  made.under(headings::kOutput);  // a page that does not exist is left out
  made.add("page", &request.page, "Put the page of `report` into the result, as `page`");
  add(made, request.request.trust);
  add(made, request.request.analysis, cases);
  return made;
}

}  // namespace hipress::requests
