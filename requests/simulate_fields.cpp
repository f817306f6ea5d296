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

/// Case that holds if `of(*effect)` returns a reason; not before a simulation (null `effect`).
template <class Of>
Case told(Effect* effect, Of of) {
  return [=] { return effect != nullptr ? of(*effect) : std::string(); };
}

/// Factor of the jitter if it has a single one; nullopt if it has several, or without jitter.
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
           "Number of plans that a search for `plan` simulates; a larger number takes longer and "
           "may find a better plan")
      .with_default()
      .from(1)
      .idle(when([&request] { return !planner::is_searched(request.plan); },
                 "`plan` does not name a plan that is searched for"));
  made.add("topology", &request.topology,
           fmt::format("Topology of gradients: {}, BEST for a plan that is made, or of a broadcast "
                       "{} (default: the plan YAML's, else ps)",
                       casync::topology_names(casync::Operation::kMean),
                       casync::topology_names(casync::Operation::kBroadcast)))
      .idle(told(effect, std::mem_fn(&Effect::of_topology)));
  made.under(headings::kMachines);
  made.add("nnodes", &request.nodes,
           "Number of nodes (default: the cluster's, else the plan YAML's, else 16)")
      .from(1, 1u << 20);
  made.under(headings::kPlan);
  made.add("algorithm", &request.algorithm, "Codec of compressed plan entries that name none")
      .with_default()
      .idle(told(effect, std::mem_fn(&Effect::of_algorithm)));
  add(made, request.machines,
      fmt::format("default: {}, published for V100s", costs::kDefaultProfile),
      told(effect, std::mem_fn(&Effect::of_profile)));
  add(made, request.times);
  add_job(made, request.times);
  made.under(headings::kMachines);
  made.add("network", &request.network,
           "Sharing of links by transfers: port (one message at a time) or fair (max-min)")
      .with_default()
      .idle(told(effect, std::mem_fn(&Effect::of_network)));
  made.under(headings::kRun);
  made.add("fold", &request.fold,
           "Simulation of one node for all that behave alike: auto (if that is exact), never, or "
           "always (with bounds if slices are unequal)")
      .with_default();
  made.add("transfer_order", &request.transfer_order,
           "Order of waiting messages: ready (first come, first served) or need (of the next "
           "forward pass) (default: the plan's, else ready)")
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
           "Number of draws of the jitter to simulate; their percentiles are printed")
      .with_default()
      .from(1, 1'000'000);
  made.under(headings::kRun);
  made.add("jobs", &request.jobs, "Number of replicas at a time (default: one per core)")
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
           "Schedule of the synchronisation: " + describe_schedules() +
               " (default: the plan YAML's, else ddp)");
  made.add("wrap", &request.wrap, describe_wrap()).idle(told(effect, [](const Effect& of) {
    return std::string(
        of.scenario.plan.schedule == casync::Schedule() ? "schedule ddp has no layers" : "");
  }));
  made.under(headings::kQuestions);
  made.add("steady", &request.steady,
           "Number of consecutive iterations (8) to simulate, without a barrier; their settled "
           "period is reported")
      .from(2, 1024)
      .alone_means("8");
  made.add("sensitivity", &request.sensitivity,
           "Simulate also with bandwidth, latency, codecs, compute … each 10 % better");
  made.add("explain_interval", &request.explains_interval,
           "Print the shares of kernels, links, computation and the simulator's own error in the "
           "interval");
  return made;
}

}  // namespace hipress::requests
