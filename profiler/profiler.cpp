#include "profiler/profiler.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "io/error.hpp"
#include "io/tool.hpp"
#include "kernels/codec.hpp"

namespace hipress::profiler {
namespace {

std::string processor() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

/// Bytes per second that all cores together copy, reads and writes counted: the ceiling of the
/// kernels.
double measure_memory(int cores) {
  constexpr std::size_t kBytes = std::size_t{96} << 20;
  constexpr int kRounds = 3;
  const auto copy = [] {
    std::vector<char> from(kBytes, 1), to(kBytes, 2);
    for (int round = 0; round < kRounds; ++round) std::memcpy(to.data(), from.data(), kBytes);
    const auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < kRounds; ++round) std::memcpy(to.data(), from.data(), kBytes);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::vector<double> seconds(static_cast<std::size_t>(cores));
  std::vector<std::thread> threads;
  for (double& slot : seconds) threads.emplace_back([&slot, &copy] { slot = copy(); });
  for (std::thread& thread : threads) thread.join();
  double bytes_per_s = 0;
  for (const double one : seconds) bytes_per_s += 2.0 * kRounds * static_cast<double>(kBytes) / one;
  return bytes_per_s;
}

void check_options(const Options& options) {
  if (options.nodes < 2) {
    throw io::InputError(
        fmt::format("--nnodes must be at least 2 to measure links, got {}", options.nodes));
  }
  for (const std::string& algorithm : options.algorithms) {
    try {
      kernels::make_codec(algorithm);
    } catch (const std::invalid_argument& error) {
      throw io::InputError(error.what());
    }
  }
}

}  // namespace

costs::Profile measure(const Options& options, const Progress& progress) {
  check_options(options);
  costs::Profile profile;
  profile.cores = static_cast<int>(std::thread::hardware_concurrency());
  profile.name = "measured";
  profile.source = fmt::format("measured by hipress-profile {}", io::version());
  profile.hardware =
      fmt::format("{}, {} cores, {} ranks on loopback", processor(), profile.cores, options.nodes);
  profile.device = "cpu";
  profile.shared_host = true;
  progress("memory bandwidth");
  profile.memory_bandwidth = measure_memory(profile.cores);
  measure_codecs(options, progress, profile);
  measure_links(options, progress, profile);
  return profile;
}

}  // namespace hipress::profiler
