#include <fmt/format.h>

#include "casync/topology.hpp"
#include "planner/advice/request.hpp"
#include "requests/headings.hpp"
#include "requests/hooks.hpp"
#include "requests/replay_automatic.hpp"
#include "requests/replay_request.hpp"
#include "requests/shared_fields.hpp"

namespace hipress::requests {
namespace {

void add_files(Fields& made, ReplayRequest& request) {
  made.under(headings::kOutput);
  made.add("trace", &request.trace, "Write the timelines as Chrome/Perfetto JSON").file();
  made.add("means", &request.replay.means,
           "Folder to write each rank's values to after the last iteration, in the file format of "
           "`gradients`. It is made if missing, and refused if it holds a file")
      .file();
  made.add("save_state", &request.replay.save_state,
           "Folder to write the encoders' states to after the last iteration: residuals and "
           "factors. It is made if missing; files in it are replaced")
      .file();
}

void add_run(Fields& made, ReplayRequest& request) {
  made.under(headings::kRun);
  made.add("iterations", &request.replay.iterations,
           "Number of measured iterations; a larger number gives a steadier median")
      .from(1, 1'000'000)
      .with_default();
  made.add("warmup", &request.replay.warmup,
           "Number of warm-up iterations, verified but not reported")
      .from(0, 1'000'000)
      .with_default();
  made.add("backward", &request.backward,
           "Producer of gradients: a timer (idle) or a busy core (spin)")
      .one_of({"idle", "spin"})
      .with_default();
  made.add("seed", &request.replay.seed, "Seed of made-up gradients and random draws")
      .from(0)
      .with_default();
  made.add("again", &request.again,
           "Largest number of repetitions; the replay is repeated if probes before and after it "
           "show that the machine's speed changed")
      .from(0, 1000)
      .with_default();
  made.add("timeout", &request.replay.timeout_s,
           "Seconds without progress after which the job ends. If given, it also limits the C++ "
           "compiler's time for a program (x.pse), which is otherwise 120 seconds")
      .between(transport::kMinTimeout_s, transport::kMaxTimeout_s)
      .with_default();
  made.add("device", &request.device, "Device of gradients and codecs: cpu, or cuda")
      .one_of({"cpu", "cuda"})
      .with_default();
  made.add("transport", &request.transport,
           "Transport of messages: " + transport::describe_transports() +
               "; nccl (between GPUs; its ranks meet over " +
               std::string(transport::kDefaultTransport) +
               "). With `device` cuda, all others go through pinned host memory")
      .with_default();
  add(made, request.ranks, request.transport,
      {.rendezvous = "Rendezvous of a job's processes: file:///shared/folder, redis://host:port "
                     "or, with TLS, rediss://host:port",
       .interface = "Network interface or address to use (default: loopback)"});
}

/// Refuses fields about a given plan, given machines and files, in jobs that choose the plan.
void refuse_beside_auto(Fields& made, const ReplayRequest& request) {
  const Case chooses = when([&request] { return request.automatic; },
                            "has no meaning beside `auto`, which chooses the plan, and measures "
                            "the machines: leave one of the two out");
  for (const char* const name :
       {"plan",       "load_state",      "schedule",      "bulk_threshold", "bulk_wait",
        "bulk_limit", "batch_threshold", "batch_wait",    "batch_limit",    "density",
        "shards_by",  "raw_allreduce",   "no_bulk",       "no_pipelining",  "no_selection",
        "trust_plan", "machine",         "hosts",         "gpus",           "library",
        "cluster",    "bandwidth",       "latency",       "overhead",       "gpus_per_node",
        "reprobe",    "gpu_bandwidth",   "scale_kernels", "assume_cost",    "again",
        "trace",      "means",           "save_state"}) {
    made.at(name).not_for(chooses);
  }
  made.at("device").not_for(
      when([&request] { return request.automatic && request.device != "cpu"; },
           "cuda has no meaning beside `auto`, which measures kernels of CPUs: take cpu"));
}

}  // namespace

Fields fields(ReplayRequest& request) {
  Fields made(request.given);
  made.under(headings::kJob);
  made.add("input", &request.input,
           "Gradients: name,elements lines, CSV, model YAML or a shipped model; not needed with "
           "the plan YAML of a broadcast");
  add(made, request.times);
  made.add("gradients", &request.gradients,
           "Folder with the gradients of all ranks, the same in every iteration, instead of "
           "made-up ones: rank{r}/{index}.f32 holds those of rank r, index from 0 in the order of "
           "`input`, as raw little-endian fp32 regardless of the model's dtype. Each rank verifies "
           "a part of all ranks' results, so all must be able to read the whole folder; give "
           "processes a shared one")
      .file();
  made.add("load_state", &request.replay.load_state,
           "Folder with the encoders' initial states of all ranks: rank{r}.state, as written by "
           "`save_state`. Only for plans that compress in stages alone (powersgd, acpsgd, "
           "rsketch), since only these verify from a state on")
      .file();
  made.under(headings::kPlan);
  made.add("plan", &request.plan,
           "Plan file, none, all, an algorithm's name, threshold[:ELEMENTS], or a baseline's "
           "of hipress-plan: ddp, none_grouped …; required without `auto`");
  made.add("auto", &request.automatic,
           "Choose the plan here: measure the links, plan, replay the plan and the fastest one "
           "without compression in turns, and tell what was predicted, measured and would be "
           "chosen. `algorithm` lists what the plan may use (default: " +
               std::string(planner::kSafe) +
               "), `topology` limits it, and `profile` gives the costs of kernels (default: those "
               "of this machine, measured once and kept in the cache folder). Without `input`, the "
               "gradients are those of " +
               std::string(kUsualInput));
  made.add(
      "topology", &request.topology,
      fmt::format(
          "Topology of gradients: {}, or of a broadcast {} (default: the plan YAML's, else ps)",
          casync::topology_names(casync::Operation::kMean),
          casync::topology_names(casync::Operation::kBroadcast)));
  made.add("algorithm", &request.algorithm, "Codec of compressed plan entries that name none")
      .with_default();
  made.add("schedule", &request.schedule,
           "Schedule of the synchronisation: " + describe_schedules() +
               " (default: the plan YAML's, else ddp). An iteration is then a period, whose steps "
               "are computed by a timer");
  add(made, request.plan_options);
  add(made, request.trust);
  made.under(headings::kMachines);
  made.add("nnodes", &request.nnodes,
           "Number of ranks (default: the launcher's, else the plan YAML's, else the cluster's)")
      .from(1, 1024);
  add(made, request.machines, "default: none, without a prediction");
  made.add(
          "network", &request.network,
          "Sharing of links by predicted transfers: port (one message at a time) or fair (max-min)")
      .with_default();
  made.under(headings::kQuestions);
  made.add("reprobe", &request.reprobe,
           "Add a prediction for the speeds that the machine's probes reach now, if it is slower "
           "than when it was profiled");
  add_run(made, request);
  add_files(made, request);
  refuse_beside_auto(made, request);
  return made;
}

void refuse_unfit(ReplayRequest request) {
  refuse_unfit(fields(request));
  if (request.automatic || request.given.contains("plan")) return;
  throw FieldError("plan", "`plan` is required; `auto` chooses one for the links here");
}

}  // namespace hipress::requests
