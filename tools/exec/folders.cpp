#include "tools/exec/folders.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "io/error.hpp"
#include "replay/gradient_files.hpp"

namespace hipress::replay {
namespace {

/// Makes the folders of means of the ranks that this process runs.
void prepare_means_of(const CommandLine& line, const std::optional<io::Launch>& launch,
                      std::uint32_t ranks) {
  if (line.replay.means.empty()) return;
  const bool threads = !launch || launch->size == 1;
  const auto first = threads ? 0 : static_cast<std::uint32_t>(launch->rank);
  prepare_means(line.replay.means, first, threads ? ranks : 1);
}

/// Looks at what is to be read and written of encoders' states.
void prepare_states_of(const CommandLine& line, const Job& job, std::uint32_t ranks) {
  const ReplayOptions& options = line.replay;
  if (options.load_state.empty() && options.save_state.empty()) return;
  if (options.device) {
    throw io::InputError(
        "--load-state and --save-state are for replays on CPUs; leave out --device");
  }
  if (!options.save_state.empty()) prepare_states(options.save_state);
  if (options.load_state.empty()) return;
  for (std::size_t i = 0; i < job.plan.codecs.size(); ++i) {
    const kernels::CodecTraits& traits = job.plan.codecs[i]->traits();
    if (traits.additive || !traits.error_feedback) continue;
    throw io::InputError(fmt::format(
        "--load-state is for plans whose residuals are of stages alone, and this one compresses "
        "with {}; leave it out, or take another plan",
        io::quote(job.plan.plan.algorithms[i].name)));
  }
  require_states(options.load_state, ranks);
}

}  // namespace

void prepare_folders(const CommandLine& line, const Job& job,
                     const std::optional<io::Launch>& launch, std::uint32_t ranks) {
  prepare_means_of(line, launch, ranks);
  prepare_states_of(line, job, ranks);
}

}  // namespace hipress::replay
