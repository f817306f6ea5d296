#include "tools/import/report.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <iostream>
#include <optional>

#include "io/quantity.hpp"
#include "io/spelling.hpp"
#include "tools/frame.hpp"

namespace hipress::traces {
namespace {

std::string or_dash(const std::optional<double>& seconds) {
  return seconds ? io::format_duration(*seconds) : "-";
}

std::string bytes(std::int64_t count) { return io::format_amount(count); }

/// Prints the layers in forward order, and the cost per step of each kind of collective.
void print_sharding(const Sharding& sharding) {
  fmt::print(
      std::cout, "{} layers, {} shards of each{}: {}\n\n", sharding.layers.size(), sharding.ranks,
      sharding.replicas > 1 ? fmt::format(", {} times", sharding.replicas) : "", sharding.schedule);
  fmt::print(std::cout, "{:<24} {:>12} {:>8} {:>11} {:>11} {:>9}\n", "layer", "elements", "gathers",
             "gathered", "reduced", "ready");
  for (std::size_t i = sharding.layers.size(); i-- > 0;) {
    const ShardedLayer& layer = sharding.layers[i];
    fmt::print(std::cout, "{:<24} {:>12} {:>8} {:>11} {:>11} {:>9}\n", layer.name, layer.elements,
               fmt::format("{}+{}", layer.forward_gathers, layer.backward_gathers),
               bytes(layer.gathered_bytes), bytes(layer.reduced_bytes), or_dash(layer.ready_s));
  }
  struct Row {
    const char* name;
    const KindTotal& total;
  };
  fmt::print(std::cout, "\n{:<24} {:>12} {:>8} {:>11} {:>9}\n", "a step's collectives", "bytes",
             "count", "time", "exposed");
  for (const Row& row :
       {Row{"all-gather", sharding.all_gather}, Row{"reduce-scatter", sharding.reduce_scatter},
        Row{"all-reduce of shards", sharding.all_reduce}, Row{"other", sharding.other}}) {
    if (row.total.count == 0) continue;
    fmt::print(std::cout, "{:<24} {:>12} {:>8} {:>11} {:>9}\n", row.name,
               row.total.bytes > 0 ? bytes(row.total.bytes) : "-", row.total.count,
               or_dash(row.total.time_s), or_dash(row.total.exposed_s));
  }
  fmt::print(std::cout, "\n");
}

/// Prints the parts of a step's time as the model has them.
void print_account(const models::Model& model, const models::Traced& traced) {
  const std::string times = model.micro_steps > 1 ? fmt::format("{} x ", model.micro_steps) : "";
  fmt::print(
      std::cout,
      "a step of {}: {}({} forward + {} backward) + {} optimizer and the rest + {} exposed\n",
      io::format_duration(traced.step_s), times, io::format_duration(model.forward_s),
      io::format_duration(models::backward_s(model)), io::format_duration(model.optimizer_s),
      io::format_duration(traced.exposed_communication_s));
}

/// Prints a model that was made from a description instead of a trace.
void print_described(const Imported& trace, const ImportedModel& imported,
                     const std::vector<std::string>& diagnostics) {
  fmt::print(std::cout, "{}: {} gradients, {} elements\n", trace.format,
             imported.model.gradients.size(), models::total_elements(imported.model));
  for (const std::string& sentence : diagnostics) tools::inform(sentence);
}

}  // namespace

void print_report(const Imported& trace, const ImportedModel* imported,
                  const std::vector<std::string>& diagnostics) {
  if (trace.events == 0 && imported) return print_described(trace, *imported, diagnostics);
  fmt::print(std::cout, "{}, {}{}, {} {}\n\n", trace.format,
             trace.hardware.empty() ? "hardware unknown" : trace.hardware,
             trace.world_size ? fmt::format(", {} ranks", *trace.world_size) : "", trace.events,
             trace.collectives > 0 ? "nodes" : "events");
  fmt::print(std::cout, "{:<18} {:>9} {:>9} {:>9} {:>13} {:>9} {:>9} {:>19}\n", "", "step",
             "forward", "compute", "communication", "exposed", "idle", "collective elements");
  for (const TracedStep& step : trace.steps) {
    const auto elements = step.collective_elements();
    fmt::print(std::cout, "{:<18} {:>9} {:>9} {:>9} {:>13} {:>9} {:>9} {:>19}\n", step.name,
               or_dash(step.length_s), or_dash(step.forward_s), or_dash(step.compute_s),
               or_dash(step.communication_s), or_dash(step.exposed_communication_s),
               or_dash(step.idle_s), elements ? std::to_string(*elements) : "-");
  }
  fmt::print(std::cout, "\n");
  if (imported && imported->sharding) print_sharding(*imported->sharding);
  if (imported) {
    fmt::print(std::cout, "{} gradients, {} elements\n", imported->model.gradients.size(),
               models::total_elements(imported->model));
    if (imported->model.mix) {
      fmt::print(std::cout, "mix of computation: {}\n", models::describe(*imported->model.mix));
    }
    if (imported->traced) print_account(imported->model, *imported->traced);
    if (imported->traced)
      fmt::print(std::cout, "{}\n", io::as_command_line(models::most_gain(*imported->traced)));
  }
  for (const std::string& sentence : trace.not_told) {
    fmt::print(std::cout, "not told: {}\n", io::as_command_line(sentence));
  }
  for (const std::string& sentence : diagnostics) tools::inform(sentence);
}

}  // namespace hipress::traces
