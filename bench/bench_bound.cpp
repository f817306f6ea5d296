// Gaps between plans of models with few large gradients and their lower bounds, one line for each
// random instance.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "planner/baselines/baselines.hpp"
#include "planner/bound/bound.hpp"
#include "planner/search/timeline_search.hpp"
#include "tests/planner/few_large.hpp"
#include "tools/frame.hpp"
#include "tools/validators.hpp"

namespace hipress::bench {
namespace {

struct Asked {
  std::uint64_t first = 1, last = 30;
  std::string network = "fair";
  std::int64_t evaluations = 2000;
  std::size_t branch_nodes = 30;  ///< as in hipress-plan
  std::uint32_t most_gradients = 12, most_nodes = 16;
};

double percent(double found_s, double bound_s) { return 100 * planner::gap(found_s, bound_s); }

double bound_of(const planner::Problem& problem, const planner::Choices& choices, double known_s,
                const Asked& asked) {
  return planner::lower_bound(problem.model, *problem.machines, choices,
                              {.branch_nodes = asked.branch_nodes, .known_s = known_s})
      .seconds;
}

/// Time of the plan that the search finds among these options.
double planned_s(const planner::Problem& problem, const planner::Choices& choices) {
  const planner::SearchResult found = planner::search_timeline(problem, choices);
  return planner::simulated_iteration_s(problem.model, found.plan, *problem.machines,
                                        found.transfer_order);
}

int run(const Asked& asked) {
  std::vector<double> gaps;
  for (std::uint64_t seed = asked.first; seed <= asked.last; ++seed) {
    const planner::FewLarge instance(seed, sim::parse_network(asked.network), asked.most_gradients,
                                     asked.most_nodes);
    planner::Problem problem = instance.problem();
    problem.limits.evaluations = asked.evaluations;
    const planner::Choices choices = planner::make_choices(problem);
    const double found_s = planned_s(problem, choices);
    gaps.push_back(percent(found_s, bound_of(problem, choices, found_s, asked)));
    fmt::print("{:>4} {:<36} {:9.3f} ms {:6.2f} %\n", seed, instance.describe(), found_s * 1e3,
               gaps.back());
    std::fflush(stdout);
  }
  std::sort(gaps.begin(), gaps.end());
  fmt::print("{} instances: gap median {:.2f} %, p90 {:.2f} %, worst {:.2f} %\n", gaps.size(),
             gaps[gaps.size() / 2], gaps[gaps.size() * 9 / 10], gaps.back());
  return 0;
}

}  // namespace
}  // namespace hipress::bench

int main(int argc, char** argv) {
  hipress::bench::Asked asked;
  return hipress::tools::run_tool(
      argc, argv,
      {"bench_bound", "Gaps between plans and lower bounds of models with few large gradients.",
       "bench_bound --network port"},
      [&](CLI::App& app) {
        app.add_option("--first", asked.first, "seed")
            ->check(hipress::tools::count_from(0))
            ->capture_default_str();
        app.add_option("--last", asked.last, "seed")
            ->check(hipress::tools::count_from(0, UINT64_MAX - 1))
            ->capture_default_str();
        app.add_option("--network", asked.network, "port or fair")->capture_default_str();
        app.add_option("--evaluations", asked.evaluations, "of each search")
            ->check(hipress::tools::count_from(0, INT64_MAX))
            ->capture_default_str();
        app.add_option("--branch-nodes", asked.branch_nodes, "of each bound")
            ->capture_default_str();
        app.add_option("--max-gradients", asked.most_gradients, "per instance")
            ->check(hipress::tools::count_from(4, 1000))
            ->capture_default_str();
        app.add_option("--max-nodes", asked.most_nodes, "per instance")
            ->check(hipress::tools::count_from(2, 1024))
            ->capture_default_str();
      },
      [&] { return hipress::bench::run(asked); });
}
