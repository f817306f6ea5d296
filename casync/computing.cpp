#include "casync/computing.hpp"

#include "models/model.hpp"

namespace hipress::casync {

Computing computing_of(const models::Model& model, BackwardTasks tasks) {
  if (model.threads == 0) return {.memory_traffic = model.memory_traffic};
  const double before_s = models::before_backward_s(model);
  const double after_s = models::backward_s(model);
  Computing computing = {.threads = model.threads,
                         .forward = models::before_backward_cores(model),
                         .backward = models::backward_cores(model),
                         .memory_traffic = model.memory_traffic};
  if (before_s + after_s > 0) {
    computing.steps =
        (before_s * computing.forward + after_s * computing.backward) / (before_s + after_s);
  }
  if (tasks == BackwardTasks::kOfSeveral) return computing;
  for (const models::Gradient& gradient : model.gradients) {
    computing.of_gradients.push_back(gradient.cores);
  }
  return computing;
}

}  // namespace hipress::casync
