#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "casync/strategy_model.hpp"
#include "models/model.hpp"
#include "planner/bound/costs.hpp"
#include "planner/choices/choices.hpp"
#include "planner/timing/evaluation.hpp"

namespace hipress::planner {

using casync::Work;

/// The least that one option of one gradient costs, whatever the rest of the plan does; all times
/// in picoseconds. docs/bound.md derives every number.
struct OptionWork {
  Work port;              ///< of an egress (and of an ingress)
  Work codec;             ///< of a codec stream, at the fastest node's speed
  double local = 0;       ///< of the link between a node's GPUs
  double collective = 0;  ///< of the library's all-reduces, of which a node runs one at a time
  double host = 0;        ///< of a host's port, the mean over hosts; 0: hosts have none
  double end = 0;         ///< when the gradient can be synchronised at the earliest
  double port_head = 0;   ///< from the gradient's ready time to the first message
  double port_tail = 0;   ///< from the last message's leaving to the end
  double codec_head = 0;  ///< the same of what codec streams do, from the first node's ready
                          ///< time, since merges wait for messages
  double own_head = 0;    ///< to what codec streams do, from their own node's ready time
  double codec_tail = 0;
  std::uint32_t servers = 0;  ///< partitions that nodes g, g+1, … mod N serve; 0: `all` has it all
  std::uint16_t option = 0;   ///< index into Choices::gradients[g]
  /// In a bulk group, where a member's part is known: of each of the group's N slices.
  struct InGroup {
    casync::SliceCosts slice;  ///< what it takes at the least
    casync::SliceCosts share;  ///< this member's part of that, as work on resources
    casync::SliceCosts slope;  ///< of which this is what grows with its size
  };
  std::optional<InGroup> in_group = {};
};

/// When gradients are complete, and on which nodes.
struct ReadyTimes {
  std::vector<std::uint32_t> order;           ///< gradients as backward completes them
  std::vector<std::vector<double>> of_speed;  ///< per speed and place in `order`, picoseconds
  std::vector<double> speeds;                 ///< distinct ones, the fastest first
  std::vector<std::uint32_t> speed_of;        ///< per node: index into `speeds`
  std::vector<double> compute_end;            ///< per speed

  double first(std::size_t place) const { return of_speed.front()[place]; }
  double last(std::size_t place) const { return of_speed.back()[place]; }
};
ReadyTimes ready_times(const models::Model& model, const costs::Cluster& cluster);

/// What is sent raw, and with each of the algorithms, costs at the least; nothing is said of those
/// in stages. The algorithms must outlive it. InputError if the profile lacks one.
std::vector<Form> forms_of(const Machines& machines,
                           const std::vector<casync::Algorithm>& algorithms,
                           const ReadyTimes& ready);

/// The least work of every option of every gradient, by place in the order of backward, in plans
/// of one scheme, whose strategies have bound terms. Gradients that may be in a bulk group have
/// options for that too. InputError if the profile lacks an algorithm.
std::vector<std::vector<OptionWork>> least_work(const models::Model& model,
                                                const Machines& machines, const Choices& choices,
                                                const Scheme& scheme, const ReadyTimes& ready);

}  // namespace hipress::planner
