#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>

#include "io/quantity.hpp"
#include "models/model_file.hpp"
#include "traces/imported_model.hpp"

namespace hipress::traces {
namespace {

constexpr int kDigits = 9;  // decimal places of times, as fine as the trace's nanoseconds

std::string time_of(double seconds) { return io::format_duration(seconds, kDigits); }

/// Text in single quotation marks. YAML escapes nothing else in such text.
std::string quoted(const std::string& text) {
  std::string inside;
  for (const char one : text) inside += one == '\'' ? std::string("''") : std::string(1, one);
  return "'" + inside + "'";
}

void write_traced(std::ostream& out, const models::Traced& traced) {
  out << "traced:\n"
      << "  steps: " << traced.steps << "\n  step: " << time_of(traced.step_s)
      << "\n  compute: " << time_of(traced.compute_s)
      << "\n  communication: " << time_of(traced.communication_s)
      << "\n  exposed_communication: " << time_of(traced.exposed_communication_s)
      << "\n  idle: " << time_of(traced.idle_s) << '\n';
  if (traced.other_communication_s > 0) {
    out << "  other_communication: " << time_of(traced.other_communication_s) << '\n';
  }
}

}  // namespace

void write_model_yaml(std::ostream& out, const ImportedModel& imported) {
  const models::Model& model = imported.model;
  out << "schema: " << models::kModelSchema << "\nname: " << quoted(model.name)
      << "\nsource: " << quoted(model.source) << '\n';
  const bool has_times = models::backward_s(model) > 0;
  if (model.batch > 0) out << "batch: " << model.batch << '\n';
  if (!model.unit.empty()) out << "unit: " << quoted(model.unit) << '\n';
  if (model.positions > 0) out << fmt::format("positions: {:.0f}\n", model.positions);
  if (model.forward_s > 0) out << "forward: " << time_of(model.forward_s) << '\n';
  if (model.optimizer_s > 0) out << "optimizer: " << time_of(model.optimizer_s) << '\n';
  if (model.micro_steps > 1) out << "micro_steps: " << model.micro_steps << '\n';
  if (model.mix) out << "mix: " << models::mix_yaml(*model.mix) << '\n';
  if (imported.traced) write_traced(out, *imported.traced);
  out << "gradients:\n";
  for (const models::Gradient& gradient : model.gradients) {
    // Names of sharded layers are text from the trace, so they are quoted. Other names are made up.
    const bool has_layer = !gradient.layer.empty();
    out << fmt::format("- {{name: {}, elements: {}",
                       has_layer ? quoted(gradient.name) : gradient.name, gradient.elements);
    if (!gradient.shape.empty()) {
      out << fmt::format(", shape: [{}]", fmt::join(gradient.shape, ", "));
    }
    if (has_times) out << ", ready: " << time_of(gradient.ready_s);
    if (gradient.dtype != models::Dtype::kFloat32) {
      out << ", dtype: " << models::to_string(gradient.dtype);
    }
    if (has_layer) out << ", layer: " << quoted(gradient.layer);
    if (gradient.work != models::Work()) {
      out << fmt::format(", work: {{flops: {}, attention: {}, values: {}}}", gradient.work.flops,
                         gradient.work.attention, gradient.work.values);
    }
    out << "}\n";
  }
}

}  // namespace hipress::traces
