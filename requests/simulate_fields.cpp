#include <fmt/format.h>

#include "casync/topology.hpp"
#include "costs/description.hpp"
#include "planner/baselines/named_plans.hpp"
#include "requests/headings.hpp"
#include "requests/shared_fields.hpp"
#include "requests/simulate.hpp"

namespace hipress::requests {

Fields fields(SimulateRequest& request) {
  Fields made;
  made.under(headings::kJob);
  made.add("input", &request.input,
           "Gradients: name,elements lines, CSV, model YAML or a shipped model; not needed "
           "with the plan YAML of a broadcast");
  made.under(headings::kPlan);
  made.add("plan", &request.plan,
           "Plan file, none, all, threshold[:ELEMENTS], an algorithm's name, or one that is made "
           "for "
           "these machines: " +
               planner::named_plans())
      .must_be_given();
  made.add("evaluations", &request.evaluations,
           "Plans that a search for `plan` simulates; more: a better plan, later")
      .with_default()
      .from(1);
  made.add("topology", &request.topology,
           fmt::format("One of {}, BEST for a plan that is made, or of a broadcast {} (default: "
                       "what a plan YAML says, else ps)",
                       casync::topology_names(casync::Operation::kMean),
                       casync::topology_names(casync::Operation::kBroadcast)))
      .on_given([&request](const std::string&) { request.given.topology = true; });
  made.under(headings::kMachines);
  made.add("nnodes", &request.nodes,
           "Number of nodes (default: the cluster's, else what a plan YAML says, else 16)")
      .from(1, 1u << 20);
  made.under(headings::kPlan);
  made.add("algorithm", &request.algorithm,
           "Codec of plan entries that are compressed but name none")
      .with_default()
      .on_given([&request](const std::string& name) { request.given.algorithm = name; });
  add(made, request.machines,
      fmt::format("default: {}, published for V100s", costs::kDefaultProfile));
  add(made, request.times);
  add_job(made, request.times);
  made.under(headings::kMachines);
  made.add("network", &request.network,
           "How transfers share links: port (one message at a time) or fair (max-min)")
      .with_default()
      .on_given([&request](const std::string&) { request.given.network = true; });
  made.under(headings::kRun);
  made.add("fold", &request.fold,
           "Simulate one node for all where they do the same: auto (where that is exact), "
           "never, or always (with bounds where slices are unequal)")
      .with_default();
  made.add(
          "transfer_order", &request.transfer_order,
          "Which waiting message goes first: ready (first come, first served) or need (of the next "
          "forward pass) (default: what the plan says, else ready)")
      .under(headings::kPlan)
      .on_given([&request](const std::string&) { request.given.transfer_order = true; });
  made.under(headings::kQuestions);
  made.add("jitter", &request.jitter,
           "Distribution of the factor by which each task's time varies: lognormal:S, uniform:W, "
           "samples:FILE");
  made.add("seed", &request.seed, "Seed of the jitter's draws")
      .from(0)
      .with_default()
      .on_given([&request](const std::string&) { request.given.seed = true; });
  made.add("replicas", &request.replicas,
           "Simulate so many draws of the jitter, and print the percentiles")
      .with_default()
      .from(1, 1'000'000);
  made.under(headings::kRun);
  made.add("jobs", &request.jobs, "Replicas at a time (default: one per core)")
      .from(1, 4096)
      .on_given([&request](const std::string&) { request.given.jobs = true; });
  made.under(headings::kOutput);
  made.add("trace", &request.trace, "Write the timeline as Chrome/Perfetto JSON").file();
  made.add("export_chakra", &request.chakra,
           "Write the simulated graph as Chakra execution traces, one per node, into a folder")
      .file();
  add(made, request.plan_options);
  add(made, request.trust);
  made.add("schedule", &request.schedule,
           "When gradients are synchronised: " + describe_schedules() +
               " (default: what a plan YAML says, else ddp)");
  made.add("wrap", &request.wrap, describe_wrap());
  made.under(headings::kQuestions);
  made.add("steady", &request.steady,
           "Simulate so many iterations (8) one after the other, without a barrier, and report the "
           "period that they settle to")
      .from(2, 1024)
      .alone_means("8");
  made.add("sensitivity", &request.sensitivity,
           "Also simulate with bandwidth, latency, codecs, compute … each 10 % better");
  made.add("explain_interval", &request.explains_interval,
           "Say how much of the interval is due to kernels, links, computation and the simulator's "
           "own error");
  return made;
}

}  // namespace hipress::requests
