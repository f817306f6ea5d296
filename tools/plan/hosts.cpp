#include "tools/plan/hosts.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <iostream>
#include <string>

#include "io/interrupts.hpp"
#include "io/quantity.hpp"
#include "io/spelling.hpp"
#include "requests/hosts.hpp"
#include "tools/frame.hpp"

namespace hipress::planner {
namespace {

/// Prints the answer's sentence, the table of numbers of hosts, and the changes that would help.
void print_hosts(const requests::HostsAnswer& answer) {
  fmt::print(std::cout, "{}\n\n", io::as_command_line(answer.sentence));
  fmt::print(std::cout, "{:>6} {:>6} {:>10} {:>10} {:>10} {:>16} {:>10} {:>16} {:>8}  {}\n",
             "hosts", "GPUs", "step", "compute", "exposed", answer.unit + "/s", "efficiency",
             "one more adds", "memory", "bound by");
  const auto* first = &answer.rows.front();
  for (const requests::HostsRow& row : answer.rows) {
    fmt::print(
        std::cout, "{:>6} {:>6} {:>10} {:>10} {:>10} {:>16.4g} {:>8.0f} % {:>16} {:>8}  {}\n",
        row.hosts, row.gpus, io::format_duration(row.iteration_s),
        io::format_duration(row.compute_s), io::format_duration(row.exposed_s()), row.units_per_s,
        100 * row.efficiency, &row == first ? "-" : fmt::format("{:.0f} % of one", 100 * row.added),
        io::format_amount(row.memory_bytes(), 3),
        answer.fits(row) ? row.bound_by : "memory: it does not fit");
  }
  fmt::print(std::cout, "\nwith plan {}, on GPUs of {}{}; on {} host{}, throughput with\n",
             answer.plan, io::format_amount(answer.gpu_memory_bytes, 3),
             first->activation_bytes > 0 ? "" : " (activations are unknown, and not counted)",
             answer.rows.back().hosts, answer.rows.back().hosts > 1 ? "s" : "");
  for (const requests::HostsChange& change : answer.changes) {
    fmt::print(std::cout, "  {:<48} {:.2f} times as much{}\n", change.what, change.speedup,
               change.fits ? "" : ", but it does not fit");
  }
}

}  // namespace

bool answer_hosts(const Options& options) {
  if (options.request.hosts.size() < 2) return false;
  const io::InterruptScope scope;
  requests::Hooks hooks = {.warn = tools::warn, .inform = tools::inform};
  hooks.interrupted = &io::InterruptScope::flag();
  const requests::HostsAnswer answer = requests::compare_hosts(options.request, hooks);
  if (options.json) {
    std::cout << document(answer).print(2) << '\n';
  } else {
    print_hosts(answer);
  }
  return true;
}

}  // namespace hipress::planner
