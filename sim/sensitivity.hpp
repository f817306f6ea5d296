#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "models/bound_by.hpp"
#include "sim/scenario.hpp"

namespace hipress::sim {

/// Something that could be 10 % better. Adding one is one row in improvements().
struct Improvement {
  std::string_view name;  ///< "bandwidth"
  std::string_view help;  ///< what "10 % better" means
  void (*apply)(Scenario& scenario);
};
std::span<const Improvement> improvements();

/// What an improvement would bring.
struct Sensitivity {
  std::string_view name;
  Picoseconds iteration{};  ///< with that improvement and no other
  Picoseconds change{};     ///< minus the iteration as it is: negative where it helps. A schedule
                            ///< without lookahead can also lose by having something faster
};

/// The iteration time with each improvement, in the order of improvements(): as many more
/// simulations. `graph` and `iteration` are the scenario's own.
std::vector<Sensitivity> sensitivities(const Scenario& scenario, const casync::TaskGraph& graph,
                                       Picoseconds iteration);

/// The share of the iteration that is saved if computation, the network, codecs and merges, or the
/// CPU's part of transfers were twice as fast: four more simulations. What is worth less than
/// nothing counts as nothing.
std::vector<models::Gain> gains(const Scenario& scenario, const casync::TaskGraph& graph,
                                Picoseconds iteration);

}  // namespace hipress::sim
