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

/// The least work of the options of a scheme's gradients: what is sent in slices (sliced_work.cpp),
/// whole by a library's all-reduce (work_maker.cpp), or as factors (factor_work.cpp). What is
/// looked up once for all gradients is looked up here.
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
  /// What a slice adds to its codec stream: a batch's launch costs the batch at least its elements.
  SliceCosts load_of(const Form& form, std::int64_t elements, const SliceCosts& alone) const;
  /// Sums of the same over all slices but the last, plus the last.
  static SliceCosts total(std::int64_t count, const SliceCosts& first, const SliceCosts& last);
  OptionWork alone(std::size_t place, const casync::Decision& decision);

  /// An option's work, and its end counted from ready times.
  struct Relative {
    OptionWork work;
    double after_first = 0;  ///< from the first node's ready time
    double after_last = 0;   ///< from the last node's
  };

  /// What stages cost at the least on the fastest node.
  struct StageTimes {
    std::vector<double> encodes;
    double decode = 0;
  };
  StageTimes stage_times(const Factors& factors, const casync::Decision& decision) const;
  static void require_stages(const costs::CodecCosts& codec, std::size_t stages);
  /// A gradient that factors stand for: after each encode its factor travels as raw values do, and
  /// every node's next encode waits for its mean. Who serves a factor's partitions depends on the
  /// other gradients, so every node counts with what the one with least of it has.
  OptionWork averaged(std::size_t place, const casync::Decision& decision, const Factors& factors,
                      const casync::Topology& topology);
  static bool is_whole(const casync::Topology& topology) {
    return topology.form == casync::Topology::Form::kWhole;
  }

  /// What a factor loads resources with, and how long it takes until some node, or the last, has
  /// its mean.
  struct FactorOnItsWay {
    OptionWork work;
    double first_to_mean = 0;  ///< from the first node's encode, until some node's next may begin
    double first_to_end = 0;   ///< until the last node's decode may
    double last_to_mean = 0, last_to_end = 0;  ///< from the last node's encode
    double last_to(bool last) const { return last ? last_to_end : last_to_mean; }
  };
  FactorOnItsWay on_its_way(const FactorSums& factor, std::int64_t partitions,
                            const casync::Topology& topology);
  const Relative& raw_relative(std::int64_t elements, std::int64_t partitions,
                               const casync::Topology& topology);
  static void add_factor(const FactorOnItsWay& factor, OptionWork& work);
  /// It takes no credit from bursts, which comes back meanwhile.
  bool all_reduces_load_ports() const {
    return !costs::is_hierarchical(machines_.cluster) && port_limit(machines_).credit == 0;
  }
  void finish(std::size_t place, const Relative& relative, OptionWork& work) const;
  /// The same where the last means of factors are decoded behind the chain.
  void finish_stages(std::size_t place, const casync::Topology& topology, const StageTimes& times,
                     Relative& chain, OptionWork& work) const;
  Relative relative(const Form& form, std::int64_t elements, std::int64_t partitions,
                    const casync::Topology& topology);
  double chain(const Slices& slices, const casync::BoundTerms& terms) const;
  /// From the ready time of the node that is last.
  double chain_of_last(const Slices& slices, const casync::BoundTerms& terms) const;
  /// From the first node's ready time to the first message's arrival, at least.
  double first_arrival(const Slices& slices) const;
  void add_loads(const Slices& slices, const casync::BoundTerms& terms, OptionWork& work) const;
  /// Of one message per slice between two hosts.
  double host_work(const Form& form, std::int64_t elements, std::int64_t longest) const;
  /// How many messages of a partition leave a host for another at least, the mean over hosts, where
  /// hosts have a port that their nodes share.
  double crossings_of(const casync::BoundTerms& terms) const;
  /// The node with most to do has that to do.
  double busiest(const OptionWork& work, const Slices& slices) const;
  OptionWork all_reduced(std::size_t place, std::int64_t bytes) const;
  /// A member's part of a bulk group's work: of what grows with size its own, of what does not the
  /// share that it has in the largest group that it can be in.
  OptionWork in_group(std::size_t place, const casync::Decision& decision, double share);
  /// From a group's first encode of a factor, of which a member has this part, until some node, or
  /// with the last factor the last node, has its mean.
  double stage_in_group(const FactorSums& factor, const casync::Topology& topology,
                        bool last) const;
  /// The same of a group that factors stand for, whose costs are linear: what grows with the
  /// members' sizes is their own. It takes at least as long as one with this gradient alone.
  OptionWork averaged_in_group(std::size_t place, const casync::Decision& decision,
                               const Factors& factors, const casync::Topology& topology,
                               double share);
  /// A slice of so many elements or more.
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
  std::vector<costs::CodecCosts> codecs_;         // of the algorithms
  std::vector<Form> forms_;                       // raw, then the algorithms
  std::vector<std::vector<double>> group_sizes_;  // by form and place
  bool by_speed_ = false;
  std::map<std::tuple<std::int64_t, std::int8_t, std::int32_t, const casync::Topology*>, Relative>
      memo_;
};

/// The least work of every option of every gradient, by place in the order of backward, in plans
/// of one scheme, whose topologies have bound terms. Gradients that may be in a bulk group have
/// options for that too. InputError if the profile lacks an algorithm.
std::vector<std::vector<OptionWork>> least_work(const models::Model& model,
                                                const Machines& machines, const Choices& choices,
                                                const Scheme& scheme, const ReadyTimes& ready);

}  // namespace hipress::planner
