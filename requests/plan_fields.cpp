#include <fmt/format.h>

#include "casync/strategy.hpp"
#include "planner/advice/break_even_point.hpp"
#include "planner/schedules/state_memory.hpp"
#include "requests/plan_request.hpp"
#include "requests/shared_fields.hpp"

namespace hipress::requests {

using namespace planner;

namespace {

constexpr const char* kLooking = "Looking at a plan";

void add(Fields& made, AnalysisOptions& options) {
  made.add("explain", &options.explain,
           "Say of every gradient why it is decided so, what the next best option would cost, "
           "and what memory the plan takes")
      .under(kLooking);
  made.add("compare", &options.compare,
           "Lay the plan beside this one (a file, or none, all, fp16 …): times, bytes, and "
           "what each difference is worth alone")
      .under(kLooking);
  made.add("plan", &options.plan,
           "Explain or compare this plan (a file or a name) instead of searching one; "
           "nothing is written")
      .under(kLooking);
  const char* robust = "Planning for what is not as expected";
  made.add("robust", &options.robust,
           "Choose the plan with the best 90th percentile of the iteration time, under "
           "`jitter` and `bandwidth_uncertainty`")
      .under(robust);
  made.add("jitter", &options.jitter,
           "Factor that each task's time is drawn with: lognormal:S, uniform:W, samples:FILE "
           "(as in hipress-sim)")
      .under(robust);
  made.add("bandwidth_uncertainty", &options.bandwidth_uncertainty,
           "How uncertain the links' bandwidth is: 0.2 for 80 to 120 % of it")
      .between(0, kMaxUncertainty)
      .under(robust);
  made.add("replicas", &options.replicas,
           "Draws that plans are compared on; more: steadier percentiles (default: 100)")
      .from(1, kMaxReplicas)
      .under(robust);
  const char* passes = "Passes, which polish the plan after search timeline";
  made.add("disable_pass", &options.disabled_passes, "Passes to leave out, with commas")
      .under(passes);
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
  Fields made;
  made.add("input", &request.request.input,
           "Gradients: name,elements lines, CSV, model YAML or a shipped model")
      .on_given([&request](const std::string&) { request.input_given = true; })
      .with_default();
  made.add("job", &request.job,
           "What is planned: mean (gradients are averaged), or broadcast (one node's tensors "
           "go to all others: parameters at the start, weights to samplers)")
      .one_of({"mean", "broadcast"})
      .with_default();
  BroadcastRequest& broadcast = request.broadcast;
  made.add("bytes", &broadcast.bytes, "Broadcast one tensor of so many, say 64MB");
  made.add("dtype", &broadcast.dtype,
           "Type of `bytes`: float32, float16 or bfloat16 (default: float32)");
  made.add("root", &broadcast.root, "Node that broadcasts (default: 0)").from(0, UINT32_MAX);
  made.add("chunks", &broadcast.chunks,
           "Chunks of the largest tensor of a broadcast (default: the best of all counts)")
      .from(1, kMaxNodes);
  made.add("lossless", &broadcast.lossless, "Refuse algorithms that change what is broadcast");
  made.add("topology", &request.request.topology,
           fmt::format(
               "One of {} (allreduce: nothing compressed but by low rank), or BEST: all of them, "
               "and "
               "all-reduce for what others do not compress (search timeline); of a broadcast {} "
               "(which encodes anew on every node, for comparison), or BEST, the default",
               casync::strategy_names(casync::Operation::kMean),
               casync::strategy_names(casync::Operation::kBroadcast)))
      .on_given([&request](const std::string&) { request.request.topology_given = true; })
      .with_default();
  made.add("nnodes", &request.request.nodes, "Number of nodes (default: the cluster's, else 16)")
      .from(1, kMaxNodes);
  add(made, request.request.machines, "default: published with SeCoPa");
  add(made, request.request.times);
  made.add("algorithm", &request.request.algorithms,
           "Algorithms that the plan may use, separated by commas (fp16 only if it is "
           "listed), or none; 'powersgd(rank=1|2|4)' for one with several values. All average "
           "gradients but dgc with a momentum, which is an optimizer of its own. Default of a "
           "broadcast: those that lose nothing")
      .on_given([&request](const std::string&) { request.algorithms_given = true; })
      .with_default();
  made.add("write", &request.request.write,
           "What is written where compressing is not advised: advised (the best plan without "
           "compression), or fastest")
      .one_of({"advised", "fastest"})
      .with_default();
  made.add("coarsest", &request.request.coarsest,
           "Leave out algorithms that give up more than this one: " + describe_accuracy_order());
  made.add("accuracy", &request.request.accuracy,
           "Place of a program in that order: tern.pse=terngrad, or 1 (fp16) to 4 (default: 4, as "
           "coarse as dgc); may be given several times")
      .repeated();
  made.add(
      "search", &request.request.search,
      "One of: " + search_names() + " (default: timeline with a profile or cluster, else secopa)");
  made.add("grouping", &request.request.grouping,
           "Whether to search bulk groups and batches too: any, none, or auto (any if the "
           "output is X.yaml, which can say them)")
      .one_of({"any", "none", "auto"})
      .with_default();
  made.add("transfer_order", &request.request.transfer_order,
           "Which waiting message goes first: ready, need (as in hipress-sim), or the best; of "
           "plans "
           "that are given, else as they say")
      .one_of({"ready", "need", "best"})
      .on_given([&request](const std::string&) { request.request.transfer_order_given = true; })
      .with_default();
  made.add("network", &request.request.network,
           "How transfers share links: port (one message at a time) or fair (max-min)")
      .with_default();
  made.add("budget", &request.request.budget_s,
           "Seconds for search timeline and the passes after it; more: perhaps a better plan "
           "(default: 2)")
      .between(0, kMaxBudget_s);
  made.add("evaluations", &request.request.evaluations,
           "Simulations for search timeline, in place of seconds; the same plan on every machine")
      .from(0, INT64_MAX);
  made.add("tolerance", &request.request.tolerance,
           "How much longer an iteration may be, relatively, for compressing less")
      .between(0, kMaxTolerance)
      .with_default();
  made.add("seed", &request.request.seed, "Seed of the search's random moves")
      .from(0)
      .with_default();
  made.add("jobs", &request.request.jobs,
           "Threads that simulate (default: one per core, at most 4)")
      .from(1, kMaxJobs);
  made.add("schedule", &request.schedules,
           "When gradients are synchronised: " + describe_schedules() +
               "; several are compared, as are several values of a parameter with | between them; "
               "BEST compares ddp, fsdp and hsdp (default: ddp)")
      .repeated();
  made.add("wrap", &request.wraps, describe_wrap() + "; several are compared").repeated();
  made.add(
      "shards_by", &request.shards_by,
      "What gathers and reduces shards of sharded schedules, of the plans and of what they are "
      "compared with: a library's collectives (library), or messages between nodes, in a ring "
      "(ring) or each to where it belongs (direct) (default: library)");
  made.add("gpu_memory", &request.gpu_memory,
           "Memory of each GPU, such as 80GB; schedules whose parameters, gradients and optimizer "
           "state take more are not chosen (default: whatever is needed)");
  made.add("optimizer", &request.optimizer,
           "Optimizer whose state is counted as memory: " + describe_optimizers())
      .with_default();
  made.add("required_bandwidth", &request.required_bandwidth,
           "Find no plan, but the least bandwidth of links at which computation has each share of "
           "`utilization`, for each `schedule` and `algorithm` (default: none)");
  made.add(
      "utilization", &request.utilization,
      "Shares of the time that computation has, for `required_bandwidth`, with commas; larger: "
      "faster links (default: 50%,80%,90%,95%,99%)");
  made.add("break_even", &request.break_even,
           "Also say where compressing begins or ceases to pay, with its interval and the curve, "
           "if this were different, with plans made anew: " +
               quantity_names())
      .under(kLooking);
  made.add("advise", &request.advise,
           "Also say in words what bounds the job, what other machines and another schedule would "
           "bring, and when not to compress")
      .under(kLooking);
  made.add("output", &request.output, "Plan to write: SeCoPa's text, or X.yaml with everything")
      .with_default()
      .file();
  made.add("report", &request.report,
           "Page to write, such as report.html: verdict, predicted timeline and plan in one file "
           "that a browser opens without a network, to be read by others (default: none)")
      .on_given([&request](const std::string&) { request.request.analysis.report = true; })
      .file();
  made.add("page", &request.page, "Put the page of `report` into the result, as `page`");
  add(made, request.request.trust);
  add(made, request.request.analysis);
  return made;
}

}  // namespace hipress::requests
