#include "tools/profile/options.hpp"

#include <fmt/format.h>

#include "kernels/codec/algorithm_list.hpp"
#include "kernels/codec/codec.hpp"
#include "profiler/profiler.hpp"
#include "tools/validators.hpp"

namespace hipress::profiler {

void declare(CLI::App& app, CommandLine& line) {
  app.add_option("--device", line.device, "Where codecs run: cpu, or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--transport", line.transport,
                 "What links are measured of: " + transport::describe_transports() +
                     "; nccl (between GPUs). gloo's and nccl's all-gather, reduce-scatter and "
                     "all-to-all are measured, too")
      ->capture_default_str();
  app.add_option("--algorithm", line.algorithms,
                 "What to measure, separated by commas; staged ones at several ranks, whichever is "
                 "given (default: " +
                     kernels::algorithm_names() + ")");
  app.add_option(
         "--nnodes", line.nodes,
         "Ranks between which links are measured (default: the launcher's, else 4 that share "
         "this machine)")
      ->check(tools::count_from(1, 1024));
  app.add_option("--output", line.output, "Profile to write")->capture_default_str();
  app.add_option("--base", line.base,
                 "Profile of which but a part is measured anew (--anew); the rest holds here too");
  app.add_option(
         "--anew", line.anew,
         "What --base is measured anew for: links, for a network too slow to show what a transfer "
         "costs the CPU, "
         "or kernels, for a machine whose memory is not always as fast, or cores, what transfers "
         "cost these on links that are known, for such a machine, too (default: links)")
      ->check(CLI::IsMember({"links", "kernels", "cores"}));
  app.add_option("--sample", line.sample,
                 "File of fp32 numbers (one of your tensors, as it lies in memory): what messages "
                 "of algorithms come to whose length varies with the data; with --base and without "
                 "--anew, nothing else is measured")
      ->check(CLI::ExistingFile);
  tools::declare(
      app, line.job,
      {.rendezvous = "Where the processes of a job meet that a launcher started, to measure the "
                     "links between them: file:///shared/folder, redis://host:port or, with TLS, "
                     "rediss://host:port",
       .interface = "Network interface or address of this process in a job (default: loopback)"});
  app.add_option("--timeout", line.timeout_s, "Seconds without progress after which the job ends")
      ->check(tools::number_from(transport::kMinTimeout_s, transport::kMaxTimeout_s))
      ->capture_default_str();
  app.add_flag(
      "--quick", line.quick,
      "Fewer sizes and repetitions: a quarter of a minute for two algorithms on an idle machine");
  app.add_option(
         "--passes", line.passes,
         fmt::format(
             "How often a CPU's kernels are measured, seconds apart; more where a machine is "
             "shared (default: {})",
             Options{}.passes))
      ->check(tools::count_from(1, 1000));
  app.add_option(
         "--again", line.again,
         fmt::format("Measure again, so many times at most, where probes before and after say "
                     "that the machine's speed changed meanwhile (default: {}, with --quick {})",
                     kAgain, kAgainQuick))
      ->check(tools::count_from(0, 1000));
  app.add_flag("--json", line.json, "Print one JSON object instead of the table");
}

}  // namespace hipress::profiler
