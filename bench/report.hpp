#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "io/file.hpp"

/// Common code of the benchmarks. It times a subject together with its reference, and prints and
/// writes the results.
namespace hipress::bench {

/// Limits of a comparison.
struct TimingOptions {
  int least_rounds = 5;   ///< in each round, subject and reference are timed once
  int most_rounds = 50;   ///< more rounds give a steadier median
  double budget_s = 2.0;  ///< after least_rounds, rounds end once this time is spent
};

/// Seconds per call: the median over the rounds, and the minimum.
struct Timing {
  double median_s = 0;
  double fastest_s = 0;
};

/// Times of a subject and its reference. They alternate in one run, so that clock frequency,
/// temperature and other programs affect both alike.
struct PairedTiming {
  Timing subject;
  Timing reference;
};

inline double seconds_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline Timing summarise(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t half = samples.size() / 2;
  const double median =
      samples.size() % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
  return {median, samples.front()};
}

/// Times `subject` and `reference` in turns, after one untimed call of each.
inline PairedTiming compare(const auto& subject, const auto& reference,
                            const TimingOptions& options = {}) {
  subject();
  reference();
  std::vector<double> subject_s, reference_s;
  double spent_s = 0;
  for (int round = 0; round < options.most_rounds; ++round) {
    if (round >= options.least_rounds && spent_s > options.budget_s) break;
    subject_s.push_back(seconds_of(subject));
    reference_s.push_back(seconds_of(reference));
    spent_s += subject_s.back() + reference_s.back();
  }
  return {summarise(std::move(subject_s)), summarise(std::move(reference_s))};
}

/// One line of a benchmark's result. `value` is ours. `reference` was measured in the same run or
/// is a goal. Both are in units of `metric`; the ratio is value over reference.
struct Row {
  std::string name;  ///< "onebit.encode"
  std::string metric;
  double value = 0;
  std::string reference_name;
  double reference = 0;
};

/// Description of this machine and program: processor, logical cores, compiler, kind of build.
inline nlohmann::json machine() {
  std::string processor = "unknown";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) {
      processor = line.substr(line.find(':') + 2);
      break;
    }
  }
#ifdef NDEBUG
  const char* build = "optimised";
#else
  const char* build = "with assertions";
#endif
  return {{"processor", processor},
          {"logical_cores", std::thread::hardware_concurrency()},
          {"compiler", __VERSION__},
          {"build", build}};
}

/// Collects rows. Prints each row when it is added, so that a long run shows its progress.
class Report {
 public:
  void add(Row row) {
    if (rows_.empty()) {
      fmt::print("{:32} {:>10} {:>10}  {:14} {:>10} {:>7}\n", "case", "metric", "value",
                 "reference", "", "ratio");
    }
    fmt::print("{:32} {:>10} {:>10.4g}  {:14} {:>10.4g} {:>7.3f}\n", row.name, row.metric,
               row.value, row.reference_name, row.reference, row.value / row.reference);
    std::fflush(stdout);
    rows_.push_back(std::move(row));
  }

  /// True if no row has been added.
  bool empty() const { return rows_.empty(); }

  /// Results as {"machine": {…}, "rows": [{"case", "metric", "value", "reference_name",
  /// "reference", "ratio"} …]}.
  nlohmann::json json() const {
    nlohmann::json rows = nlohmann::json::array();
    for (const Row& row : rows_) {
      rows.push_back({{"case", row.name},
                      {"metric", row.metric},
                      {"value", row.value},
                      {"reference_name", row.reference_name},
                      {"reference", row.reference},
                      {"ratio", row.value / row.reference}});
    }
    return {{"machine", machine()}, {"rows", std::move(rows)}};
  }

  /// Writes json() to `path`, unless the path is empty (no --json).
  void write(const std::string& path) const {
    if (path.empty()) return;
    io::write_file(path, [&](std::ostream& out) { out << json().dump(2) << '\n'; });
  }

 private:
  std::vector<Row> rows_;
};

}  // namespace hipress::bench
