#include "requests/import_trace.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "io/file.hpp"
#include "io/utf8.hpp"
#include "io/yaml.hpp"
#include "requests/headings.hpp"
#include "requests/mix_document.hpp"
#include "traces/trace_reader.hpp"

namespace hipress::requests {
namespace {

using Json = io::Document;
using traces::TracedStep;

/// "resnet50" of "traces/resnet50.kineto.json.gz".
std::string name_of(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  name = io::printable(name.substr(0, name.find('.', 1)));
  return name.empty() ? "trace" : name;
}

std::vector<std::string> sentences(std::vector<std::string> texts) {
  for (std::string& text : texts) text = sentence(text);
  return texts;
}

Json step_json(const TracedStep& step) {
  return {{"name", step.name},
          {"step_s", step.length_s},
          {"forward_s", step.forward_s},
          {"compute_s", step.compute_s},
          {"communication_s", step.communication_s},
          {"exposed_communication_s", step.exposed_communication_s},
          {"modelled_exposed_s", step.modelled_exposed_s},
          {"idle_s", step.idle_s},
          {"collective_elements", step.collective_elements()}};
}

Json total_json(const traces::KindTotal& total) {
  return {{"count", total.count},
          {"bytes", total.bytes},
          {"time_s", total.time_s},
          {"exposed_s", total.exposed_s}};
}

Json layer_json(const traces::ShardedLayer& layer, double ready_s) {
  return {{"name", layer.name},
          {"elements", layer.elements},
          {"gradients", layer.gradients.empty() ? Json() : Json(layer.gradients.size())},
          {"forward_gathers", layer.forward_gathers},
          {"backward_gathers", layer.backward_gathers},
          {"gathered_dtype", layer.gathered_dtype.empty() ? Json() : Json(layer.gathered_dtype)},
          {"gathered_bytes", layer.gathered_bytes},
          {"reduced_dtype", layer.reduced_dtype.empty() ? Json() : Json(layer.reduced_dtype)},
          {"reduced_bytes", layer.reduced_bytes},
          {"ready_s", ready_s > 0 ? Json(ready_s) : Json()}};
}

/// Reports the bytes and collectives of a step, in the trace and in the model.
void add_account(const traces::ImportedModel& imported, Json& report) {
  const traces::JobAccount& account = imported.account;
  report["gradient_ranks"] = account.ranks;
  report["sent_bytes"] =
      account.steps.empty() ? std::optional<std::int64_t>() : account.steps.back().sent_bytes;
  report["model_bytes"] = account.model_bytes;
  if (imported.sharding) return;
  report["sent_dtype"] = account.sent_dtype.empty() ? Json() : Json(account.sent_dtype);
  report["all_reduce"] = total_json(imported.averages);
  report["other_collectives"] = total_json(imported.other);
}

/// What a sharded job's trace tells besides; layers are in the order of forward.
void add_sharding(const traces::ImportedModel& imported, Json& report) {
  const traces::Sharding& sharding = *imported.sharding;
  const bool has_times = models::backward_s(imported.model) > 0;
  Json layers = Json::list();
  for (std::size_t i = sharding.layers.size(); i-- > 0;) {
    const traces::ShardedLayer& layer = sharding.layers[i];
    layers.push_back(layer_json(layer, has_times ? layer.ready_s.value_or(0) : 0));
  }
  report["schedule"] = sharding.schedule;
  report["shards"] = sharding.ranks;
  report["replicas"] = sharding.replicas;
  report["micro_steps"] = sharding.passes;
  report["reduces_once"] = sharding.reduces_once;
  report["layers"] = layers;
  report["all_gather"] = total_json(sharding.all_gather);
  report["reduce_scatter"] = total_json(sharding.reduce_scatter);
  report["all_reduce"] = total_json(sharding.all_reduce);
  report["other_collectives"] = total_json(sharding.other);
}

}  // namespace

Fields fields(ImportRequest& request) {
  Fields made;
  made.under(headings::kJob);
  made.add("trace", &request.trace,
           "One rank's trace: PyTorch's profiler or execution trace (JSON), or a Chakra "
           "execution trace; plain or gzipped")
      .must_be_given();
  made.add("output", &request.output, "Write the model YAML that the other tools read")
      .file()
      .under(headings::kOutput);
  made.add("every_all_reduce", &request.import.every_all_reduce,
           "Every all-reduce carries gradients: where the trace does not tell which do");
  return made;
}

ImportedTrace import_trace(const ImportRequest& request) {
  if (!request.output.empty()) {
    io::require_writable(request.output);
    if (!io::is_yaml_name(request.output)) {
      throw io::InputError(fmt::format(
          "`output` must end in .yaml or .yml, by which the other tools know it, got {}",
          io::quote(request.output)));
    }
  }
  ImportedTrace made;
  made.trace = traces::read_trace(request.trace);
  if (!request.output.empty()) io::refuse_input(request.output);
  try {
    made.model =
        traces::model_of(made.trace, name_of(request.trace), request.import, made.diagnostics);
  } catch (const io::Unmet& error) {
    made.refusal = io::Unmet(fmt::format("{}: {}", io::printable(request.trace), error.what()));
  }
  return made;
}

void write_model(const ImportRequest& request, const ImportedTrace& imported) {
  if (imported.refusal) throw *imported.refusal;
  if (request.output.empty()) return;
  io::write_file(request.output,
                 [&](std::ostream& out) { traces::write_model_yaml(out, *imported.model); });
}

io::Document document(const ImportedTrace& made) {
  const traces::Imported& trace = made.trace;
  const traces::ImportedModel* const imported = made.model_or_null();
  Json steps = Json::list();
  for (const TracedStep& step : trace.steps) steps.push_back(step_json(step));
  Json report = {{"format", trace.format},
                 {"events", trace.events},
                 {"steps", steps},
                 {"gradients", imported ? Json(imported->model.gradients.size()) : Json()},
                 {"elements", imported ? Json(models::total_elements(imported->model)) : Json()},
                 {"world_size", trace.world_size},
                 {"hardware", trace.hardware.empty() ? Json() : Json(trace.hardware)},
                 {"collectives", trace.collectives},
                 {"cpu_duplicates", trace.cpu_duplicates},
                 {"not_told", sentences(trace.not_told)},
                 {"diagnostics", sentences(made.diagnostics)}};
  if (trace.mix) {
    report["mix"] = imported && imported->model.mix ? json_of(*imported->model.mix) : Json();
    report["mix_unrecognised_share"] = trace.mix->unrecognised;
  }
  if (imported && imported->traced)
    report["most_gain"] = sentence(models::most_gain(*imported->traced));
  if (imported) add_account(*imported, report);
  if (imported && imported->sharding) add_sharding(*imported, report);
  return report;
}

io::Document answer(const ImportRequest& request, const Hooks& hooks) {
  look_for_interrupt(hooks);
  const ImportedTrace imported = import_trace(request);
  look_for_interrupt(hooks);
  if (imported.refusal) throw UnmetWithResult(imported.refusal->what(), document(imported));
  write_model(request, imported);
  return document(imported);
}

}  // namespace hipress::requests
