#include "tools/plan/options.hpp"

#include <fmt/format.h>

#include "casync/strategy.hpp"
#include "tools/options/shared.hpp"
#include "tools/validators.hpp"

namespace hipress::planner {
namespace {

void declare(CLI::App& app, AnalysisOptions& options, bool& list_passes) {
  const char* looking = "Looking at a plan";
  app.add_flag("--explain", options.explain,
               "Say of every gradient why it is decided so, what the next best option would cost, "
               "and what memory the plan takes")
      ->group(looking);
  app.add_option("--compare", options.compare,
                 "Lay the plan beside this one (a file, or none, all, fp16 …): times, bytes, and "
                 "what each difference is worth alone")
      ->group(looking);
  app.add_option("--plan", options.plan,
                 "Explain or compare this plan (a file or a name) instead of searching one; "
                 "nothing is written")
      ->group(looking);
  const char* robust = "Planning for what is not as expected";
  app.add_flag("--robust", options.robust,
               "Choose the plan with the best 90th percentile of the iteration time, under "
               "--jitter and --bandwidth-uncertainty")
      ->group(robust);
  app.add_option("--jitter", options.jitter,
                 "Factor that each task's time is drawn with: lognormal:S, uniform:W, samples:FILE "
                 "(as in hipress-sim)")
      ->group(robust);
  app.add_option("--bandwidth-uncertainty", options.bandwidth_uncertainty,
                 "0.2 for links with 80 to 120 % of their bandwidth")
      ->check(tools::number_from(0, kMaxUncertainty))
      ->group(robust);
  app.add_option("--replicas", options.replicas, "Draws that plans are compared on (default 100)")
      ->check(tools::count_from(1, kMaxReplicas))
      ->group(robust);
  const char* passes = "Passes, which polish the plan after search timeline";
  app.add_option("--disable-pass", options.disabled_passes, "Passes to leave out, with commas")
      ->group(passes);
  app.add_flag("--list-passes", list_passes, "Say which passes there are, and end")->group(passes);
}

}  // namespace

void declare_options(CLI::App& app, Options& options) {
  app.add_option("--input", options.request.input,
                 "Gradients: name,elements lines, CSV, model YAML or a shipped model")
      ->each([&](const std::string&) { options.input_given = true; })
      ->capture_default_str();
  app.add_option("--job", options.job,
                 "What is planned: mean (gradients are averaged), or broadcast (one node's tensors "
                 "go to all others: parameters at the start, weights to samplers)")
      ->check(CLI::IsMember({"mean", "broadcast"}))
      ->capture_default_str();
  BroadcastOptions& broadcast = options.broadcast;
  app.add_option("--bytes", broadcast.bytes, "Broadcast one tensor of so many, say 64MB");
  app.add_option("--dtype", broadcast.dtype,
                 "Of --bytes: float32 (the default), float16 or bfloat16");
  app.add_option("--root", broadcast.root, "Node that broadcasts (default 0)")
      ->check(tools::count_from(0, UINT32_MAX));
  app.add_option("--chunks", broadcast.chunks,
                 "Chunks of the largest tensor of a broadcast (default: the best of all counts)")
      ->check(tools::count_from(1, kMaxNodes));
  app.add_flag("--lossless", broadcast.lossless, "Refuse algorithms that change what is broadcast");
  app.add_option(
         "--topology", options.request.topology,
         fmt::format(
             "One of {} (allreduce: nothing compressed but by low rank), or BEST: all of them, and "
             "all-reduce for what others do not compress (search timeline); of a broadcast {} "
             "(which encodes anew on every node, for comparison), or BEST, the default",
             casync::strategy_names(casync::Operation::kMean),
             casync::strategy_names(casync::Operation::kBroadcast)))
      ->each([&](const std::string&) { options.request.topology_given = true; })
      ->capture_default_str();
  app.add_option("--nnodes", options.request.nodes,
                 "Number of nodes (default: the cluster's, else 16)")
      ->check(tools::count_from(1, kMaxNodes));
  tools::declare(app, options.request.machines, "default: published with SeCoPa");
  tools::declare(app, options.request.times);
  app.add_option(
         "--algorithm", options.request.algorithms,
         "Algorithms that the plan may use, separated by commas (fp16 only if it is "
         "listed), or none; 'powersgd(rank=1|2|4)' for one with several values. All average "
         "gradients but dgc with a momentum, which is an optimizer of its own. Default of a "
         "broadcast: those that lose nothing")
      ->each([&](const std::string&) { options.algorithms_given = true; })
      ->capture_default_str();
  app.add_option("--write", options.request.write,
                 "What is written where compressing is not advised: advised (the best plan without "
                 "compression), or fastest")
      ->check(CLI::IsMember({"advised", "fastest"}))
      ->capture_default_str();
  app.add_option(
      "--coarsest", options.request.coarsest,
      "Leave out algorithms that give up more than this one: " + describe_accuracy_order());
  app.add_option(
         "--accuracy", options.request.accuracy,
         "Place of a program in that order: tern.pse=terngrad, or 1 (fp16) to 4 (default: 4, as "
         "coarse as dgc); may be given several times")
      ->allow_extra_args(false);
  app.add_option(
      "--search", options.request.search,
      "One of: " + search_names() + " (default: timeline with a profile or cluster, else secopa)");
  app.add_option("--grouping", options.request.grouping,
                 "Whether to search bulk groups and batches too: any, none, or auto (any if the "
                 "output is X.yaml, which can say them)")
      ->check(CLI::IsMember({"any", "none", "auto"}))
      ->capture_default_str();
  app.add_option(
         "--transfer-order", options.request.transfer_order,
         "Which waiting message goes first: ready, need (as in hipress-sim), or the best; of plans "
         "that are given, else as they say")
      ->check(CLI::IsMember({"ready", "need", "best"}))
      ->each([&](const std::string&) { options.request.transfer_order_given = true; })
      ->capture_default_str();
  app.add_option("--network", options.request.network,
                 "port (one message at a time) or fair (max-min)")
      ->capture_default_str();
  app.add_option("--budget", options.request.budget_s,
                 "Seconds for search timeline, and the passes after it (default 2)")
      ->check(tools::number_from(0, kMaxBudget_s));
  app.add_option("--evaluations", options.request.evaluations,
                 "Simulations for search timeline, instead of --budget")
      ->check(tools::count_from(0, INT64_MAX));
  app.add_option("--tolerance", options.request.tolerance,
                 "How much longer an iteration may be, relatively, for compressing less")
      ->check(tools::number_from(0, kMaxTolerance))
      ->capture_default_str();
  app.add_option("--seed", options.request.seed, "Of the search's random moves")
      ->check(tools::count_from(0))
      ->capture_default_str();
  app.add_option("--jobs", options.request.jobs,
                 "Threads that simulate (default: one per core, at most 4)")
      ->check(tools::count_from(1, kMaxJobs));
  app.add_option("--output", options.output,
                 "Plan to write: SeCoPa's text, or X.yaml with everything")
      ->capture_default_str();
  app.add_flag(
      "--baselines", options.baselines,
      "Print the times of the plan and its baselines (implied by --profile, --cluster, X.yaml)");
  tools::declare(app, options.request.trust);
  declare(app, options.request.analysis, options.list_passes);
  app.add_flag("--json", options.json, "Print one JSON object instead of the report");
}

}  // namespace hipress::planner
