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

namespace hipress::sweep {

/// Part `index` (from 1) of `count` of a sweep's points: contiguous, so that the parts' files one
/// after the other are the whole file.
struct Shard {
  std::int64_t index = 1;
  std::int64_t count = 1;
  std::int64_t begin(std::int64_t points) const { return points * (index - 1) / count; }
  std::int64_t end(std::int64_t points) const { return points * index / count; }
};
/// "2/8"; InputError for anything else.
Shard parse_shard(std::string_view text);

/// 10th and 90th percentile.
struct Percentiles {
  double p10 = 0, p90 = 0;
};

/// One row of the CSV.
struct SweepRow {
  Point point{};
  double bandwidth = 0;  ///< of the links in bytes per second, wherever it comes from
  double latency_s = 0;
  double overhead_s = 0;
  casync::Picoseconds iteration{};
  casync::Picoseconds compute{};
  casync::Picoseconds synchronisation{};
  double speedup = 1;                           ///< iteration time of plan `none` over this one's
  std::optional<double> speedup_over_ddp = {};  ///< the same of plan `ddp`; none: there is no such
  std::int64_t tasks = 0;  ///< of the whole graph, of which one node's share may be simulated
  /// Of the iteration in seconds, by how the profile's costs are spread; none: not asked for.
  std::optional<Percentiles> interval_s = {};
  std::optional<Percentiles> speedup_over_ddp_interval = {};
};

/// What a sweep comes to, known before anything is simulated.
struct SweepSize {
  std::int64_t points = 0;
  std::int64_t planned = 0;      ///< plans that were made for it
  std::int64_t graphs = 0;       ///< that are expanded, once each
  std::int64_t simulations = 0;  ///< points and baselines, equal ones counted once
  double tasks = 0;              ///< of all simulations together
  std::int64_t known = 0;        ///< points of which nothing is simulated: the cache has all
};

/// How a sweep's points are simulated, beside Planning.
struct Simulating {
  Cache* cache = nullptr;  ///< of outcomes and searched plans; null: none. Must outlive the sweep
  bool intervals = false;  ///< two more simulations for each: with other host work and other links
  std::function<bool()> stop = {};  ///< sim::Options::stop
};

/// A sweep, or a shard of it. A point's baselines are plan `none`, which sends every gradient
/// alone, and `ddp` if it can be planned. Apart from plan, algorithm and partitions, baselines have
/// the values of the point. Points with the same baselines share one simulation of each.
class Sweep {
 public:
  /// Loads what the spec names, and resolves or makes every plan. A plan of Planning::names is made
  /// for the machines of each of its points. InputError at the line of the spec for what cannot be
  /// loaded, a plan that does not fit its model or that cannot be made, an algorithm that a profile
  /// lacks, a cluster of another size, and a graph of more than 100 million tasks.
  Sweep(const SweepSpec& spec, const Shard& shard, const Planning& planning = {},
        const Simulating& simulating = {});
  ~Sweep();

  const SweepSize& size() const;
  /// What it was made of, a line each: this program, and the contents of its inputs.
  std::vector<std::string> provenance() const;

  /// InputError unless as many simulations at a time, with their graphs, fit into that memory,
  /// however those that run together are chosen.
  void require_room(unsigned jobs, std::int64_t memory_bytes) const;

  /// Simulates with `jobs` threads, each with one graph at a time; the rows do not depend on their
  /// number. `progress` counts simulations. Each outcome is in the cache as soon as it is known: if
  /// the sweep is run again, or another one has equal points, it need not be simulated again.
  std::vector<SweepRow> run(unsigned jobs, const Progress& progress);

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// The names of the CSV's columns, with their units.
std::vector<std::string> sweep_columns();

/// Those of axes, whatever place they have.
std::vector<std::string> axis_columns();

/// A value of the CSV, as it is written there: empty where there is none.
struct SweepCell {
  std::string text;
  bool number = false;  ///< of a column of numbers
};

/// A row's values, in the order of the columns.
std::vector<SweepCell> sweep_cells(const SweepSpec& spec, const SweepRow& row);

/// The rows as CSV, exact to the picosecond; the first shard begins with the lines of provenance,
/// as comments, and the names of the columns.
void write_sweep(std::ostream& out, const SweepSpec& spec, const Shard& shard,
                 const std::vector<SweepRow>& rows,
                 const std::vector<std::string>& provenance = {});

/// The axes whose values all give the same rows, "latency", …; the rows are a whole sweep's.
std::vector<std::string_view> axes_without_effect(const SweepSpec& spec,
                                                  const std::vector<SweepRow>& rows);

}  // namespace hipress::sweep
