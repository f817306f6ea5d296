// Computes the least work of gradients that are sent as factors, which travel as raw values do.

#include <fmt/format.h>

#include <algorithm>

#include "io/error.hpp"
#include "planner/bound/work_maker.hpp"

namespace hipress::planner {

WorkMaker::StageTimes WorkMaker::stage_times(const Factors& factors,
                                             const casync::Decision& decision) const {
  const costs::CodecCosts& codec = codecs_[static_cast<std::size_t>(decision.algorithm)];
  require_stages(codec, factors.size());
  const auto least = [&](const costs::StageCosts& costs, const costs::StageWork& work) {
    return least_stage(costs.seconds(work), ready_.speeds.front(), by_speed_);
  };
  StageTimes times;
  costs::StageWork all;
  for (std::size_t stage = 0; stage < factors.size(); ++stage) {
    const FactorSums& one = factors[stage];
    const costs::StageWork work = {one.elements, one.element_ranks, one.values, one.value_ranks};
    times.encodes.push_back(least(codec.stages[stage], work));
    all = {one.elements, one.element_ranks, all.values + one.values,
           all.value_ranks + one.value_ranks};
  }
  times.decode = least(codec.decode_stages, all);
  return times;
}

void WorkMaker::require_stages(const costs::CodecCosts& codec, std::size_t stages) {
  if (codec.stages.size() == stages) return;
  throw io::InputError(
      fmt::format("this profile has costs of {} stages of an algorithm that has {}; measure it "
                  "with hipress-profile `algorithm`",
                  codec.stages.size(), stages));
}

OptionWork WorkMaker::averaged(std::size_t place, const casync::Decision& decision,
                               const Factors& factors, const casync::Topology& topology) {
  const StageTimes times = stage_times(factors, decision);
  OptionWork work;
  Relative chain;
  for (std::size_t stage = 0; stage < factors.size(); ++stage) {
    work.codec.average += times.encodes[stage];
    work.codec.all += times.encodes[stage];
    const bool last = stage + 1 == factors.size();
    const FactorOnItsWay factor = on_its_way(factors[stage], decision.partitions, topology);
    add_factor(factor, work);
    // A node's second encode waits for the mean of the first factors, so for the last node's first
    // encode. Later stages therefore count in full after the last node's ready time, too.
    const double takes = last ? factor.first_to_end : factor.first_to_mean;
    chain.after_first += times.encodes[stage] + takes;
    chain.after_last += times.encodes[stage] + (stage > 0 ? takes : factor.last_to(last));
  }
  work.codec.average += times.decode;
  work.codec.all += times.decode;
  finish_stages(place, topology, times, chain, work);
  return work;
}

void WorkMaker::finish_stages(std::size_t place, const casync::Topology& topology,
                              const StageTimes& times, Relative& chain, OptionWork& work) const {
  work.port_head = times.encodes.front();
  work.port_tail = times.decode + (is_whole(topology) || nodes_ == 1 ? 0 : message_.latency());
  chain.after_first += times.decode;
  chain.after_last += times.decode;
  finish(place, chain, work);
}

WorkMaker::FactorOnItsWay WorkMaker::on_its_way(const FactorSums& factor, std::int64_t partitions,
                                                const casync::Topology& topology) {
  FactorOnItsWay way;
  if (nodes_ == 1) return way;
  if (is_whole(topology)) {
    const std::int64_t bytes = factor.elements_in(1) * static_cast<std::int64_t>(sizeof(float));
    const double time = all_reduce_.time(bytes);
    way.work.collective = time;
    if (all_reduces_load_ports()) way.work.port.average = way.work.port.all = time;
    way.first_to_mean = way.first_to_end = way.last_to_mean = way.last_to_end = time;
    return way;
  }
  const std::int64_t elements = factor.elements_in(partitions);
  const Relative& raw = raw_relative(elements, partitions, topology);
  way.work = raw.work;
  const std::int64_t rounds = partitions / nodes_;
  for (Work* const on : {&way.work.port, &way.work.codec}) {
    on->all += static_cast<double>(raw.work.servers > 0 ? rounds : 0) * on->served;
  }
  way.first_to_end = raw.after_first;
  way.last_to_end = raw.after_last;
  const SliceCosts slice = costs_of(forms_[0], elements / partitions);
  const double gathered =
      topology.bound->gathered == nullptr ? 0 : topology.bound->gathered(slice, wire_);
  // A node has the mean when it has received all of its messages.
  const double received = way.work.port.all - port_limit(machines_).credit;
  way.first_to_mean = std::max(gathered, received + message_.latency());
  return way;
}

const WorkMaker::Relative& WorkMaker::raw_relative(std::int64_t elements, std::int64_t partitions,
                                                   const casync::Topology& topology) {
  const auto key =
      std::make_tuple(elements, casync::kRaw, static_cast<std::int32_t>(partitions), &topology);
  auto known = memo_.find(key);
  if (known == memo_.end()) {
    known = memo_.emplace(key, relative(forms_[0], elements, partitions, topology)).first;
  }
  return known->second;
}

void WorkMaker::add_factor(const FactorOnItsWay& factor, OptionWork& work) {
  work.port.average += factor.work.port.average;
  work.port.all += factor.work.port.all;
  work.codec.average += factor.work.codec.average;
  work.codec.all += factor.work.codec.all;
  work.host += factor.work.host;
  work.collective += factor.work.collective;
}

double WorkMaker::stage_in_group(const FactorSums& factor, const casync::Topology& topology,
                                 bool last) const {
  if (nodes_ == 1) return 0;
  if (is_whole(topology)) {
    return all_reduce_line_.a +
           all_reduce_line_.b * static_cast<double>(factor.mean_values) * sizeof(float);
  }
  Slices slices;
  slices.count = 1;
  slices.first = slices.last =
      costs_of_at_least(forms_[0], (factor.mean_values + nodes_ - 1) / nodes_);
  slices.total = slices.first;
  if (last) return topology.bound->chain(slices, wire_);
  return topology.bound->gathered == nullptr ? 0 : topology.bound->gathered(slices.first, wire_);
}

OptionWork WorkMaker::averaged_in_group(std::size_t place, const casync::Decision& decision,
                                        const Factors& factors, const casync::Topology& topology,
                                        double share) {
  const StageTimes times = stage_times(factors, decision);
  const costs::CodecCosts& codec = codecs_[static_cast<std::size_t>(decision.algorithm)];
  // Rounding shortens a member's share of a group's time by at most 2 ps.
  const auto part = [&](double time, const costs::StageCosts& costs) {
    const double fixed = kPicosecondsPerSecond * costs.a_s / ready_.speeds.front();
    return std::max(0.0, (time - (1 - share) * fixed - 2) * kSlack);
  };
  const Line message = message_.line();
  const Line add = forms_[0].add.line();
  const bool batches = scheme_.batch.threshold_bytes > 0;
  OptionWork work;
  Relative chain;
  double coded = part(times.decode, codec.decode_stages);
  for (std::size_t stage = 0; stage < factors.size(); ++stage) {
    coded += part(times.encodes[stage], codec.stages[stage]);
    const double takes = stage_in_group(factors[stage], topology, stage + 1 == factors.size());
    chain.after_first += times.encodes[stage] + takes;
    chain.after_last += times.encodes[stage] + (stage > 0 || is_whole(topology) ? takes : 0);
    if (nodes_ == 1) continue;
    const auto bytes = static_cast<double>(factors[stage].mean_values) * sizeof(float);
    if (is_whole(topology)) {
      const double time = share * all_reduce_line_.a + all_reduce_line_.b * bytes;
      work.collective += time;
      if (all_reduces_load_ports()) work.port.average += time;
      continue;
    }
    work.port.average += 2 * (n_ - 1) * (share * message.a + message.b * bytes / n_);
    coded += (n_ - 1) * ((batches ? 0 : share * add.a) +
                         add.b * static_cast<double>(factors[stage].mean_values) / n_);
    const Line& host = message_.between_hosts();
    work.host += n_ * crossings_of(*topology.bound) * (share * host.a + host.b * bytes / n_);
  }
  work.port.all = work.port.average;
  work.codec.average = work.codec.all = coded;
  finish_stages(place, topology, times, chain, work);
  return work;
}

}  // namespace hipress::planner
