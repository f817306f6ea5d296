#include <fmt/format.h>

#include <functional>

#include "casync/topology.hpp"
#include "costs/description.hpp"
#include "planner/baselines/named_plans.hpp"
#include "requests/effect.hpp"
#include "requests/headings.hpp"
#include "requests/shared_fields.hpp"
#include "sim/jitter.hpp"

namespace hipress::requests {

namespace {

/// The case that an effect tells of, once there is one.
template <class Of>
Case told(Effect* effect, Of of) {
  return [=] { return effect != nullptr ? of(*effect) : std::string(); };
}

/// The only factor of the jitter; none: it has several, or there is no jitter.
std::optional<double> only_factor(const SimulateRequest& request) {
  if (request.jitter.empty()) return std::nullopt;
  return sim::Jitter::parse(request.jitter).constant();
}

}  // namespace

Fields fields(SimulateRequest& request, Effect* effect) {
  Fields made(request.given);
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
      .from(1)
      .idle(when([&request] { return !planner::is_searched(request.plan); },
                 "`plan` is none that is searched for"));
  made.add("topology", &request.topology,
           fmt::format("One of {}, BEST for a plan that is made, or of a broadcast {} (default: "
                       "what a plan YAML says, else ps)",
                       casync::topology_names(casync::Operation::kMean),
                       casync::topology_names(casync::Operation::kBroadcast)))
      .idle(told(effect, std::mem_fn(&Effect::of_topology)));
  made.under(headings::kMachines);
  made.add("nnodes", &request.nodes,
           "Number of nodes (default: the cluster's, else what a plan YAML says, else 16)")
      .from(1, 1u << 20);
  made.under(headings::kPlan);
  made.add("algorithm", &request.algorithm,
           "Codec of plan entries that are compressed but name none")
      .with_default()
      .idle(told(effect, std::mem_fn(&Effect::of_algorithm)));
  add(made, request.machines,
      fmt::format("default: {}, published for V100s", costs::kDefaultProfile),
      told(effect, std::mem_fn(&Effect::of_profile)));
  add(made, request.times);
  add_job(made, request.times);
  made.under(headings::kMachines);
  made.add("network", &request.network,
           "How transfers share links: port (one message at a time) or fair (max-min)")
      .with_default()
      .idle(told(effect, std::mem_fn(&Effect::of_network)));
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
      .idle(told(effect, std::mem_fn(&Effect::of_transfer_order)));
  made.under(headings::kQuestions);
  made.add("jitter", &request.jitter,
           "Distribution of the factor by which each task's time varies: lognormal:S, uniform:W, "
           "samples:FILE")
      .idle(when([&request] { return only_factor(request) == 1.0; }, "all its factors are 1"));
  made.add("seed", &request.seed, "Seed of the jitter's draws")
      .from(0)
      .with_default()
      .idle(
          when([&request] { return request.jitter.empty(); }, "without `jitter` nothing is drawn"),
          when([&request] { return only_factor(request).has_value(); },
               "all factors of the jitter are the same"));
  made.add("replicas", &request.replicas,
           "Simulate so many draws of the jitter, and print the percentiles")
      .with_default()
      .from(1, 1'000'000);
  made.under(headings::kRun);
  made.add("jobs", &request.jobs, "Replicas at a time (default: one per core)")
      .from(1, 4096)
      .idle(when([&request] { return request.replicas == 1; }, "there is one replica"));
  made.under(headings::kOutput);
  made.add("trace", &request.trace, "Write the timeline as Chrome/Perfetto JSON").file();
  made.add("export_chakra", &request.chakra,
           "Write the simulated graph as Chakra execution traces, one per node, into a folder")
      .file();
  add(made, request.plan_options, [effect](std::string_view name) {
    return effect != nullptr ? effect->of_option(name) : std::string();
  });
  add(made, request.trust);
  made.add("schedule", &request.schedule,
           "When gradients are synchronised: " + describe_schedules() +
               " (default: what a plan YAML says, else ddp)");
  made.add("wrap", &request.wrap, describe_wrap()).idle(told(effect, [](const Effect& of) {
    return std::string(
        of.scenario.plan.schedule == casync::Schedule() ? "schedule ddp has no layers" : "");
  }));
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
