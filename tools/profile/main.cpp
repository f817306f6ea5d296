// hipress-profile: measures kernels and links, and writes a profile.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/error.hpp"
#include "io/file.hpp"
#include "io/spelling.hpp"
#include "replay/device_choice.hpp"
#include "tools/frame.hpp"
#include "tools/profile/measure.hpp"
#include "tools/profile/report.hpp"
#include "tools/profile/sample.hpp"

namespace {

using namespace hipress;

/// Writes and prints the profile, with what was read from a sample; `new_cores`: the time of cores
/// was measured.
void write_and_print(const profiler::CommandLine& line, const std::vector<float>& sample,
                     bool new_cores, costs::Profile profile) {
  for (std::string& note : profile.notes) note = io::as_command_line(note);
  if (!sample.empty()) profiler::apply_sample(sample, profile);
  if (new_cores && profile.cores > 0 && profile.link.core_s_per_byte == 0) {
    tools::warn(
        "no core time of transfers could be told, so that predictions take them to cost the cores "
        "nothing: measure again while nothing else runs, or take one machine's profile as --base");
  }
  costs::write_profile(line.output, profile);
  if (line.json) {
    fmt::print("{}\n", profiler::to_json(profile, line.output).print(2));
  } else {
    profiler::print(profile, line.output);
  }
}

int run(profiler::CommandLine& line) {
  profiler::Options options;
  options.algorithms = profiler::algorithms_of(line);
  const std::optional<io::Launch> launch = io::read_launch();
  const bool reports = !launch || launch->rank == 0;
  profiler::check(line, reports);
  if (reports) io::require_writable(line.output);
  const std::vector<float> sample = profiler::read_sample(line.sample);
  if (!sample.empty() && !line.base.empty() && line.anew.empty()) {
    return reports ? profiler::run_sample(line, sample) : 0;
  }
  if (!sample.empty() && line.base.empty() &&
      std::ranges::none_of(options.algorithms, profiler::is_lossless)) {
    throw io::InputError(
        "--sample is of algorithms whose messages vary with the data, and "
        "--algorithm names none: add lossless");
  }
  line.job.read_secret();
  line.job.warn_of_unused(launch, profiler::CommandLine().job, line.transport == "nccl");
  options.nodes = profiler::count_ranks(line, launch);
  options.effort = line.quick ? profiler::Effort::kQuick : profiler::Effort::kFull;
  options.passes = profiler::passes_of(line);
  const replay::DeviceChoice choice =
      replay::choose_device({.device = line.device,
                             .transport = line.transport,
                             .interface = line.job.interface,
                             .ranks = static_cast<int>(options.nodes)},
                            launch);
  options.transport = choice.transport;
  options.device = choice.device;
  options.nccl = choice.nccl;
  options.timeout_s = line.timeout_s;
  std::optional<costs::Profile> base;
  if (!line.base.empty()) options.base = &base.emplace(costs::read_profile(line.base));
  const auto endpoint = profiler::connect(line, launch, base);
  options.endpoint = endpoint.get();
  options.anew = profiler::part_of(line);
  const auto progress = [&](const std::string& what) {
    if (reports) tools::inform(fmt::format("measuring {}", what));
  };
  costs::Profile profile = profiler::measure_while_steady(
      options, progress, profiler::probe_of(line, options), line.again_at_most());
  if (!reports) return 0;
  const bool new_cores = !base || options.anew != profiler::Part::kKernels;
  write_and_print(line, sample, new_cores, std::move(profile));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  profiler::CommandLine line;
  return tools::run_tool(
      argc, argv,
      {"hipress-profile",
       "Measures compression kernels and links of this machine through the executor, and writes "
       "profile.yaml.",
       "hipress-profile --quick --algorithm onebit,fp16 --output profile.yaml"},
      [&](CLI::App& app) { profiler::declare(app, line); }, [&] { return run(line); });
}
