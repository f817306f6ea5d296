#pragma once

#include "io/document.hpp"
#include "sim/simulator.hpp"
#include "traces/chakra_graph.hpp"

namespace hipress::requests {

/// A graph read from an export, and the result of simulating it again.
struct SimulatedChakra {
  traces::ChakraGraph exported;
  sim::Result result = {};  ///< result with its timeline

  /// True if every task starts and ends as exported, to the picosecond.
  bool as_exported() const {
    return result.timeline.start == exported.timeline.start &&
           result.timeline.end == exported.timeline.end;
  }
};

/// Document that --json prints.
io::Document document(const SimulatedChakra& simulated);

}  // namespace hipress::requests
