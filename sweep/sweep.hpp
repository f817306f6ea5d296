#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/simulator.hpp"
#include "sweep/cache.hpp"
#include "sweep/planning.hpp"
#include "sweep/spec.hpp"

/// Sweeps: simulate every combination of the values of a spec, and write a CSV row for each:
///
///     const SweepSpec spec = read_sweep("spec.yaml");
///     Sweep sweep(spec, Shard());  // or parse_shard("2/8")
///     sweep.require_room(8, io::available_memory());
///     const std::vector<SweepRow> rows = sweep.run(8, [](std::int64_t, std::int64_t) {});
///     io::write_file("rows.csv", [&](std::ostream& out) {
///       write_sweep(out, spec, Shard(), rows, sweep.provenance());
///     });
namespace hipress::sweep {

/// Part `index` (from 1) of `count` of a sweep's points. It is a contiguous range, so concatenating
/// the files of all parts gives the whole file.
struct Shard {
  std::int64_t index = 1;
  std::int64_t count = 1;
  std::int64_t begin(std::int64_t points) const { return points * (index - 1) / count; }
  std::int64_t end(std::int64_t points) const { return points * index / count; }
};
/// Parses "2/8". Throws InputError for anything else.
Shard parse_shard(std::string_view text);

/// The 10th and 90th percentiles.
struct Percentiles {
  double p10 = 0, p90 = 0;
};

/// One row of the CSV.
struct SweepRow {
  Point point{};
  double bandwidth = 0;  ///< rate of the links, bytes per second
  double latency_s = 0;
  double overhead_s = 0;
  casync::Picoseconds iteration{};
  casync::Picoseconds compute{};
  casync::Picoseconds synchronisation{};
  double speedup = 1;                           ///< iteration time of plan `none` / this one's
  std::optional<double> speedup_over_ddp = {};  ///< over plan `ddp`; empty: no such plan
  std::int64_t tasks = 0;                       ///< tasks of the whole, unfolded graph
  /// 10th and 90th percentiles of the iteration time in seconds; empty if not requested.
  std::optional<Percentiles> interval_s = {};
  std::optional<Percentiles> speedup_over_ddp_interval = {};
};

/// Size of a sweep, known before it simulates.
struct SweepSize {
  std::int64_t points = 0;
  std::int64_t planned = 0;      ///< plans made
  std::int64_t graphs = 0;       ///< graphs expanded, each once
  std::int64_t simulations = 0;  ///< distinct simulations, of points and baselines
  double tasks = 0;              ///< tasks of all simulations
  std::int64_t known = 0;        ///< points that need no simulation, since the cache has them
};

/// Settings for the simulations of a sweep.
struct Simulating {
  Cache* cache = nullptr;  ///< outcomes and searched plans; may be null, must outlive the sweep
  bool intervals = false;  ///< compute percentiles, which takes two more simulations each
  std::function<bool()> stop = {};  ///< sim::Options::stop
};

/// A sweep, or a shard of it. Each point has two baselines: plan `none`, which sends every gradient
/// uncompressed and alone, and plan `ddp`, if it can be made. They have all axis values of the
/// point except plan, algorithm and partitions. Equal baselines are simulated once.
class Sweep {
 public:
  /// Loads all inputs, and reads or makes every plan. Plans named in Planning::names are made for
  /// the machines of each point. Throws InputError, with the spec's line, for inputs that cannot be
  /// loaded, plans that do not fit their model or cannot be made, algorithms that a profile lacks,
  /// clusters of a different size, and graphs of more than 100 million tasks.
  Sweep(const SweepSpec& spec, const Shard& shard, const Planning& planning = {},
        const Simulating& simulating = {});
  ~Sweep();

  const SweepSize& size() const;
  /// Provenance: one line for this program, and one with the fingerprint of each input.
  std::vector<std::string> provenance() const;

  /// Throws InputError unless any `jobs` concurrent simulations with graphs fit into
  /// `memory_bytes`.
  void require_room(unsigned jobs, std::int64_t memory_bytes) const;

  /// Simulates with `jobs` threads. Each thread simulates one graph at a time. The rows do not
  /// depend on `jobs`. `progress` counts simulations. Each outcome is cached at once, so neither a
  /// rerun nor another sweep with equal points simulates it again.
  std::vector<SweepRow> run(unsigned jobs, const Progress& progress);

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// Column names of the CSV, with units.
std::vector<std::string> sweep_columns();

/// Names of the axes' columns, at any place.
std::vector<std::string> axis_columns();

/// A cell of the CSV; empty text: no value.
struct SweepCell {
  std::string text;
  bool number = false;  ///< true in columns of numbers
};

/// Cells of a row, in column order.
std::vector<SweepCell> sweep_cells(const SweepSpec& spec, const SweepRow& row);

/// Writes the rows as CSV, exact to the picosecond. The first shard's file begins with the
/// provenance, as comments, and the column names.
void write_sweep(std::ostream& out, const SweepSpec& spec, const Shard& shard,
                 const std::vector<SweepRow>& rows,
                 const std::vector<std::string>& provenance = {});

/// Names of axes whose values do not change the rows, such as "latency". Requires all rows.
std::vector<std::string_view> axes_without_effect(const SweepSpec& spec,
                                                  const std::vector<SweepRow>& rows);

}  // namespace hipress::sweep
