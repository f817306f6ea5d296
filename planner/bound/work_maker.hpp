#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "casync/factors.hpp"
#include "casync/topology.hpp"
#include "models/model.hpp"
#include "planner/bound/costs.hpp"
#include "planner/bound/ready_times.hpp"
#include "planner/bound/work.hpp"
#include "planner/choices/choices.hpp"

namespace hipress::planner {

using casync::Factors;
using casync::FactorSums;
using casync::SliceCosts;
using casync::Slices;

/// Computes the least work of each option of a scheme's gradients: for slices (sliced_work.cpp),
/// for whole gradients in a library's all-reduce (work_maker.cpp), and for factors
/// (factor_work.cpp). Holds the data that all gradients share.
class WorkMaker {
 public:
  WorkMaker(const models::Model& model, const Machines& machines, const Choices& choices,
            const Scheme& scheme, const ReadyTimes& ready);
  std::vector<OptionWork> options(std::size_t place);

 private:
  static std::size_t form_of(const casync::Decision& decision) {
    return static_cast<std::size_t>(decision.algorithm + 1);
  }
  const casync::Topology& topology_of(const casync::Decision& decision) const {
    return pair_.of(forms_[form_of(decision)].algorithm);
  }
  bool batched(std::int64_t elements) const {
    return elements * static_cast<std::int64_t>(sizeof(float)) < scheme_.batch.threshold_bytes;
  }
  SliceCosts costs_of(const Form& form, std::int64_t elements) const;
  /// Work that a slice adds to its codec stream. In a batch, only the cost per element counts.
  SliceCosts load_of(const Form& form, std::int64_t elements, const SliceCosts& alone) const;
  /// Costs of `count` slices together. All but the last are equal.
  static SliceCosts total(std::int64_t count, const SliceCosts& first, const SliceCosts& last);
  OptionWork alone(std::size_t place, const casync::Decision& decision);

  /// Work of an option, with its end relative to the ready times.
  struct Relative {
    OptionWork work;
    double after_first = 0;  ///< time from the first node's ready time to the end
    double after_last = 0;   ///< time from the last node's ready time to the end
  };

  /// Lower bounds of the stages' times on the fastest node, in ps.
  struct StageTimes {
    std::vector<double> encodes;
    double decode = 0;
  };
  StageTimes stage_times(const Factors& factors, const casync::Decision& decision) const;
  static void require_stages(const costs::CodecCosts& codec, std::size_t stages);
  /// Work of a gradient that is sent as factors. After each encode, the factor travels as raw
  /// values do, and every node's next encode waits for its mean. Other gradients decide which nodes
  /// serve a factor's partitions, so every node is charged the load of the least loaded node.
  OptionWork averaged(std::size_t place, const casync::Decision& decision, const Factors& factors,
                      const casync::Topology& topology);
  static bool is_whole(const casync::Topology& topology) {
    return topology.form == casync::Topology::Form::kWhole;
  }

  /// Loads that a factor's messages cause, and times until a node has its mean.
  struct FactorOnItsWay {
    OptionWork work;
    double first_to_mean = 0;  ///< time from the first node's encode until some node's next encode
                               ///< may begin
    double first_to_end = 0;   ///< time from the first node's encode until the last node's decode
                               ///< may begin
    double last_to_mean = 0, last_to_end = 0;  ///< the same times, from the last node's encode
    double last_to(bool last) const { return last ? last_to_end : last_to_mean; }
  };
  FactorOnItsWay on_its_way(const FactorSums& factor, std::int64_t partitions,
                            const casync::Topology& topology);
  const Relative& raw_relative(std::int64_t elements, std::int64_t partitions,
                               const casync::Topology& topology);
  static void add_factor(const FactorOnItsWay& factor, OptionWork& work);
  /// True if all-reduces count as load of ports. They do not on hierarchical clusters, nor with
  /// bursts, since burst credit returns during an all-reduce.
  bool all_reduces_load_ports() const {
    return !costs::is_hierarchical(machines_.cluster) && port_limit(machines_).credit == 0;
  }
  void finish(std::size_t place, const Relative& relative, OptionWork& work) const;
  /// Adds the decode that follows the mean of the last factor of a gradient with stages.
  void finish_stages(std::size_t place, const casync::Topology& topology, const StageTimes& times,
                     Relative& chain, OptionWork& work) const;
  Relative relative(const Form& form, std::int64_t elements, std::int64_t partitions,
                    const casync::Topology& topology);
  double chain(const Slices& slices, const casync::BoundTerms& terms) const;
  /// Time of the chain from the ready time of the last node.
  double chain_of_last(const Slices& slices, const casync::BoundTerms& terms) const;
  /// Lower bound of the time from the first node's ready time to the first message's arrival.
  double first_arrival(const Slices& slices) const;
  void add_loads(const Slices& slices, const casync::BoundTerms& terms, OptionWork& work) const;
  /// Work on the port that a host's nodes share, if each slice has one message to another host.
  double host_work(const Form& form, std::int64_t elements, std::int64_t longest) const;
  /// Least mean number of messages per partition that leave a host; 0 without host ports.
  double crossings_of(const casync::BoundTerms& terms) const;
  /// Lower bound of the time on the most loaded node, without transfers between its GPUs.
  double busiest(const OptionWork& work, const Slices& slices) const;
  OptionWork all_reduced(std::size_t place, std::int64_t bytes) const;
  /// One member's part of a bulk group's work: the costs proportional to its own size, and `share`
  /// of the fixed costs, for the largest group that the gradient can be in.
  OptionWork in_group(std::size_t place, const casync::Decision& decision, double share);
  /// Lower bound of the time from a group's first encode of a factor until some node has its mean,
  /// or until the last node has it if `last`. `factor` is one member's part.
  double stage_in_group(const FactorSums& factor, const casync::Topology& topology,
                        bool last) const;
  /// in_group() for a group that is sent as factors. Costs are linear, so a member is charged those
  /// of its own size. The group takes at least as long as this gradient alone.
  OptionWork averaged_in_group(std::size_t place, const casync::Decision& decision,
                               const Factors& factors, const casync::Topology& topology,
                               double share);
  /// Lower bounds for slices of at least `elements` elements.
  SliceCosts costs_of_at_least(const Form& form, std::int64_t elements) const;
  double local_slope() const {
    return kSlack * costs::local_s_per_byte(machines_.cluster) * kPicosecondsPerSecond;
  }
  const models::Model& model_;
  const Machines& machines_;
  const Choices& choices_;
  const Scheme& scheme_;
  const casync::TopologyPair pair_;
  const ReadyTimes& ready_;
  const LeastMessage message_;
  const LeastAllReduce all_reduce_;
  const Line all_reduce_line_;
  const std::uint32_t nodes_;
  const double n_;
  const casync::Wire wire_;
  mutable std::map<const casync::BoundTerms*, double> crossings_;
  std::vector<costs::CodecCosts> codecs_;         // costs of the algorithms
  std::vector<Form> forms_;                       // raw, then the algorithms
  std::vector<std::vector<double>> group_sizes_;  // by form and place
  bool by_speed_ = false;
  std::map<std::tuple<std::int64_t, std::int8_t, std::int32_t, const casync::Topology*>, Relative>
      memo_;
};

/// Least work of every option of every gradient, in the order of backward, for plans of one scheme.
/// The scheme's topologies must have bound terms. Gradients that may be in a bulk group have
/// additional entries for that. Throws InputError if the profile lacks an algorithm.
std::vector<std::vector<OptionWork>> least_work(const models::Model& model,
                                                const Machines& machines, const Choices& choices,
                                                const Scheme& scheme, const ReadyTimes& ready);

}  // namespace hipress::planner
