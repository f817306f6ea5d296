#include "tools/plan/hosts.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <cstdint>
#include <iostream>
#include <vector>

#include "io/quantity.hpp"
#include "io/spelling.hpp"
#include "requests/hosts.hpp"
#include "tools/frame.hpp"

namespace hipress::planner {
namespace {

/// Prints the table of numbers of hosts, what would be otherwise, and the sentence first.
void print_hosts(const requests::HostsAnswer& answer) {
  fmt::print(std::cout, "{}\n\n", io::as_command_line(answer.sentence));
  fmt::print(std::cout, "{:>6} {:>6} {:>10} {:>10} {:>10} {:>16} {:>20}\n", "hosts", "GPUs", "step",
             "compute", "exposed", answer.unit + "/s", "a host more adds");
  const auto* before = &answer.rows.front();
  for (const requests::HostsRow& row : answer.rows) {
    fmt::print(std::cout, "{:>6} {:>6} {:>10} {:>10} {:>10} {:>16.4g} {:>20}\n", row.hosts,
               row.gpus, io::format_duration(row.iteration_s), io::format_duration(row.compute_s),
               io::format_duration(row.exposed_s()), row.units_per_s,
               &row == before ? "-" : fmt::format("{:.0f} % of the first", 100 * row.added));
  }
  fmt::print(std::cout, "\nwith plan {}; on {} host{}, throughput with\n", answer.plan,
             answer.rows.back().hosts, answer.rows.back().hosts > 1 ? "s" : "");
  for (const requests::HostsChange& change : answer.changes) {
    fmt::print(std::cout, "  {:<36} {:.2f} times as much\n", change.what, change.speedup);
  }
}

}  // namespace

bool answer_hosts(Options& options) {
  if (options.hosts.empty()) return false;
  const std::vector<std::uint32_t> hosts = requests::parse_hosts(options.hosts);
  if (hosts.size() == 1) {
    options.request.request.machines.hosts = hosts.front();
    return false;
  }
  const requests::HostsAnswer answer = requests::compare_hosts(
      options.request, hosts, {.warn = tools::warn, .inform = tools::inform});
  if (options.json) {
    std::cout << document(answer).print(2) << '\n';
  } else {
    print_hosts(answer);
  }
  return true;
}

}  // namespace hipress::planner
