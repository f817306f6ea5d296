#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "casync/task_graph.hpp"

namespace hipress::casync {

/// What the expansion must know of a compression algorithm.
struct Algorithm {
  std::string name;
  /// Bytes on the wire of a slice of that many elements (at most, if it varies with the data).
  std::function<std::int64_t(std::int64_t elements)> encoded_bytes;
  /// Decoded values are as coarse as fp16 or bf16, so sums that travel are kept in range by
  /// dividing every contribution by N first.
  bool half_precision = false;
};

/// What is decided for one gradient.
struct Decision {
  std::int8_t algorithm = kRaw;  ///< index into Plan::algorithms, or kRaw
  std::int32_t partitions = 1;   ///< K: at least 1; partitions without elements make no tasks
};

/// How one model is synchronised.
struct Plan {
  std::string strategy = "ps";        ///< a row of strategies()
  std::uint32_t nodes = 1;            ///< N
  std::vector<Algorithm> algorithms;  ///< at most 127
  std::vector<Decision> decisions;    ///< one per gradient, in input order
};

/// The elements that partition k of K covers: ceil(m/K) rounded up to a multiple of 32 each, the
/// last one shorter, those behind it empty.
struct Slice {
  std::int64_t begin = 0;
  std::int64_t elements = 0;
};
Slice slice(std::int64_t elements, std::int64_t partitions, std::int64_t k);

}  // namespace hipress::casync
