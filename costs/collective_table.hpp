#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costs/collective_model.hpp"

namespace hipress::costs {

/// A published measurement of a collective, with the model's prediction.
struct PublishedCollective {
  std::string table;      ///< name of the published table
  std::string machine;    ///< name for read_machine()
  std::string operation;  ///< name for operation_named()
  std::string algorithm;  ///< "default" (the library's choice) or a forced one
  Ranks ranks;
  std::int64_t bytes = 0;
  double measured_s = 0;
  CollectiveWay predicted;

  /// Relative error: predicted / measured − 1.
  double error() const { return predicted.seconds / measured_s - 1; }
};

/// Reads a CSV with the columns table, machine, hosts, gpus, collective, algorithm, bytes and
/// time_s, and predicts each row from the machine's data sheet alone. Throws InputError with file
/// and line for other columns, an unknown machine or invalid values.
std::vector<PublishedCollective> predict_collectives(const std::string& path);

}  // namespace hipress::costs
