#include "requests/import_trace.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "io/file.hpp"
#include "io/utf8.hpp"
#include "io/yaml.hpp"
#include "models/descriptions.hpp"
#include "models/model_file.hpp"
#include "requests/headings.hpp"
#include "requests/result_forms.hpp"
#include "requests/shared_records.hpp"
#include "traces/make_model.hpp"
#include "traces/trace_reader.hpp"

namespace hipress::requests {
namespace {

using traces::TracedStep;

/// Name of the model, taken from a path: "resnet50" for "traces/resnet50.kineto.json.gz".
std::string name_of(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  name = io::printable(name.substr(0, name.find('.', 1)));
  return name.empty() ? "trace" : name;
}

std::vector<std::string> sentences(std::vector<std::string> texts) {
  for (std::string& text : texts) text = sentence(text);
  return texts;
}

std::optional<std::string> told(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

void fill_step(Record& record, const TracedStep& step) {
  record.add("name", step.name, "Name in the trace");
  record.add("step_s", step.length_s, "Duration of the step's window");
  record.add("forward_s", step.forward_s, "Time until backward starts");
  record.add("compute_s", step.compute_s, "Time during which computing kernels run");
  record.add("communication_s", step.communication_s,
             "Time during which communicating kernels run");
  record.add("exposed_communication_s", step.exposed_communication_s,
             "Communication during which no kernel computes");
  record.add("modelled_exposed_s", step.modelled_exposed_s,
             "Exposed communication of gradients or their shards");
  record.add("idle_s", step.idle_s, "Time without any activity of the GPU");
  record.add("collective_elements", step.collective_elements(),
             "Number of elements in the step's buckets");
}

void fill_total(Record& record, const traces::KindTotal& total) {
  record.add("count", total.count, "Number of collectives");
  const bool known = total.bytes > 0 || total.count == 0;
  record.add("bytes", known ? std::optional(total.bytes) : std::nullopt,
             "Bytes carried; null if the trace does not tell. For shards the bytes of all ranks "
             "together, for other collectives those of one rank");
  record.add("time_s", total.time_s, "Sum of their times");
  record.add("exposed_s", total.exposed_s, "Exposed part of that time");
}

/// `has_times`: the model has ready times.
void fill_layer(Record& record, const traces::ShardedLayer& layer, bool has_times) {
  const double ready_s = has_times ? layer.ready_s.value_or(0) : 0;
  record.add("name", layer.name, "Name in the trace, or else layer0 …");
  record.add("elements", layer.elements, "Number of elements");
  record.add("gradients",
             layer.gradients.empty() ? std::nullopt : std::optional(layer.gradients.size()),
             "Number of gradients in it; null if unknown");
  record.add("forward_gathers", layer.forward_gathers, "All-gathers in a step's forward");
  record.add("backward_gathers", layer.backward_gathers, "All-gathers in a step's backward");
  record.add("gathered_dtype", told(layer.gathered_dtype), "Type in which parameters are gathered");
  record.add("gathered_bytes", layer.gathered_bytes, "Bytes gathered in a step");
  record.add("reduced_dtype", told(layer.reduced_dtype), "Type in which gradients are reduced");
  record.add("reduced_bytes", layer.reduced_bytes, "Bytes reduced in a step");
  record.add("ready_s", ready_s > 0 ? std::optional(ready_s) : std::nullopt,
             "Time at which its gradients are ready, from the start of backward");
}

/// Adds the bytes of a step as the trace and the model have them.
void fill_account(Record& record, const traces::ImportedModel* imported) {
  record.add(
      "gradient_ranks", [&] { return imported->account.ranks; },
      "Ranks that average a gradient; null if unknown");
  record.add(
      "sent_bytes",
      [&] {
        const auto& steps = imported->account.steps;
        return steps.empty() ? std::optional<std::int64_t>() : steps.back().sent_bytes;
      },
      "Bytes of gradients and parameters that a step of the trace sends");
  record.add(
      "model_bytes", [&] { return imported->account.model_bytes; },
      "Bytes of gradients and parameters that a step of the model sends under `schedule`");
}

/// Adds data of a sharded job. Layers are in forward order.
void fill_sharding(Record& record, const traces::ImportedModel* imported) {
  const traces::Sharding sharding =
      imported != nullptr ? imported->sharding.value_or(traces::Sharding()) : traces::Sharding();
  const bool has_times = imported != nullptr && models::backward_s(imported->model) > 0;
  record.add("schedule", sharding.schedule, "Schedule of the traced job; only for sharded jobs");
  record.add("shards", sharding.ranks, "Number of ranks that together hold all shards");
  record.add("replicas", sharding.replicas, "Groups of these");
  record.add("micro_steps", sharding.passes, "Micro-steps per step");
  record.add("reduces_once", sharding.reduces_once, "True if only the last micro-step reduces");
  record.list(
      "layers", std::vector(sharding.layers.rbegin(), sharding.layers.rend()),
      "Layers in the order of forward",
      [&](Record& row, const traces::ShardedLayer& layer) { fill_layer(row, layer, has_times); });
  record.object("all_gather", sharding.all_gather, "All-gathers of a step", fill_total);
  record.object("reduce_scatter", sharding.reduce_scatter, "Reduce-scatters of a step", fill_total);
}

/// Adds the collectives of a step. Sharded and other jobs have them.
void fill_collectives(Record& record, const traces::ImportedModel* imported) {
  const auto total = [&](traces::KindTotal traces::ImportedModel::*without,
                         traces::KindTotal traces::Sharding::*with) {
    return [=] { return imported->sharding ? *imported->sharding.*with : imported->*without; };
  };
  record.object("all_reduce",
                total(&traces::ImportedModel::averages, &traces::Sharding::all_reduce),
                "All-reduces of a step, of gradients or of their shards", fill_total);
  record.object("other_collectives", total(&traces::ImportedModel::other, &traces::Sharding::other),
                "Other collectives of a step", fill_total);
}

}  // namespace

Fields fields(ImportRequest& request) {
  Fields made;
  made.under(headings::kJob);
  made.add("trace", &request.trace,
           "Trace of one rank: PyTorch's profiler or execution trace (JSON), or a Chakra execution "
           "trace; plain or gzipped. Or a description of a model: config.json, "
           "model.safetensors.index.json, *.safetensors, *.onnx, a table of layers, a listing of "
           "names and shapes, or the name of a model (llama3_8b)")
      .must_be_given();
  made.add("output", &request.output, "Write the model YAML that the other tools read")
      .file()
      .under(headings::kOutput);
  made.add("every_all_reduce", &request.import.every_all_reduce,
           "Take every all-reduce to carry gradients, for traces that do not tell which ones do");
  return made;
}

ImportedTrace import_trace(const ImportRequest& request) {
  if (!request.output.empty()) {
    io::require_writable(request.output);
    if (!io::is_yaml_name(request.output)) {
      throw io::InputError(fmt::format(
          "`output` must end in .yaml or .yml, so that the other tools recognise it, got {}",
          io::quote(request.output)));
    }
  }
  ImportedTrace made;
  if (auto model = models::named_model(request.trace)) {
    made.trace.format = "model by name";
    made.model = traces::ImportedModel{.model = *std::move(model), .traced = {}};
    return made;
  }
  if (auto described = models::read_description(request.trace)) {
    if (!request.output.empty()) io::refuse_input(request.output);
    made.trace.format = described->form;
    made.diagnostics = std::move(described->said);
    made.model = traces::ImportedModel{.model = std::move(described->model), .traced = {}};
    return made;
  }
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

void fill(Record& record, const ImportedTrace& made) {
  const traces::Imported& trace = made.trace;
  const traces::ImportedModel* const imported = made.model_or_null();
  const auto of_model = [&](const auto& get) {
    return imported ? std::optional(get(*imported)) : std::nullopt;
  };
  record.add("format", trace.format, "Format of the trace");
  record.add("events", trace.events, "Number of events or nodes in it");
  record.list("steps", trace.steps, "Complete steps of the trace; times are in seconds", fill_step);
  record.add("gradients", of_model([](const auto& of) { return of.model.gradients.size(); }),
             "Number of gradients of the model; null without a model");
  record.add("elements", of_model([](const auto& of) { return models::total_elements(of.model); }),
             "Number of elements of the model");
  record.add("world_size", trace.world_size, "Number of ranks of the traced job");
  record.add("hardware", told(trace.hardware), "GPU that the trace names");
  record.add("collectives", trace.collectives, "Number of collectives in a Chakra trace");
  record.add("cpu_duplicates", trace.cpu_duplicates,
             "Collectives recorded on both CPU and GPU; the CPU's records are left out");
  record.add("not_told", sentences(trace.not_told),
             "Information that the trace lacks, one sentence each");
  record.add("diagnostics", sentences(made.diagnostics),
             "Assumptions and omissions, one sentence each");
  record.section(trace.mix.has_value(), [&] {
    record.by_name(
        "mix",
        [&] {
          return imported && imported->model.mix ? std::optional(shares_of(*imported->model.mix))
                                                 : std::nullopt;
        },
        "Share of each class of kernels in the computation; null if too many kernels are not "
        "recognised. Only for traces with kernels",
        "Share from 0 to 1");
    record.add(
        "mix_unrecognised_share", [&] { return trace.mix->unrecognised; },
        "Share of kernels that were not recognised");
  });
  record.section(imported && imported->traced, [&] {
    record.add(
        "most_gain", [&] { return sentence(models::most_gain(*imported->traced)); },
        "Upper bound of the share of a step that a plan can save, in a sentence");
  });
  record.section(imported != nullptr, [&] { fill_account(record, imported); });
  record.section(imported && !imported->sharding, [&] {
    record.add(
        "sent_dtype", [&] { return told(imported->account.sent_dtype); },
        "Type in which gradients travel; only for jobs without shards");
  });
  record.section(imported && imported->sharding, [&] { fill_sharding(record, imported); });
  record.section(imported != nullptr, [&] { fill_collectives(record, imported); });
}

io::Document document(const ImportedTrace& made) { return document_of(made); }

constinit const ResultForm kImportForm = {"import_trace", "An imported trace",
                                          "Result of an import_trace request",
                                          schema_of<ImportedTrace>};

io::Document answer(const ImportRequest& request, const Hooks& hooks) {
  look_for_interrupt(hooks);
  const ImportedTrace imported = import_trace(request);
  look_for_interrupt(hooks);
  if (imported.refusal) throw UnmetWithResult(imported.refusal->what(), document(imported));
  write_model(request, imported);
  return document(imported);
}

}  // namespace hipress::requests
