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

/// The request "sweep"; hipress-sim sweep makes it from its command line.
namespace hipress::requests {

struct SweepRequest {
  io::Document spec;   ///< name of a YAML file, or its contents
  std::string output;  ///< CSV file; empty: none
  unsigned jobs = 0;   ///< 0: one per usable core
  std::string shard = "1/1";
  std::string cache;  ///< folder; empty: beside the output; "none": no cache
  bool no_intervals = false;
  std::string algorithms;
  std::int64_t evaluations = planner::kEvaluations;
  plans::Trust trust;
  GivenFields given = {};
};

/// Fields of the request; they point into it. `spec` decides which have an effect; null: unread.
Fields fields(SweepRequest& request, const sweep::SweepSpec* spec = nullptr);

/// Reads the request's spec. Throws io::InputError as sweep::read_sweep() does.
sweep::SweepSpec read_spec(const SweepRequest& request);

/// Folder of cached results; empty: no cache.
std::string cache_folder(const SweepRequest& request);

struct Swept {
  sweep::SweepSpec spec;
  std::vector<std::string> provenance;  ///< Sweep::provenance()
  sweep::SweepSize size;
  std::vector<sweep::SweepRow> rows;
};

/// Reads the spec, makes its plans, simulates its points, and writes the CSV if an output is named.
/// Reuses cached results, including those of a killed request. Throws io::InputError, with a line
/// of the spec, for invalid specs.
Swept sweep(const SweepRequest& request, const Hooks& hooks);

/// Columns and rows of the CSV, with JSON's numbers and null, and the basis of the simulations.
io::Document document(const Swept& swept);
void fill(Record& record, const Swept& swept);

io::Document answer(const SweepRequest& request, const Hooks& hooks);

}  // namespace hipress::requests
