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

}  // namespace

void print_report(const Imported& trace, const ImportedModel* imported,
                  const std::vector<std::string>& diagnostics) {
  fmt::print(std::cout, "{}, {}{}, {} {}\n\n", trace.format,
             trace.hardware.empty() ? "hardware not told" : trace.hardware,
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
  if (imported) {
    fmt::print(std::cout, "{} gradients, {} elements\n", imported->model.gradients.size(),
               models::total_elements(imported->model));
    if (imported->traced)
      fmt::print(std::cout, "{}\n", io::as_command_line(models::most_gain(*imported->traced)));
  }
  for (const std::string& sentence : trace.not_told) {
    fmt::print(std::cout, "not told: {}\n", io::as_command_line(sentence));
  }
  for (const std::string& sentence : diagnostics) tools::inform(sentence);
}

}  // namespace hipress::traces
