#include "tools/sim/collectives_command.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "costs/collective_table.hpp"
#include "io/document.hpp"
#include "io/quantity.hpp"
#include "io/utf8.hpp"
#include "tools/frame.hpp"
#include "tools/options/fields.hpp"

namespace hipress::sim {
namespace {

using costs::PublishedCollective;

struct CollectivesCommand {
  std::vector<std::string> tables;
  bool json = false;
};

void print_json(const std::vector<PublishedCollective>& rows) {
  io::Document list = io::Document::list();
  for (const PublishedCollective& row : rows) {
    list.push_back({{"table", io::printable(row.table)},
                    {"machine", row.machine},
                    {"hosts", row.ranks.hosts},
                    {"gpus", row.ranks.gpus},
                    {"collective", row.operation},
                    {"asked_algorithm", row.algorithm},
                    {"bytes", row.bytes},
                    {"measured_s", row.measured_s},
                    {"predicted_s", row.predicted.seconds},
                    {"planned_s", row.predicted.planned_s},
                    {"algorithm", row.predicted.algorithm},
                    {"protocol", row.predicted.protocol},
                    {"error", row.error()}});
  }
  std::cout << io::Document{{"rows", list}}.print(2) << '\n';
}

void print_table(const std::vector<PublishedCollective>& rows) {
  fmt::print(std::cout, "{:<18} {:<16} {:>5} {:>5} {:<14} {:>10} {:>12} {:>12} {:>7}  {}\n",
             "table", "machine", "hosts", "gpus", "collective", "bytes", "measured", "predicted",
             "error", "by");
  for (const PublishedCollective& row : rows) {
    fmt::print(std::cout,
               "{:<18} {:<16} {:>5} {:>5} {:<14} {:>10} {:>12} {:>12} {:>+6.1f}%  {}/{}\n",
               io::printable(row.table), row.machine, row.ranks.hosts, row.ranks.gpus,
               row.operation, io::format_size(row.bytes), io::format_duration(row.measured_s),
               io::format_duration(row.predicted.seconds), 100 * row.error(),
               row.predicted.algorithm, row.predicted.protocol);
  }
}

int run(const CollectivesCommand& options) {
  std::vector<PublishedCollective> rows;
  for (const std::string& table : options.tables) {
    const std::vector<PublishedCollective> of_table = costs::predict_collectives(table);
    rows.insert(rows.end(), of_table.begin(), of_table.end());
  }
  if (options.json) {
    print_json(rows);
  } else {
    print_table(rows);
  }
  return 0;
}

}  // namespace

int run_collectives_command(int argc, char** argv) {
  CollectivesCommand options;
  const tools::ToolInfo info = {
      .name = "hipress-sim collectives",
      .purpose =
          "Compares predicted times of a library's collectives on hosts of GPUs, from data sheets, "
          "with published times. A table has the columns table, machine, hosts, gpus, collective, "
          "algorithm, bytes and time_s; machine is one of machines/, algorithm may be default, or "
          "gloo.",
      .example = "hipress-sim collectives costs/data/collectives.csv",
      .needs_arguments = true};
  return tools::run_tool(
      argc, argv, info,
      [&](CLI::App& app) {
        app.add_option("TABLE", options.tables, "CSV files of published collectives")->required();
        tools::declare_json(app, options.json);
      },
      [&] { return run(options); });
}

}  // namespace hipress::sim
