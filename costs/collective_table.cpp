#include "costs/collective_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <map>
#include <string_view>

#include "io/error.hpp"
#include "io/file.hpp"

namespace hipress::costs {
namespace {

constexpr std::array<std::string_view, 8> kColumns = {"table",      "machine",   "hosts", "gpus",
                                                      "collective", "algorithm", "bytes", "time_s"};

template <typename Number>
Number number(std::string_view text, std::string_view column, Number least) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= least)) {
    throw io::InputError(fmt::format("{} must be a number of at least {}, got {}", column, least,
                                     io::quote(std::string(text))));
  }
  return value;
}

/// Values of the column `algorithm` for Gloo: its own choice, and the prefix of a forced algorithm.
constexpr std::string_view kGloo = "gloo", kOfGloo = "gloo_";

class Reader {
 public:
  PublishedCollective row(const std::string& line) {
    const std::vector<std::string_view> fields = io::split_fields(line);
    if (fields.size() != kColumns.size()) {
      throw io::InputError(fmt::format("must have {} columns, as the first line says, got {}",
                                       kColumns.size(), fields.size()));
    }
    PublishedCollective row;
    row.table = fields[0];
    row.machine = fields[1];
    row.ranks.hosts = number<std::uint32_t>(fields[2], kColumns[2], 1);
    row.ranks.gpus = number<std::uint32_t>(fields[3], kColumns[3], 1);
    row.operation = fields[4];
    row.algorithm = fields[5];
    row.bytes = number<std::int64_t>(fields[6], kColumns[6], 1);
    row.measured_s = number<double>(fields[7], kColumns[7], 1e-9);
    Machine on = machine(row.machine);
    std::string_view algorithm = row.algorithm == "default" ? "" : std::string_view(row.algorithm);
    if (algorithm == kGloo || algorithm.starts_with(kOfGloo)) {
      use_library(kGloo, on);
      algorithm.remove_prefix(std::min(kOfGloo.size(), algorithm.size()));
    }
    row.predicted = collective_time(on, on_one_fabric(row), operation_named(row.operation),
                                    static_cast<double>(row.bytes), algorithm);
    return row;
  }

 private:
  const Machine& machine(const std::string& name) {
    const auto known = machines_.find(name);
    return known != machines_.end() ? known->second
                                    : machines_.emplace(name, read_machine(name)).first->second;
  }

  /// Treats hosts in one NVLink fabric, such as the trays of an NVL72, as one host.
  Ranks on_one_fabric(const PublishedCollective& row) {
    const Machine& on = machine(row.machine);
    Ranks ranks = row.ranks;
    if (ranks.hosts > 1 && on.gpus > kMostInAHost && ranks.gpus <= on.gpus) ranks.hosts = 1;
    return ranks;
  }

  static constexpr std::uint32_t kMostInAHost = 16;
  std::map<std::string, Machine> machines_;
};

}  // namespace

std::vector<PublishedCollective> predict_collectives(const std::string& path) {
  const std::vector<std::string> lines = io::read_lines(path);
  const std::string header = fmt::format("{}", fmt::join(kColumns, ","));
  if (lines.empty() || lines[0] != header) {
    throw io::InputError(path, 1, fmt::format("the first line must be {}", header));
  }
  std::vector<PublishedCollective> rows;
  Reader reader;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    try {
      rows.push_back(reader.row(lines[i]));
    } catch (const std::exception& error) {
      throw io::InputError(path, static_cast<int>(i + 1), error.what());
    }
  }
  if (rows.empty()) throw io::InputError(path, 1, "has no rows: give at least one measurement");
  return rows;
}

}  // namespace hipress::costs
