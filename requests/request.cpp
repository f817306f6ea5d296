#include "requests/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "io/input_file.hpp"
#include "io/suggestion.hpp"
#include "requests/import_trace.hpp"
#include "requests/plan.hpp"
#include "requests/profile.hpp"
#include "requests/replay.hpp"
#include "requests/result_forms.hpp"
#include "requests/simulate.hpp"
#include "requests/sweep.hpp"

namespace hipress::requests {
namespace {

template <class Request>
io::Document schema_of(const RequestRow& row) {
  Request request;
  return schema(row.name, row.help, fields(request));
}

template <class Request>
io::Document read_and_answer(const io::Document& given, const Hooks& hooks) {
  Request request;
  read(given, fields(request));
  return answer(request, hooks);
}

template <class Request>
constexpr RequestRow row_of(std::string_view name, std::string_view help) {
  return {name, help, schema_of<Request>, read_and_answer<Request>};
}

constexpr RequestRow kRequests[] = {
    row_of<PlanRequest>("plan",
                        "Decides which gradients to compress, and into how many partitions to cut "
                        "them, as hipress-plan does."),
    row_of<SimulateRequest>("simulate",
                            "Predicts one iteration of a plan: the time at which each gradient is "
                            "synchronised, and the critical path, as hipress-sim does."),
    row_of<SweepRequest>("sweep",
                         "Predicts every combination of the values that a spec lists, one row "
                         "each, as hipress-sim sweep does."),
    row_of<ReplayRequest>(
        "replay",
        "Synchronises a model's gradients between real ranks by a plan, verifies every value, and "
        "compares measured with predicted times, as hipress-exec does."),
    row_of<ProfileRequest>("profile",
                           "Measures compression kernels and links of this machine, as "
                           "hipress-profile does."),
    row_of<ImportRequest>("import_trace",
                          "Reads a trace of a training job: the exposed communication of a step, "
                          "and the model that the job trains, as hipress-import does."),
};
constexpr std::string_view kSchema = "schema", kResultSchema = "result_schema";

/// Forms of results, in the order of the reference page.
constexpr const ResultForm* kForms[] = {
    &kPlanForm,  &kBandwidthForm, &kHostsForm,  &kBroadcastForm, &kSimulateForm, &kChakraForm,
    &kSweepForm, &kImportForm,    &kReplayForm, &kProfileForm,   &kErrorForm};

/// Schemas of all forms, in lists by request. They allow no further members.
io::Document result_schemas() {
  io::Document all = io::Document::object();
  for (const ResultForm* const form : kForms) {
    io::Document made = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                         {"title", form->title}};
    made.update(form->schema());
    made["description"] = form->when;
    all[form->of].push_back(std::move(made));
  }
  return all;
}

io::Document all_schemas() {
  io::Document all = io::Document::object();
  for (const RequestRow& row : kRequests) all[row.name] = row.schema(row);
  return all;
}

std::string name_of(const io::Document& request) {
  std::vector<std::string_view> known;
  for (const RequestRow& row : kRequests) known.push_back(row.name);
  known.insert(known.end(), {kSchema, kResultSchema});
  if (request.members() == nullptr) {
    throw FieldError("", fmt::format("a request must be an object, got {}", request.describe()),
                     R"(give {"request": "plan", …})");
  }
  const io::Document* said = request.find("request");
  if (said == nullptr || said->text() == nullptr) {
    throw FieldError("request",
                     fmt::format("\"request\" must be one of {}, got {}", fmt::join(known, ", "),
                                 said == nullptr ? "none" : said->describe()));
  }
  if (std::ranges::find(known, *said->text()) == known.end()) {
    throw FieldError("request", fmt::format("unknown request {}{}", io::quote(*said->text()),
                                            io::suggestion(*said->text(), known)));
  }
  return *said->text();
}

}  // namespace

std::span<const RequestRow> requests() { return kRequests; }

io::Document answer(const io::Document& request, const Hooks& hooks) {
  const std::string name = name_of(request);
  if (name == kSchema) return all_schemas();
  if (name == kResultSchema) return result_schemas();
  const io::InputScope inputs;  // lets the output of one request be the input of the next
  look_for_interrupt(hooks);
  return std::ranges::find(kRequests, name, &RequestRow::name)->answer(request, hooks);
}

}  // namespace hipress::requests
