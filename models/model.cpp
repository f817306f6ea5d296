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

std::string_view cast_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16:
      return "fp16";
    case Dtype::kBfloat16:
      return "bf16";
    case Dtype::kFloat32:
      break;
  }
  return "";
}

std::optional<Throughput> throughput(const Model& model, std::uint32_t gpus, double step_s) {
  if (model.batch == 0 || step_s <= 0) return std::nullopt;
  Throughput made;
  made.units_per_s = 1.0 * model.batch * model.micro_steps * gpus / step_s;
  made.unit = model.unit.empty() ? "units" : model.unit;
  if (model.at_peak_s > 0) made.mfu = model.at_peak_s * model.micro_steps / step_s;
  return made;
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

double before_backward_cores(const Model& model) {
  const double whole_s = before_backward_s(model);
  if (whole_s <= 0) return 0;
  const double core_s = model.forward_s * model.micro_steps * model.forward_cores +
                        model.optimizer_s * model.optimizer_cores +
                        backward_s(model) * (model.micro_steps - 1) * backward_cores(model);
  return core_s / whole_s;
}

double backward_cores(const Model& model) {
  std::vector<const Gradient*> order;
  for (const Gradient& gradient : model.gradients) order.push_back(&gradient);
  std::ranges::stable_sort(order, {}, [](const Gradient* one) { return one->ready_s; });
  double reached_s = 0, core_s = 0;
  for (const Gradient* const gradient : order) {
    core_s += (gradient->ready_s - reached_s) * gradient->cores;
    reached_s = gradient->ready_s;
  }
  return reached_s > 0 ? core_s / reached_s : 0;
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
