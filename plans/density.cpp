#include <fmt/format.h>

#include <string>

#include "io/error.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "plans/plan_builder.hpp"
#include "plans/plan_options.hpp"

namespace hipress::plans {

std::string with_density(const std::string& algorithm, double density) {
  return kernels::with_parameter(algorithm, kernels::kDensity, fmt::format("{}", density));
}

void set_density(double density, const PlanContext& context, ResolvedPlan& resolved) {
  if (!(density > 0 && density <= 1)) {
    throw io::InputError(fmt::format(
        "`density` must be a share of the entries, above 0 and at most 1, got {}", density));
  }
  casync::Plan& plan = resolved.plan;
  PlanContext same = context;
  same.topology = plan.topology;
  PlanBuilder builder(same);
  bool sparse = false;
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    auto [index, partitions] = plan.decisions[g];
    if (index == casync::kRaw) {
      builder.decide(g, index, partitions);
      continue;
    }
    const auto place = static_cast<std::size_t>(index);
    std::string algorithm = plan.algorithms[place].name;
    if (resolved.codecs[place]->traits().sparse) {
      sparse = true;
      if (resolved.dense && density > resolved.dense->above) {
        algorithm = resolved.dense->algorithm;
        partitions = resolved.dense->partitions;
      } else {
        algorithm = with_density(algorithm, density);
      }
    }
    builder.decide(g, algorithm == "none" ? casync::kRaw : builder.algorithm(algorithm),
                   partitions);
  }
  if (!sparse) {
    throw io::InputError(
        "`density`: the plan sends no gradient sparse; leave it out, or plan with `algorithm` dgc "
        "or graddrop");
  }
  ResolvedPlan made = builder.take();
  plan.algorithms = std::move(made.plan.algorithms);
  plan.decisions = std::move(made.plan.decisions);
  resolved.codecs = std::move(made.codecs);
}

}  // namespace hipress::plans
