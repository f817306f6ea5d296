#include "requests/cached_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "io/digest.hpp"
#include "io/environment.hpp"
#include "io/file.hpp"
#include "io/version.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "profiler/profiler.hpp"
#include "replay/probes.hpp"

namespace hipress::requests {
namespace {

std::uint32_t ranks_of(std::uint32_t ranks) { return std::clamp(ranks, 2U, kMostCachedRanks); }

}  // namespace

std::string cached_profile_path(const std::string& algorithms, std::uint32_t ranks) {
  constexpr std::size_t kDigits = 16;
  const std::string key = fmt::format("{}\n{}\n{}\n{}", io::version(), profiler::this_machine(),
                                      algorithms, ranks_of(ranks));
  return fmt::format("{}/profile-{}.yaml", io::cache_folder(),
                     io::to_hex(io::sha256(std::string_view(key))).substr(0, kDigits));
}

std::string cached_profile(const std::string& algorithms, std::uint32_t ranks, const Hooks& hooks) {
  const std::string path = cached_profile_path(algorithms, ranks);
  if (io::is_file(path)) return path;
  io::make_folder(std::filesystem::path(path).parent_path());
  io::require_writable(path);
  inform(hooks, fmt::format("measuring this machine's kernels, once: they are kept in {}", path));
  profiler::Options options;
  options.algorithms = kernels::split_algorithms(algorithms);
  options.nodes = ranks_of(ranks);
  options.effort = profiler::Effort::kQuick;
  options.passes = 1;
  const auto look = [&](const std::string&) { look_for_interrupt(hooks); };
  costs::write_profile(path, profiler::measure_while_steady(
                                 options, look, [] { return replay::run_probes({}); }, 0));
  return path;
}

}  // namespace hipress::requests
