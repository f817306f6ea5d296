#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costs/collective_model.hpp"

namespace hipress::costs {

/// A published measurement of a collective, beside what the model says of it.
struct PublishedCollective {
  std::string table;      ///< that it was published in
  std::string machine;    ///< read_machine()
  std::string operation;  ///< operation_named()
  std::string algorithm;  ///< "default", which the library chooses itself, or a forced one
  Ranks ranks;
  std::int64_t bytes = 0;
  double measured_s = 0;
  CollectiveWay predicted;

  /// Predicted over measured, less 1.
  double error() const { return predicted.seconds / measured_s - 1; }
};

/// Reads a CSV with the columns table, machine, hosts, gpus, collective, algorithm, bytes and
/// time_s, and predicts each of its rows from the machine's data sheet alone. InputError with file
/// and line for other columns, a machine that is not known, or values that make no sense.
std::vector<PublishedCollective> predict_collectives(const std::string& path);

}  // namespace hipress::costs
