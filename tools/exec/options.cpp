#include "tools/exec/options.hpp"

#include <fmt/format.h>

#include "casync/strategy.hpp"
#include "requests/shared_fields.hpp"
#include "tools/options/shared.hpp"
#include "tools/validators.hpp"

namespace hipress::replay {

void declare(CLI::App& app, CommandLine& line) {
  app.add_option(
      "--input", line.input,
      "Gradients: name,elements lines, CSV, model YAML or a shipped model; not needed with "
      "the plan YAML of a broadcast");
  app.add_option("--plan", line.plan,
                 "Plan file, none, all, an algorithm's name, threshold[:ELEMENTS], or a baseline's "
                 "of hipress-plan: ddp, none_grouped …")
      ->required();
  app.add_option("--topology", line.topology,
                 fmt::format("One of {}, or of a broadcast {} (default: what a plan YAML says, "
                             "else ps)",
                             casync::strategy_names(casync::Operation::kMean),
                             casync::strategy_names(casync::Operation::kBroadcast)))
      ->each([&](const std::string&) { line.topology_given = true; });
  app.add_option("--nnodes", line.nnodes,
                 "Ranks (default: the launcher's, else what a plan YAML says, else the cluster's)")
      ->check(tools::count_from(1, 1024));
  app.add_option("--algorithm", line.algorithm,
                 "Codec of plan entries that are compressed but name none")
      ->capture_default_str();
  tools::declare(app, line.plan_options);
  tools::declare(app, line.trust);
  app.add_option("--device", line.device, "Where gradients lie and codecs run: cpu, or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--iterations", line.replay.iterations,
                 "Measured iterations; more: a steadier median")
      ->check(tools::count_from(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--warmup", line.replay.warmup,
                 "Iterations before them, verified but not reported")
      ->check(tools::count_from(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--schedule", line.schedule,
                 "When gradients are synchronised: " + requests::describe_schedules() +
                     " (default: what a plan YAML says, else ddp). An iteration is then a period, "
                     "whose steps are computed by a timer");
  app.add_option("--backward", line.backward,
                 "What produces gradients: a timer (idle) or a busy core (spin)")
      ->check(CLI::IsMember({"idle", "spin"}))
      ->capture_default_str();
  tools::declare(app, line.machines, "default: none, and nothing is predicted");
  app.add_flag("--reprobe", line.reprobe,
               "Also predict by what the machine's probes reach now, where it is not as fast as "
               "when it was profiled");
  app.add_option("--again", line.again,
                 "Replay again, so many times at most, where probes before and after say that the "
                 "machine's speed changed meanwhile")
      ->check(tools::count_from(0, 1000))
      ->capture_default_str();
  tools::declare(app, line.times);
  app.add_option(
         "--network", line.network,
         "How predicted transfers share links: port (one message at a time) or fair (max-min)")
      ->capture_default_str();
  app.add_option("--transport", line.transport,
                 "What moves messages: " + transport::describe_transports() +
                     "; nccl (between GPUs; its ranks meet over " +
                     std::string(transport::kDefaultTransport) +
                     "). With --device cuda, all others go through pinned host memory")
      ->capture_default_str();
  tools::declare(app, line.job,
                 {.rendezvous = "Where the processes of a job meet: file:///shared/folder, "
                                "redis://host:port or, with TLS, rediss://host:port",
                  .interface = "Network interface or address to use (default: loopback)"});
  app.add_option("--timeout", line.replay.timeout_s,
                 "Seconds without progress after which the job ends. If given, it also limits how "
                 "long the C++ compiler may take for a program (x.pse), which is else 120 seconds")
      ->each([&](const std::string&) { line.timeout_given = true; })
      ->check(tools::number_from(transport::kMinTimeout_s, transport::kMaxTimeout_s))
      ->capture_default_str();
  app.add_option("--seed", line.replay.seed, "Seed of made-up gradients and random draws")
      ->check(tools::count_from(0))
      ->capture_default_str();
  app.add_option("--gradients", line.gradients,
                 "Folder with the gradients of all ranks, the same in every iteration, instead of "
                 "made-up ones: rank{r}/{index}.f32 has those of rank r, index from 0 in the order "
                 "of --input, as raw little-endian fp32 whatever the model's dtype. Each rank "
                 "verifies a part of all ranks' results, so all must be able to read the whole "
                 "folder; give processes a shared one")
      ->check(tools::file_name());
  app.add_option("--means", line.replay.means,
                 "Folder to write what each rank ends with after the last iteration, in files as "
                 "--gradients has them. Is made if it is missing, and refused if it holds a file")
      ->check(tools::file_name());
  app.add_option(
         "--load-state", line.replay.load_state,
         "Folder with what the encoders of all ranks keep between iterations, to begin with: "
         "rank{r}.state, as --save-state writes it. For plans that compress in stages alone "
         "(powersgd, acpsgd, rsketch), since only these verify from a state on")
      ->check(tools::file_name());
  app.add_option("--save-state", line.replay.save_state,
                 "Folder to write what the encoders keep after the last iteration: residuals and "
                 "factors. Is made if it is missing; files in it are replaced")
      ->check(tools::file_name());
  app.add_option("--trace", line.trace, "Write the timelines as Chrome/Perfetto JSON")
      ->check(tools::file_name());
  app.add_flag("--json", line.json, "Print one JSON object instead of the report");
  app.add_flag("--verbose", line.verbose, "Log every iteration");
}

}  // namespace hipress::replay
