#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "costs/profile.hpp"
#include "io/environment.hpp"
#include "profiler/profiler.hpp"
#include "tools/profile/options.hpp"
#include "transport/endpoint.hpp"

namespace hipress::profiler {

/// How many ranks measure; the launcher and --nnodes must agree.
std::uint32_t count_ranks(const CommandLine& line, const std::optional<io::Launch>& launch);

int passes_of(const CommandLine& line);  ///< how often a CPU's kernels are measured
Part part_of(const CommandLine& line);   ///< what is measured anew

/// What to measure: the lists that are given, or all.
std::vector<std::string> algorithms_of(const CommandLine& line);

/// io::InputError for options that contradict each other, and a warning of what has no effect.
void check(const CommandLine& line, bool reports);

/// This process's end of the job that a launcher started, which ranks with another base do not
/// join; null without one.
std::unique_ptr<transport::Endpoint> connect(const CommandLine& line,
                                             const std::optional<io::Launch>& launch,
                                             const std::optional<costs::Profile>& base);

/// Collective in a job.
std::function<costs::Probes()> probe_of(const CommandLine& line, const Options& options);

}  // namespace hipress::profiler
