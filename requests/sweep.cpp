#include "requests/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <ostream>
#include <system_error>
#include <utility>

#include "io/error.hpp"
#include "io/file.hpp"
#include "io/memory.hpp"
#include "io/processors.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "requests/headings.hpp"
#include "requests/result_forms.hpp"
#include "requests/shared_fields.hpp"

namespace hipress::requests {
namespace {

using sweep::Shard;
using sweep::SweepSize;
using sweep::SweepSpec;

/// Callback for sweeps, called after each plan or simulation.
sweep::Progress progress_of(const Hooks& hooks, std::string_view stage) {
  return [hooks, stage](std::int64_t done, std::int64_t all) {
    look_for_interrupt(hooks);
    if (!hooks.progress) return;
    hooks.progress({.stage = stage,
                    .share = static_cast<double>(done) / static_cast<double>(all),
                    .done = done,
                    .all = all});
  };
}

void warn_of_unused(const SweepSpec& spec, const Shard& shard,
                    const std::vector<sweep::SweepRow>& rows, const Hooks& hooks) {
  if (shard.count > 1) return;  // one shard does not show the effects of all values
  for (const std::string_view axis : axes_without_effect(spec, rows)) {
    warn(hooks, fmt::format("axis {} has no effect: all its values give the same times", axis));
  }
}

/// Returns a number if the whole text is one, else the text: some columns also contain words.
io::Document value_of(const sweep::SweepCell& cell) {
  if (!cell.number) return cell.text;
  if (cell.text.empty()) return nullptr;
  const char* const end = cell.text.data() + cell.text.size();
  std::int64_t whole = 0;
  const auto [whole_end, no_whole] = std::from_chars(cell.text.data(), end, whole);
  if (no_whole == std::errc() && whole_end == end) return whole;
  double number = 0;
  const auto [number_end, no_number] = std::from_chars(cell.text.data(), end, number);
  if (no_number == std::errc() && number_end == end) return number;
  return cell.text;
}

}  // namespace

Fields fields(SweepRequest& request, const SweepSpec* spec) {
  Fields made(request.given);
  const auto any = [spec](sweep::Axis axis, const auto& has) {
    return std::ranges::any_of(spec->values[axis],
                               [&](const sweep::AxisValue& value) { return has(value.text); });
  };
  const Case no_search =
      when([=] { return spec != nullptr && !any(sweep::kPlan, planner::is_searched); },
           "no plan of the spec needs a search");
  const auto is_file = [](const std::string& text) {
    return text.find_first_of("/.") != std::string::npos;
  };
  const Case no_program = when(
      [=] {
        return spec != nullptr && !any(sweep::kPlan, is_file) && !any(sweep::kAlgorithm, is_file);
      },
      "the spec names no program and no plan file that could bring one");
  made.under(headings::kJob);
  made.add("spec", &request.spec,
           "YAML that lists the values of each axis: a file, or the text itself in braces")
      .must_be_given();
  made.under(headings::kOutput);
  made.add("output", &request.output, "CSV to write: one row per point, whole or not at all")
      .file();
  made.under(headings::kRun);
  made.add("jobs", &request.jobs,
           "Number of threads; the output does not depend on it (default: one per core)")
      .from(1, 4096);
  made.add("shard", &request.shard,
           "I/M: the I-th of M contiguous parts. Only the first has the header, so that the "
           "concatenated files of all parts are the whole file")
      .with_default();
  made.add("cache", &request.cache,
           "Folder that keeps simulated points, so that the same sweep after an interruption, and "
           "any other with equal points, need not simulate them again; none: keep nothing "
           "(default: OUTPUT.cache)");
  made.add(
      "no_intervals", &request.no_intervals,
      "Leave the columns of 10-90 % intervals empty, which needs only a third of the simulations");
  made.under(headings::kPlan);
  made.add("algorithm", &request.algorithms,
           "Programs (x.pse,y.pse) that the spec and its plans may bring")
      .idle(no_program);
  made.add("evaluations", &request.evaluations,
           "Number of plans that the search for plan 'best' simulates at each point; a larger "
           "number takes longer and may find a better plan")
      .from(1)
      .with_default()
      .idle(no_search);
  add(made, request.trust, no_program);
  return made;
}

SweepSpec read_spec(const SweepRequest& request) {
  plans::Trust trust = request.trust;
  if (!request.algorithms.empty()) trust.named = kernels::split_algorithms(request.algorithms);
  for (const std::string& name : trust.named) {
    if (kernels::program_file(name)) continue;
    throw io::InputError(
        fmt::format("`algorithm` {} is no program (x.pse); in a sweep it names the programs that "
                    "the spec may bring. Axis algorithm of the spec names the codec of plans",
                    io::quote(name)));
  }
  const std::string* const text = request.spec.text();
  if (text != nullptr && text->starts_with('{')) return sweep::parse_sweep(*text, "spec", trust);
  if (text != nullptr) return sweep::read_sweep(*text, trust);
  // JSON is YAML, so a spec inside a request is read like a file.
  return sweep::parse_sweep(request.spec.print(2), "spec", trust);
}

std::string cache_folder(const SweepRequest& request) {
  if (request.cache == "none") return "";
  if (!request.cache.empty() || request.output.empty()) return request.cache;
  std::error_code error;
  const auto kind = std::filesystem::status(request.output, error).type();
  const bool is_file =
      kind == std::filesystem::file_type::regular || kind == std::filesystem::file_type::not_found;
  return is_file ? request.output + ".cache" : "";
}

namespace {

void describe(const SweepSize& size, const sweep::Cache* cache, const Hooks& hooks) {
  std::string text =
      fmt::format("{} points, {} plans made, {} graphs, {} simulations, about {:.3g} tasks in all",
                  size.points, size.planned, size.graphs, size.simulations, size.tasks);
  if (size.known > 0) {
    text += fmt::format("; {} of the points are known from {}", size.known, cache->folder());
  }
  inform(hooks, text);
}

void warn_of_incredible(const std::optional<sweep::Cache>& cache, const Hooks& hooks) {
  if (!cache || cache->incredible() == 0) return;
  warn(hooks, fmt::format("{} lines in {} hold times that no simulation yields, and are ignored: "
                          "find out who wrote them, and delete the folder",
                          cache->incredible(), cache->folder()));
}

Swept sweep_with(const SweepRequest& request, const Shard& shard, sweep::Cache* cache,
                 const Hooks& hooks) {
  Swept made;
  made.spec = read_spec(request);
  SweepRequest known = request;
  warn_of_idle(fields(known, &made.spec), hooks);
  if (!request.output.empty()) io::refuse_input(request.output);
  const unsigned jobs =
      request.jobs > 0 ? request.jobs : static_cast<unsigned>(io::usable_cores().size());
  sweep::Sweep points(
      made.spec, shard,
      {.evaluations = request.evaluations, .jobs = jobs, .progress = progress_of(hooks, "plans")},
      {.cache = cache, .intervals = !request.no_intervals, .stop = [&hooks] {
         return hooks.interrupted.is_set();
       }});
  made.size = points.size();
  made.provenance = points.provenance();
  if (hooks.stage_done) hooks.stage_done();
  describe(made.size, cache, hooks);
  points.require_room(jobs, io::available_memory());
  made.rows = points.run(jobs, progress_of(hooks, "simulations"));
  if (hooks.stage_done) hooks.stage_done();
  return made;
}

}  // namespace

Swept sweep(const SweepRequest& request, const Hooks& hooks) {
  look_for_interrupt(hooks);
  const Shard shard = sweep::parse_shard(request.shard);
  if (!request.output.empty()) io::require_writable(request.output);
  std::optional<sweep::Cache> cache;
  if (const std::string folder = cache_folder(request); !folder.empty()) cache.emplace(folder);
  warn_of_incredible(cache, hooks);
  Swept made;
  try {
    made = sweep_with(request, shard, cache ? &*cache : nullptr, hooks);
  } catch (const sim::Stopped&) {
    throw Interrupted();
  }
  if (!request.output.empty()) {
    io::refuse_input(request.output);
    io::write_file(request.output, [&](std::ostream& out) {
      write_sweep(out, made.spec, shard, made.rows, made.provenance);
    });
  }
  warn_of_unused(made.spec, shard, made.rows, hooks);
  return made;
}

void fill(Record& record, const Swept& swept) {
  record.add("provenance", swept.provenance, "Inputs that the rows depend on, one sentence each");
  record.add("points", swept.size.points, "Number of points in the spec or in the shard");
  record.add("known_points", swept.size.known, "Number of those taken from the cache");
  record.add("plans", swept.size.planned, "Number of searched plans");
  record.add("graphs", swept.size.graphs, "Number of built graphs");
  record.add("simulations", swept.size.simulations, "Simulations");
  record.add("tasks", swept.size.tasks, "Number of simulated tasks");
  record.add(
      "columns", [] { return sweep::sweep_columns(); }, "Names of a row's columns, as in the CSV");
  record.add(
      "axes", [] { return sweep::axis_columns(); }, "Names of the columns that are axes");
  std::vector<std::vector<io::Document>> rows;
  for (const sweep::SweepRow& row : swept.rows) {
    std::vector<io::Document>& values = rows.emplace_back();
    for (const sweep::SweepCell& cell : sweep_cells(swept.spec, row)) {
      values.push_back(value_of(cell));
    }
  }
  record.add("rows", rows, "Values of a row in the order of the columns; null for absent values");
}

constinit const ResultForm kSweepForm = {"sweep", "A sweep", "Result of a sweep request",
                                         schema_of<Swept>};

io::Document document(const Swept& swept) { return document_of(swept); }

io::Document answer(const SweepRequest& request, const Hooks& hooks) {
  return document(sweep(request, hooks));
}

}  // namespace hipress::requests
