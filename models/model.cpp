#include "models/model.hpp"

#include <algorithm>
#include <unordered_map>

namespace hipress::models {

const char* to_string(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16:
      return "float16";
    case Dtype::kBfloat16:
      return "bfloat16";
    case Dtype::kFloat32:
      break;
  }
  return "float32";
}

double backward_s(const Model& model) {
  double last = 0;
  for (const Gradient& gradient : model.gradients) last = std::max(last, gradient.ready_s);
  return last;
}

double before_backward_s(const Model& model) {
  return model.forward_s * model.micro_steps + model.optimizer_s +
         backward_s(model) * (model.micro_steps - 1);
}

std::int64_t total_elements(const Model& model) {
  std::int64_t total = 0;
  for (const Gradient& gradient : model.gradients) total += gradient.elements;
  return total;
}

void wait_for_buckets(Model& model) {
  std::unordered_map<int, double> full_s;
  for (const Gradient& gradient : model.gradients) {
    if (!gradient.bucket) continue;
    double& last = full_s[*gradient.bucket];
    last = std::max(last, gradient.ready_s);
  }
  for (Gradient& gradient : model.gradients) {
    if (gradient.bucket) gradient.ready_s = full_s[*gradient.bucket];
  }
}

std::vector<std::int64_t> shape_of(const Gradient& gradient) {
  if (gradient.shape.empty()) return {gradient.elements};
  return gradient.shape;
}

}  // namespace hipress::models
