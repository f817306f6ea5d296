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

/// Makes the least work of the options of a scheme's gradients, for slices (sliced_work.cpp), whole
/// gradients in a library's all-reduce (work_maker.cpp), and factors (factor_work.cpp). Holds what
/// all gradients share.
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
  /// Sum over `count` slices, of which all but the last are equal.
  static SliceCosts total(std::int64_t count, const SliceCosts& first, const SliceCosts& last);
  OptionWork alone(std::size_t place, const casync::Decision& decision);

  /// Work of an option, with its end relative to ready times.
  struct Relative {
    OptionWork work;
    double after_first = 0;  ///< end, from the first node's ready time
    double after_last = 0;   ///< end, from the last node's ready time
  };

  /// Lower bounds of the stages' times on the fastest node, in ps.
  struct StageTimes {
    std::vector<double> encodes;
    double decode = 0;
  };
  StageTimes stage_times(const Factors& factors, const casync::Decision& decision) const;
  static void require_stages(const costs::CodecCosts& codec, std::size_t stages);
  /// Work of a gradient that factors stand for. After each encode its factor travels as raw values
  /// do, and every node's next encode waits for the mean. The other gradients decide which nodes
  /// serve a factor's partitions, so every node counts the load of the least loaded one.
  OptionWork averaged(std::size_t place, const casync::Decision& decision, const Factors& factors,
                      const casync::Topology& topology);
  static bool is_whole(const casync::Topology& topology) {
    return topology.form == casync::Topology::Form::kWhole;
  }

  /// Loads of a factor on its way, and times until some node, or the last node, has its mean.
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
  /// True if all-reduces count as port load: not on hierarchical clusters, nor with bursts, whose
  /// credit returns during an all-reduce.
  bool all_reduces_load_ports() const {
    return !costs::is_hierarchical(machines_.cluster) && port_limit(machines_).credit == 0;
  }
  void finish(std::size_t place, const Relative& relative, OptionWork& work) const;
  /// Completes the work of a gradient with stages: the last means of factors are decoded after the
  /// chain.
  void finish_stages(std::size_t place, const casync::Topology& topology, const StageTimes& times,
                     Relative& chain, OptionWork& work) const;
  Relative relative(const Form& form, std::int64_t elements, std::int64_t partitions,
                    const casync::Topology& topology);
  double chain(const Slices& slices, const casync::BoundTerms& terms) const;
  /// Time of the chain, relative to the ready time of the last node.
  double chain_of_last(const Slices& slices, const casync::BoundTerms& terms) const;
  /// Lower bound of the time from the first node's ready time to the first message's arrival.
  double first_arrival(const Slices& slices) const;
  void add_loads(const Slices& slices, const casync::BoundTerms& terms, OptionWork& work) const;
  /// Work on a host's port if each slice has one message to a different host.
  double host_work(const Form& form, std::int64_t elements, std::int64_t longest) const;
  /// Least number of messages per partition that leave a host, the mean over hosts; 0 if hosts have
  /// no port shared by their nodes.
  double crossings_of(const casync::BoundTerms& terms) const;
  /// Lower bound of the time on the most loaded node, without the transfers between GPUs.
  double busiest(const OptionWork& work, const Slices& slices) const;
  OptionWork all_reduced(std::size_t place, std::int64_t bytes) const;
  /// A member's part of a bulk group's work: its own part of the costs proportional to size, and
  /// `share` of the fixed costs, for the largest group that it can be in.
  OptionWork in_group(std::size_t place, const casync::Decision& decision, double share);
  /// Lower bound of the time from a group's first encode of a factor until some node (for the last
  /// factor: the last node) has the mean. `factor` is a member's part.
  double stage_in_group(const FactorSums& factor, const casync::Topology& topology,
                        bool last) const;
  /// in_group() for a group that factors stand for. Costs are linear, so a member counts its own
  /// part of those proportional to size. The group takes at least as long as this gradient alone.
  OptionWork averaged_in_group(std::size_t place, const casync::Decision& decision,
                               const Factors& factors, const casync::Topology& topology,
                               double share);
  /// Lower bound for slices of `elements` elements or more.
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

/// Least work of every option of every gradient, by place in the order of backward, for plans of
/// one scheme. Its topologies must have bound terms. Gradients that may be in a bulk group have
/// extra options for that. Throws InputError if the profile lacks an algorithm.
std::vector<std::vector<OptionWork>> least_work(const models::Model& model,
                                                const Machines& machines, const Choices& choices,
                                                const Scheme& scheme, const ReadyTimes& ready);

}  // namespace hipress::planner
