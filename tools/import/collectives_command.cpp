#include "tools/import/collectives_command.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "costs/nccl_log.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"
#include "tools/frame.hpp"

namespace hipress::traces {
namespace {

struct Options {
  std::vector<std::string> logs;
  std::string profile, output;
};

int run(const Options& options) {
  costs::Profile profile = costs::read_profile(options.profile);
  io::require_writable(options.output);
  for (const std::string& path : options.logs) {
    const costs::NcclLog log = costs::read_nccl_log(path);
    costs::add_to_profile(log, profile);
    fmt::print(std::cout, "{}: {} of {} ranks, {} sizes from {} to {}\n", path, log.test, log.ranks,
               log.times.size(), io::format_size(log.times.front().first),
               io::format_size(log.times.back().first));
    profile.notes.push_back(fmt::format("{} of {} ranks was measured with nccl-tests ({}).",
                                        log.test, log.ranks, path));
  }
  write_profile(options.output, profile);
  return 0;
}

}  // namespace

int run_collectives_command(int argc, char** argv) {
  Options options;
  const tools::ToolInfo info = {
      .name = "hipress-import collectives",
      .purpose =
          "Reads logs of nccl-tests or rccl-tests into a profile's collectives. With --machine "
          "other numbers of hosts are scaled from them.",
      .example =
          "hipress-import collectives all_reduce_perf.log --profile h100-400g --output mine.yaml",
      .needs_arguments = true};
  return tools::run_tool(
      argc, argv, info,
      [&](CLI::App& app) {
        app.add_option("LOG", options.logs,
                       "What all_reduce_perf, all_gather_perf, reduce_scatter_perf or "
                       "alltoall_perf printed")
            ->required();
        app.add_option("--profile", options.profile, "Profile to add them to: a file or a name")
            ->required();
        app.add_option("--output", options.output, "Profile to write")->required();
      },
      [&] { return run(options); });
}

}  // namespace hipress::traces
