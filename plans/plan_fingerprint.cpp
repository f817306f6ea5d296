#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "io/file.hpp"
#include "plans/plan_file.hpp"

namespace hipress::plans {

std::string plan_fingerprint(const models::Model& model, const casync::Plan& plan) {
  // Names are preceded by their lengths, so that no two jobs have one text.
  std::string text = fmt::format("{} {}\n", plan.strategy, plan.nodes);
  for (std::size_t g = 0; g < model.gradients.size(); ++g) {
    const models::Gradient& gradient = model.gradients[g];
    const casync::Decision& decision = plan.decisions[g];
    const std::string algorithm =
        decision.algorithm == casync::kRaw
            ? ""
            : plan.algorithms[static_cast<std::size_t>(decision.algorithm)].name;
    text +=
        fmt::format("{}:{} {} {} {} {}\n", gradient.name.size(), gradient.name, gradient.elements,
                    to_string(gradient.dtype), algorithm, decision.partitions);
  }
  return io::fingerprint(text);
}

}  // namespace hipress::plans
