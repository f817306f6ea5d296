#include "profiler/nccl_table.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "io/error.hpp"

namespace hipress::profiler {
namespace {

/// Program of nccl-tests to which a series of samples corresponds.
struct Meaning {
  std::string test;
  int ranks = 2;
  int sizes_per_x = 1;  ///< a row's size divided by the sample's x
};

std::optional<Meaning> meaning_of(const std::string& series) {
  if (series == "link.both_ways") return Meaning{.test = "sendrecv"};
  struct Prefix {
    std::string_view text, test;
    bool sums_up;
  };
  for (const Prefix& prefix :
       {Prefix{"all_reduce.", "all_reduce", false}, Prefix{"all_gather.", "all_gather", false},
        Prefix{"reduce_scatter.", "reduce_scatter", false},
        Prefix{"all_to_all.", "alltoall", false}, Prefix{"fan_in.", "gather", true},
        Prefix{"fan_out.", "scatter", true}}) {
    if (!series.starts_with(prefix.text)) continue;
    const char* const end = series.data() + series.size();
    int ranks = 0;
    const auto read = std::from_chars(series.data() + prefix.text.size(), end, ranks);
    if (read.ec != std::errc() || read.ptr != end || ranks < 1) continue;  // not a number of ranks
    return Meaning{std::string(prefix.test), ranks, prefix.sums_up ? ranks : 1};
  }
  return std::nullopt;
}

bool sums(const std::string& test) { return test == "all_reduce" || test == "reduce_scatter"; }

}  // namespace

double bus_factor(const std::string& test, int ranks) {
  const double n = ranks;
  if (test == "all_reduce") return 2 * (n - 1) / n;
  constexpr std::array kOnce{"all_gather", "reduce_scatter", "alltoall", "gather", "scatter"};
  if (std::ranges::count(kOnce, test) > 0) return (n - 1) / n;
  if (test == "sendrecv") return 1;
  throw std::invalid_argument("nccl-tests have no " + io::quote(test));
}

std::vector<NcclRow> nccl_rows(const costs::Profile& profile) {
  std::vector<NcclRow> rows;
  for (const costs::Profile::Series& series : profile.samples) {
    const auto meaning = meaning_of(series.name);
    if (!meaning) continue;
    for (const costs::Sample& sample : series.samples) {
      NcclRow row{.test = meaning->test,
                  .ranks = meaning->ranks,
                  .size_bytes = sample.x * meaning->sizes_per_x,
                  .time_s = sample.median_s};
      row.algbw = static_cast<double>(row.size_bytes) / row.time_s;
      row.busbw = row.algbw * bus_factor(row.test, row.ranks);
      rows.push_back(row);
    }
  }
  return rows;
}

void print_nccl_table(std::ostream& out, const std::vector<NcclRow>& rows) {
  const NcclRow* before = nullptr;
  for (const NcclRow& row : rows) {
    if (before == nullptr || before->test != row.test || before->ranks != row.ranks) {
      fmt::print(out, "# {} of {} ranks\n", row.test, row.ranks);
      fmt::print(out, "#{:>11} {:>13} {:>9} {:>7} {:>9} {:>8} {:>8}\n", "size", "count", "type",
                 "redop", "time", "algbw", "busbw");
      fmt::print(out, "#{:>11} {:>13} {:>9} {:>7} {:>9} {:>8} {:>8}\n", "(B)", "(elements)", "", "",
                 "(us)", "(GB/s)", "(GB/s)");
    }
    before = &row;
    fmt::print(out, " {:>11} {:>13} {:>9} {:>7} {:>9.2f} {:>8.2f} {:>8.2f}\n", row.size_bytes,
               row.size_bytes / 4, "float", sums(row.test) ? "sum" : "none", row.time_s * 1e6,
               row.algbw / 1e9, row.busbw / 1e9);
  }
}

}  // namespace hipress::profiler
