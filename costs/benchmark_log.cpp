#include "costs/benchmark_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>
#include <string_view>

#include "io/error.hpp"
#include "io/file.hpp"

namespace hipress::costs {
namespace {

struct Test {
  std::string_view program;  ///< program of nccl-tests
  std::string_view title;    ///< OSU's title, as in "# OSU MPI-CUDA Allgather Latency Test"
  Operation operation;
  GatherCosts Profile::*measured;
  bool osu_counts_share;  ///< OSU gives the size of one rank's share
};
constexpr std::array<Test, 4> kTests = {{
    {"all_reduce_perf", "Allreduce", Operation::kAllReduce, &Profile::all_reduce, false},
    {"all_gather_perf", "Allgather", Operation::kAllGather, &Profile::all_gather, true},
    {"reduce_scatter_perf", "Reduce_scatter", Operation::kReduceScatter, &Profile::reduce_scatter,
     false},
    {"alltoall_perf", "All-to-All", Operation::kAllToAll, &Profile::all_to_all, true},
}};

/// Removes the prefix of mpirun ("[1,0]<stdout>:") or srun ("0: ") from a line.
std::string_view without_prefix(std::string_view line) {
  constexpr std::string_view kMpirun = "<stdout>:";
  if (const std::size_t at = line.find(kMpirun); at != std::string_view::npos) {
    return line.substr(at + kMpirun.size());
  }
  const std::size_t first = line.find_first_not_of("0123456789 ");
  if (first != std::string_view::npos && first > 0 && line[first] == ':') {
    return line.substr(first + 1);
  }
  return line;
}

template <typename Number>
std::optional<Number> number(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Seconds of a row: the first number after the type that agrees with the bandwidth in the next
/// column (10^9 bytes per second, two decimals). Versions differ in the columns before it.
std::optional<double> seconds_of(const std::vector<std::string>& words, double bytes) {
  for (std::size_t i = 3; i + 1 < words.size(); ++i) {
    const auto time_us = number<double>(words[i]), bandwidth = number<double>(words[i + 1]);
    if (!time_us || !bandwidth || !(*time_us > 0)) continue;
    if (std::abs(bytes / *time_us / 1e3 - *bandwidth) <= 0.006 + 0.02 * *bandwidth) {
      return *time_us * 1e-6;
    }
  }
  return std::nullopt;
}

std::vector<std::string> words_of(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

[[noreturn]] void refuse(const std::string& path, std::size_t line, const std::string& why) {
  throw io::InputError(path, static_cast<int>(line), why);
}

void add_row(BenchmarkLog& log, std::int64_t bytes, double value) {
  if (log.rows.empty() || log.rows.back().first < bytes) log.rows.emplace_back(bytes, value);
}

/// A log without line prefixes.
struct Lines {
  const std::string& path;
  std::vector<std::string> lines = {};
};

BenchmarkLog read_nccl(const Lines& of) {
  BenchmarkLog log;
  log.ranks = 0;
  const Test* test = nullptr;
  const auto look_for_test = [&](std::string_view text) {
    for (const Test& one : kTests) {
      if (test == nullptr && text.find(one.program) != std::string_view::npos) test = &one;
    }
  };
  bool ended = false;
  for (std::size_t i = 0; i < of.lines.size(); ++i) {
    const std::vector<std::string> words = words_of(of.lines[i]);
    look_for_test(of.lines[i]);
    if (words.size() > 2 && words[0] == "#" && words[1] == "Rank" && number<int>(words[2])) {
      ++log.ranks;
    }
    ended = ended || of.lines[i].find("# Avg bus bandwidth") != std::string::npos;
    const auto bytes = words.size() > 5 ? number<std::int64_t>(words[0]) : std::nullopt;
    if (!bytes || *bytes <= 0 || !number<std::int64_t>(words[1])) continue;
    const auto seconds = seconds_of(words, static_cast<double>(*bytes));
    if (!seconds) {
      refuse(of.path, i + 1,
             "a row of nccl-tests has size, count, type, …, time and algbw, which are size/time: "
             "copy the log again");
    }
    add_row(log, *bytes, *seconds);
  }
  look_for_test(of.path);
  if (test == nullptr) {
    refuse(of.path, of.lines.size(),
           "names no known test (all_reduce_perf, all_gather_perf, reduce_scatter_perf, "
           "alltoall_perf): name the file after it");
  }
  if (!ended && !log.rows.empty()) {
    refuse(of.path, of.lines.size(),
           "ends without '# Avg bus bandwidth', so the run was cut short: run it again");
  }
  if (log.ranks < 2 && !log.rows.empty()) {
    refuse(of.path, of.lines.size(),
           "does not list two ranks or more ('#  Rank  0 …'): keep the log's head");
  }
  log.test = test->program;
  log.operation = test->operation;
  return log;
}

/// Parses OSU's title: the words between "OSU MPI…" and " Latency Test" or " Test".
BenchmarkLog titled_by_osu(const Lines& of, std::size_t line, std::optional<int> ranks) {
  const std::vector<std::string> words = words_of(of.lines[line]);
  BenchmarkLog log;
  // # OSU MPI[-CUDA] NAME [NAME …] Test vN
  const std::string name = words.size() > 3 ? words[3] : "";
  const std::string next = words.size() > 4 ? words[4] : "";
  log.test = "OSU " + name;
  if (name == "Bandwidth" && next == "Test") {
    log.measured = Measured::kBandwidth;
  } else if (name == "Latency" && next == "Test") {
    log.measured = Measured::kLatency;
  } else if (const auto test = std::ranges::find(kTests, name, &Test::title);
             test != kTests.end()) {
    log.operation = test->operation;
    if (!ranks) {
      refuse(of.path, line + 1,
             fmt::format("OSU's {} does not give the number of ranks: give `ranks`", name));
    }
    log.ranks = *ranks;
  } else {
    refuse(of.path, line + 1,
           fmt::format("'{}' is not supported; supported tests of OSU are: osu_allreduce, "
                       "osu_allgather, osu_reduce_scatter, osu_alltoall, osu_bw, osu_latency",
                       of.lines[line]));
  }
  return log;
}

BenchmarkLog read_osu(const Lines& of, std::size_t title, std::optional<int> ranks) {
  BenchmarkLog log = titled_by_osu(of, title, ranks);
  const auto test = std::ranges::find(kTests, log.operation, &Test::operation);
  const bool bandwidth = log.measured == Measured::kBandwidth;
  const std::int64_t factor =
      log.measured == Measured::kCollective && test->osu_counts_share ? log.ranks : 1;
  bool in_us = false, in_mb = false;
  for (std::size_t i = title + 1; i < of.lines.size(); ++i) {
    if (of.lines[i].find("# OSU ") != std::string::npos) {
      refuse(of.path, i + 1, "a second test begins here: put each into a file of its own");
    }
    in_us = in_us || of.lines[i].find("Latency(us)") != std::string::npos ||
            of.lines[i].find("Latency (us)") != std::string::npos;
    in_mb = in_mb || of.lines[i].find("(MB/s)") != std::string::npos;
    const std::vector<std::string> words = words_of(of.lines[i]);
    if (words.empty() || words[0].starts_with('#')) continue;
    const auto bytes = number<std::int64_t>(words[0]);
    if (!bytes) continue;
    const auto value = words.size() > 1 ? number<double>(words[1]) : std::nullopt;
    if (!value || !(*value > 0) || *bytes < 0 || !(bandwidth ? in_mb : in_us)) {
      refuse(of.path, i + 1,
             bandwidth ? "a row of osu_bw has size and bandwidth below '# Size  Bandwidth (MB/s)'"
                       : "a row of OSU's has size and latency below '# Size  Latency (us)'");
    }
    if (*bytes > 0) add_row(log, *bytes * factor, bandwidth ? *value * 1e6 : *value * 1e-6);
  }
  return log;
}

/// A column of perftest, and its unit in bytes per second or seconds. Its MB are 2^20 bytes.
struct PerftestColumn {
  std::string_view title;
  Measured measured;
  double unit;
};
constexpr std::array<PerftestColumn, 5> kPerftestColumns = {{
    {"average[MB/sec]", Measured::kBandwidth, 0x1p20},
    {"average[MiB/sec]", Measured::kBandwidth, 0x1p20},
    {"average[Gb/sec]", Measured::kBandwidth, 1e9 / 8},
    {"t_typical[usec]", Measured::kLatency, 1e-6},
    {"t_avg[usec]", Measured::kLatency, 1e-6},
}};

BenchmarkLog read_perftest(const Lines& of, std::size_t head) {
  // A title may have two words, such as "BW average[MB/sec]".
  std::vector<std::string> titles = words_of(of.lines[head]);
  std::erase(titles, "BW");
  const PerftestColumn* column = nullptr;
  std::size_t place = 0;
  for (const PerftestColumn& one : kPerftestColumns) {
    const auto found = std::ranges::find(titles, one.title);
    if (found == titles.end() || column != nullptr) continue;
    column = &one;
    place = static_cast<std::size_t>(found - titles.begin());
  }
  if (column == nullptr) {
    refuse(of.path, head + 1,
           "perftest's columns have no 'BW average[…]', 't_typical[usec]' or 't_avg[usec]'");
  }
  BenchmarkLog log;
  log.measured = column->measured;
  log.test = "perftest";
  for (std::size_t i = 0; i < head; ++i) {
    const std::size_t end = of.lines[i].find(" Test");
    if (end == std::string::npos || of.lines[i].find(" : ") != std::string::npos) continue;
    const std::size_t begin = of.lines[i].find_first_not_of(' ');
    if (begin < end) log.test = "perftest " + of.lines[i].substr(begin, end - begin);
  }
  for (std::size_t i = head + 1; i < of.lines.size(); ++i) {
    const std::vector<std::string> words = words_of(of.lines[i]);
    const auto bytes = words.empty() ? std::nullopt : number<std::int64_t>(words[0]);
    if (!bytes || *bytes <= 0) continue;
    const auto value = place < words.size() ? number<double>(words[place]) : std::nullopt;
    if (!value || !(*value > 0)) {
      refuse(of.path, i + 1, fmt::format("a row of perftest has a number in '{}'", column->title));
    }
    add_row(log, *bytes, *value * column->unit);
  }
  return log;
}

BenchmarkLog read_lines_of(const Lines& of, std::optional<int> ranks) {
  for (std::size_t i = 0; i < of.lines.size(); ++i) {
    if (of.lines[i].find("# OSU ") != std::string::npos) return read_osu(of, i, ranks);
    const std::vector<std::string> words = words_of(of.lines[i]);
    if (words.size() > 2 && words[0] == "#bytes") return read_perftest(of, i);
  }
  return read_nccl(of);
}

/// Curve through the rows. After the last row it goes on with the previous slope. Where the time
/// falls, it is constant until the next row.
Curve curve_through(const std::vector<std::pair<std::int64_t, double>>& rows) {
  Curve curve;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto [bytes, seconds] = rows[i];
    const auto slope_to = [&](std::size_t from) {
      return (rows[from + 1].second - rows[from].second) /
             static_cast<double>(rows[from + 1].first - rows[from].first);
    };
    double slope = i + 1 < rows.size() ? slope_to(i) : i > 0 ? slope_to(i - 1) : 0;
    slope = std::max(slope, 0.0);
    double constant = seconds - slope * static_cast<double>(bytes);
    if (i == 0 && constant < 0) {
      constant = 0;
      slope = seconds / static_cast<double>(bytes);
    }
    curve.pieces.push_back({.from = static_cast<double>(bytes), .a_s = constant, .b_s = slope});
  }
  return curve;
}

}  // namespace

BenchmarkLog read_benchmark_log(const std::string& path, std::optional<int> ranks) {
  Lines of = {path};
  for (const std::string& line : io::read_lines(path)) {
    of.lines.emplace_back(without_prefix(line));
  }
  BenchmarkLog log = read_lines_of(of, ranks);
  if (log.rows.empty()) {
    refuse(path, of.lines.size(), fmt::format("has no rows of {}: run it again", log.test));
  }
  if (ranks && log.ranks != *ranks) {
    refuse(path, of.lines.size(),
           fmt::format("is of {} ranks, not the {} of `ranks`", log.ranks, *ranks));
  }
  return log;
}

void add_to_profile(const BenchmarkLog& log, Profile& profile) {
  switch (log.measured) {
    case Measured::kCollective: {
      const auto test = std::ranges::find(kTests, log.operation, &Test::operation);
      (profile.*test->measured)[log.ranks] = curve_through(log.rows);
      break;
    }
    case Measured::kBandwidth:
      profile.link.set_bandwidth(log.rows.back().second);
      break;
    case Measured::kLatency:
      // The measured latency includes a message's overhead.
      profile.link.overhead_s = std::min(profile.link.overhead_s, log.rows.front().second);
      profile.link.latency_s = log.rows.front().second - profile.link.overhead_s;
      break;
  }
}

}  // namespace hipress::costs
