#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plans/trust.hpp"
#include "requests/field.hpp"
#include "requests/hooks.hpp"
#include "requests/record.hpp"
#include "sweep/sweep.hpp"

/// The request "sweep", which hipress-sim sweep makes of its command line.
namespace hipress::requests {

struct SweepRequest {
  io::Document spec;   ///< the name of a YAML file, or what would be in it
  std::string output;  ///< CSV to write; empty: none is
  unsigned jobs = 0;   ///< 0: one per usable core
  std::string shard = "1/1";
  std::string cache;  ///< a folder; empty: beside the output; "none": nothing is kept
  bool no_intervals = false;
  std::string algorithms;
  std::int64_t evaluations = planner::kEvaluations;
  plans::Trust trust;
  GivenFields given = {};
};

/// Its fields; they point into the request. `spec` tells which have an effect; null: it has not
/// been read yet.
Fields fields(SweepRequest& request, const sweep::SweepSpec* spec = nullptr);

/// Reads what the request sweeps. io::InputError as sweep::read_sweep().
sweep::SweepSpec read_spec(const SweepRequest& request);

/// The folder in which the request keeps what it has simulated; empty: it keeps nothing.
std::string cache_folder(const SweepRequest& request);

/// What was swept, and what came of it.
struct Swept {
  sweep::SweepSpec spec;
  std::vector<std::string> provenance;  ///< Sweep::provenance()
  sweep::SweepSize size;
  std::vector<sweep::SweepRow> rows;
};

/// Reads the spec, makes its plans, simulates its points, and writes the CSV if an output is named.
/// Outcomes that an earlier request left in the cache, even one that was killed, are not simulated
/// again. io::InputError, with the line of the spec, for what makes no sense.
Swept sweep(const SweepRequest& request, const Hooks& hooks);

/// The columns of the CSV, its rows with numbers as numbers and null where there is none, and what
/// was simulated for them.
io::Document document(const Swept& swept);
void fill(Record& record, const Swept& swept);

/// Answers the request.
io::Document answer(const SweepRequest& request, const Hooks& hooks);

}  // namespace hipress::requests
