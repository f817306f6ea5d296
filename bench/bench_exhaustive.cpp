// How long exhaustive searches take on random instances, one line for each: processor time of its
// own process, which is stopped at a limit.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "io/error.hpp"
#include "planner/search/exhaustive.hpp"
#include "tests/planner/random_problem.hpp"
#include "tools/frame.hpp"
#include "tools/validators.hpp"

namespace hipress::bench {
namespace {

struct Asked {
  std::uint32_t gradients = 8;
  std::uint32_t most_nodes = 16;
  std::vector<std::uint64_t> seeds;
  std::uint64_t first = 1, last = 100;
  unsigned jobs = 1;
  unsigned limit_s = 12;  ///< of processor time
};

double processor_s(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

planner::RandomProblem instance(std::uint64_t seed, const Asked& asked) {
  return {seed,
          {.least_gradients = asked.gradients,
           .most_gradients = asked.gradients,
           .most_nodes = asked.most_nodes}};
}

/// In a process of its own: prints what was found.
void search(std::uint64_t seed, const Asked& asked) {
  planner::RandomProblem random = instance(seed, asked);
  planner::Problem problem = random.problem(sim::Network::kPort);
  problem.limits.jobs = asked.jobs;
  const planner::Optimum found =
      planner::find_optimum(problem, planner::exhaustive_choices(problem));
  fmt::print("{:>12} {:>12} {:>16.12f} {}", found.bounded, found.simulated, found.iteration_s,
             fmt::join(found.candidate.options, ","));
}

/// Processor time, and whether it ended within the limit.
std::pair<double, bool> time_of(std::uint64_t seed, const Asked& asked) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) throw io::RunError("cannot start a process");
  if (child == 0) {
    const rlimit limit = {asked.limit_s, asked.limit_s + 1};
    setrlimit(RLIMIT_CPU, &limit);
    search(seed, asked);
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  rusage usage = {};
  wait4(child, &status, 0, &usage);
  return {processor_s(usage), WIFEXITED(status) && WEXITSTATUS(status) == 0};
}

void print_summary(std::vector<double> times, std::size_t stopped, unsigned limit_s) {
  std::sort(times.begin(), times.end());
  const auto within = std::count_if(times.begin(), times.end(), [](double s) { return s < 1; });
  fmt::print(
      "{} instances, {} stopped after {} s; within 1 s {}; median {:.3f} s, p90 {:.3f} s, "
      "sum {:.1f} s\n",
      times.size(), stopped, limit_s, within, times[times.size() / 2], times[times.size() * 9 / 10],
      std::accumulate(times.begin(), times.end(), 0.0));
}

int run(Asked asked) {
  if (asked.seeds.empty()) {
    for (std::uint64_t seed = asked.first; seed <= asked.last; ++seed) asked.seeds.push_back(seed);
  }
  std::vector<double> times;
  std::size_t stopped = 0;
  for (const std::uint64_t seed : asked.seeds) {
    const planner::RandomProblem random = instance(seed, asked);
    fmt::print("{:>5} {:>4} {:>2} ", seed, random.topology, random.machines.cluster.nodes);
    const auto [seconds, ended] = time_of(seed, asked);
    fmt::print("{} {:8.3f} s\n", ended ? "" : "stopped", seconds);
    times.push_back(seconds);
    stopped += !ended;
  }
  print_summary(std::move(times), stopped, asked.limit_s);
  return 0;
}

}  // namespace
}  // namespace hipress::bench

int main(int argc, char** argv) {
  hipress::bench::Asked asked;
  return hipress::tools::run_tool(
      argc, argv,
      {"bench_exhaustive", "Times exhaustive searches of random instances.",
       "bench_exhaustive --gradients 8 --last 100"},
      [&](CLI::App& app) {
        app.add_option("--gradients", asked.gradients, "per instance")
            ->check(hipress::tools::count_from(1, 1000))
            ->capture_default_str();
        app.add_option("--max-nodes", asked.most_nodes, "per instance")
            ->check(hipress::tools::count_from(1, 1u << 20))
            ->capture_default_str();
        app.add_option("--first", asked.first, "seed")
            ->check(hipress::tools::count_from(0))
            ->capture_default_str();
        app.add_option("--last", asked.last, "seed")
            ->check(hipress::tools::count_from(0, UINT64_MAX - 1))
            ->capture_default_str();
        app.add_option("--seed", asked.seeds, "these instead")
            ->check(hipress::tools::count_from(0));
        app.add_option("--jobs", asked.jobs, "threads")
            ->check(hipress::tools::count_from(1, 1024))
            ->capture_default_str();
        app.add_option("--limit", asked.limit_s, "processor time in seconds for each")
            ->capture_default_str();
      },
      [&] { return hipress::bench::run(asked); });
}
