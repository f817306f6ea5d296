#include "costs/nccl_log.hpp"

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
  std::string_view program;
  Operation operation;
  GatherCosts Profile::*measured;
};
constexpr std::array<Test, 4> kTests = {{
    {"all_reduce_perf", Operation::kAllReduce, &Profile::all_reduce},
    {"all_gather_perf", Operation::kAllGather, &Profile::all_gather},
    {"reduce_scatter_perf", Operation::kReduceScatter, &Profile::reduce_scatter},
    {"alltoall_perf", Operation::kAllToAll, &Profile::all_to_all},
}};

/// The line without "[1,0]<stdout>:" of mpirun or "0: " of srun.
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

/// Seconds of a row: the first number behind the type that its bandwidth, in 10^9 bytes per second
/// with two decimals, agrees with. Versions differ in the columns between.
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

}  // namespace

NcclLog read_nccl_log(const std::string& path) {
  const std::vector<std::string> lines = io::read_lines(path);
  NcclLog log;
  const Test* test = nullptr;
  const auto look_for_test = [&](std::string_view text) {
    for (const Test& one : kTests) {
      if (test == nullptr && text.find(one.program) != std::string_view::npos) test = &one;
    }
  };
  bool ended = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = without_prefix(lines[i]);
    const std::vector<std::string> words = words_of(line);
    look_for_test(line);
    if (words.size() > 2 && words[0] == "#" && words[1] == "Rank" && number<int>(words[2])) {
      ++log.ranks;
    }
    ended = ended || line.find("# Avg bus bandwidth") != std::string_view::npos;
    const auto bytes = words.size() > 5 ? number<std::int64_t>(words[0]) : std::nullopt;
    if (!bytes || *bytes <= 0 || !number<std::int64_t>(words[1])) continue;
    const auto seconds = seconds_of(words, static_cast<double>(*bytes));
    if (!seconds) {
      throw io::InputError(path, static_cast<int>(i + 1),
                           "a row of nccl-tests has size, count, type, …, time and algbw, which "
                           "are size/time: copy the log again");
    }
    if (log.times.empty() || log.times.back().first < *bytes)
      log.times.emplace_back(*bytes, *seconds);
  }
  look_for_test(path);
  const auto refuse = [&](const std::string& why) {
    throw io::InputError(path, static_cast<int>(lines.size()), why);
  };
  if (test == nullptr) {
    refuse(
        "says of no test that is read (all_reduce_perf, all_gather_perf, reduce_scatter_perf, "
        "alltoall_perf): name the file after it");
  }
  if (log.times.empty()) refuse("has no rows of nccl-tests");
  if (!ended) refuse("ends without '# Avg bus bandwidth', so the run was cut short: run it again");
  if (log.ranks < 2)
    refuse("does not list two ranks or more ('#  Rank  0 …'): keep the log's head");
  log.test = test->program;
  log.operation = test->operation;
  return log;
}

void add_to_profile(const NcclLog& log, Profile& profile) {
  const auto test = std::ranges::find(kTests, log.operation, &Test::operation);
  Curve curve;
  for (std::size_t i = 0; i < log.times.size(); ++i) {
    const auto [bytes, seconds] = log.times[i];
    // The last piece goes on as the one before it, and a time that falls is held until the next.
    double slope = 0;
    if (i + 1 < log.times.size()) {
      slope =
          (log.times[i + 1].second - seconds) / static_cast<double>(log.times[i + 1].first - bytes);
    } else if (i > 0) {
      slope =
          (seconds - log.times[i - 1].second) / static_cast<double>(bytes - log.times[i - 1].first);
    }
    slope = std::max(slope, 0.0);
    double constant = seconds - slope * static_cast<double>(bytes);
    if (i == 0 && constant < 0) {
      constant = 0;
      slope = seconds / static_cast<double>(bytes);
    }
    curve.pieces.push_back({.from = static_cast<double>(bytes), .a_s = constant, .b_s = slope});
  }
  (profile.*test->measured)[log.ranks] = std::move(curve);
}

}  // namespace hipress::costs
