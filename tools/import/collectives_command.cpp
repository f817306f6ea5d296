#include "tools/import/collectives_command.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "costs/benchmark_log.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"
#include "tools/frame.hpp"

namespace hipress::traces {
namespace {

struct CollectivesCommand {
  std::vector<std::string> logs;
  std::string profile, output;
  std::optional<int> ranks;
};

int run(const CollectivesCommand& options) {
  costs::Profile profile = costs::read_profile(options.profile);
  io::require_writable(options.output);
  for (const std::string& path : options.logs) {
    const costs::BenchmarkLog log = costs::read_benchmark_log(path, options.ranks);
    costs::add_to_profile(log, profile);
    fmt::print(std::cout, "{}: {} of {} ranks, {} sizes from {} to {}\n", path, log.test, log.ranks,
               log.rows.size(), io::format_size(log.rows.front().first),
               io::format_size(log.rows.back().first));
    profile.notes.push_back(
        fmt::format("{} of {} ranks was measured ({}).", log.test, log.ranks, path));
  }
  write_profile(options.output, profile);
  return 0;
}

}  // namespace

int run_collectives_command(int argc, char** argv) {
  CollectivesCommand options;
  const tools::ToolInfo info = {
      .name = "hipress-import collectives",
      .purpose =
          "Reads logs of nccl-tests, rccl-tests, OSU's micro-benchmarks and perftest into a "
          "profile's collectives and link. With --machine, other numbers of hosts are scaled from "
          "them.",
      .example =
          "hipress-import collectives all_reduce_perf.log --profile h100-400g --output mine.yaml",
      .needs_arguments = true};
  return tools::run_tool(
      argc, argv, info,
      [&](CLI::App& app) {
        app.add_option(
               "LOG", options.logs,
               "Output of all_reduce_perf, all_gather_perf, reduce_scatter_perf, "
               "alltoall_perf, osu_allreduce (allgather, reduce_scatter, alltoall), osu_bw, "
               "osu_latency, ib_write_bw or ib_write_lat (send, read)")
            ->required();
        app.add_option("--ranks", options.ranks,
                       "Number of ranks, for logs that do not state it, such as OSU's")
            ->check(CLI::Range(2, 1 << 20));
        app.add_option("--profile", options.profile, "Profile to extend: a file or a name")
            ->required();
        app.add_option("--output", options.output, "Profile to write")->required();
      },
      [&] { return run(options); });
}

}  // namespace hipress::traces
