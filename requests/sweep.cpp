#include "requests/sweep.hpp"

#include <fmt/format.h>

#include <charconv>
#include <ostream>
#include <system_error>
#include <utility>

#include "io/file.hpp"
#include "io/memory.hpp"
#include "io/processors.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "requests/shared_fields.hpp"

namespace hipress::requests {
namespace {

using sweep::Shard;
using sweep::SweepSize;
using sweep::SweepSpec;

SweepSpec read_spec(const SweepRequest& request) {
  plans::Trust trust = request.trust;
  trust.named = kernels::split_algorithms(request.algorithms);
  if (const std::string* file = request.spec.text()) return sweep::read_sweep(*file, trust);
  // JSON is YAML, so that a spec within a request is read as a file is.
  return sweep::parse_sweep(request.spec.print(2), "spec", trust);
}

/// What sweeps call after each plan or simulation.
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
  if (shard.count > 1) return;  // a part does not tell
  for (const std::string_view axis : axes_without_effect(spec, rows)) {
    warn(hooks, fmt::format("axis {} has no effect: all its values give the same times", axis));
  }
}

/// A number where all of the text is one; some columns have words as well.
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

Fields fields(SweepRequest& request) {
  Fields made;
  made.add("spec", &request.spec, "YAML that lists the values of each axis").must_be_given();
  made.add("output", &request.output, "CSV to write: one row per point, whole or not at all")
      .file();
  made.add("jobs", &request.jobs,
           "Threads; the output does not depend on it (default: one per core)")
      .from(1, 4096);
  made.add("shard", &request.shard,
           "I/M: the I-th of M contiguous parts. Only the first has the header, so that the "
           "parts' files one after the other are the whole file")
      .with_default();
  made.add("algorithm", &request.algorithms,
           "Programs (x.pse,y.pse) that the spec and its plans may bring");
  made.add("evaluations", &request.evaluations,
           "Plans that the search for plan 'best' simulates at each point; more: a better "
           "plan, later")
      .from(1)
      .with_default();
  add(made, request.trust);
  return made;
}

Swept sweep(const SweepRequest& request, const Hooks& hooks) {
  look_for_interrupt(hooks);
  const Shard shard = sweep::parse_shard(request.shard);
  Swept made;
  made.spec = read_spec(request);
  if (!request.output.empty()) {
    io::require_writable(request.output);
    io::refuse_input(request.output);
  }
  const unsigned jobs =
      request.jobs > 0 ? request.jobs : static_cast<unsigned>(io::usable_cores().size());
  sweep::Sweep points(
      made.spec, shard,
      {.evaluations = request.evaluations, .jobs = jobs, .progress = progress_of(hooks, "plans")});
  made.size = points.size();
  if (hooks.stage_done) hooks.stage_done();
  const SweepSize& size = made.size;
  inform(
      hooks,
      fmt::format("{} points, {} plans made, {} graphs, {} simulations, about {:.3g} tasks in all",
                  size.points, size.planned, size.graphs, size.simulations, size.tasks));
  points.require_room(jobs, io::available_memory());
  made.rows = points.run(jobs, progress_of(hooks, "simulations"));
  if (hooks.stage_done) hooks.stage_done();
  if (!request.output.empty()) {
    io::refuse_input(request.output);
    io::write_file(request.output,
                   [&](std::ostream& out) { write_sweep(out, made.spec, shard, made.rows); });
  }
  warn_of_unused(made.spec, shard, made.rows, hooks);
  return made;
}

io::Document document(const Swept& swept) {
  io::Document rows = io::Document::list();
  for (const sweep::SweepRow& row : swept.rows) {
    io::Document::List values;
    for (const sweep::SweepCell& cell : sweep_cells(swept.spec, row)) {
      values.push_back(value_of(cell));
    }
    rows.push_back(io::Document::list(std::move(values)));
  }
  return {{"points", swept.size.points},
          {"plans", swept.size.planned},
          {"graphs", swept.size.graphs},
          {"simulations", swept.size.simulations},
          {"tasks", swept.size.tasks},
          {"columns", sweep::sweep_columns()},
          {"rows", rows}};
}

io::Document answer(const SweepRequest& request, const Hooks& hooks) {
  return document(sweep(request, hooks));
}

}  // namespace hipress::requests
