#include "planner/bound/work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "casync/layout.hpp"
#include "casync/strategy.hpp"
#include "io/error.hpp"
#include "planner/bound/costs.hpp"
#include "planner/problem/factors.hpp"

namespace hipress::planner {
namespace {

/// Where a codec's bytes per element are taken from: with so many, what a message has besides
/// (headers, the last word) does not matter.
constexpr std::int64_t kManyElements = std::int64_t{1} << 40;

using casync::SliceCosts;
using casync::Slices;

bool rounds_by_speed(const ReadyTimes& ready) {
  return ready.speeds.size() > 1 || ready.speeds.front() != 1;
}

/// What is looked up once for all gradients of a scheme.
class WorkMaker {
 public:
  WorkMaker(const models::Model& model, const Machines& machines, const Choices& choices,
            const Scheme& scheme, const ReadyTimes& ready)
      : model_(model),
        machines_(machines),
        choices_(choices),
        scheme_(scheme),
        carriers_(casync::carriers(scheme.strategy, scheme.raw_strategy)),
        ready_(ready),
        message_(machines),
        all_reduce_(machines),
        all_reduce_line_(all_reduce_.line()),
        nodes_(machines.cluster.nodes),
        n_(nodes_),
        wire_{.nodes = n_, .latency = message_.latency(), .burst = message_.burst()} {
    by_speed_ = rounds_by_speed(ready);
    forms_ = forms_of(machines, choices.algorithms, ready);
    for (const casync::Algorithm& algorithm : choices.algorithms) {
      codecs_.push_back(machines.profile.codec(algorithm.name));
    }
    find_groups();
  }

  std::vector<OptionWork> options(std::size_t place) {
    const std::uint32_t g = ready_.order[place];
    std::vector<OptionWork> all;
    const std::vector<casync::Decision>& decisions = choices_.gradients[g];
    for (std::size_t i = 0; i < decisions.size(); ++i) {
      OptionWork work = alone(place, decisions[i]);
      work.option = static_cast<std::uint16_t>(i);
      all.push_back(work);
    }
    std::vector<bool> done(forms_.size(), false);
    for (std::size_t i = 0; i < decisions.size(); ++i) {
      const std::size_t form = form_of(decisions[i]);
      const double group_size = group_sizes_[is_staged(decisions[i]) ? form : 0][place];
      if (done[form] || group_size < 2) continue;
      done[form] = true;
      OptionWork work = in_group(place, decisions[i], 1 / group_size);
      work.option = static_cast<std::uint16_t>(i);
      all.push_back(work);
    }
    return all;
  }

 private:
  static std::size_t form_of(const casync::Decision& decision) {
    return static_cast<std::size_t>(decision.algorithm + 1);
  }

  const casync::Strategy& strategy_of(const casync::Decision& decision) const {
    return carriers_.of(forms_[form_of(decision)].algorithm);
  }

  bool is_staged(const casync::Decision& decision) const {
    const casync::Algorithm* const algorithm = forms_[form_of(decision)].algorithm;
    return algorithm != nullptr && algorithm->is_staged();
  }

  bool batched(std::int64_t elements) const {
    return elements * static_cast<std::int64_t>(sizeof(float)) < scheme_.batch.threshold_bytes;
  }

  SliceCosts costs_of(const Form& form, std::int64_t elements) const {
    const std::int64_t bytes = form.bytes(elements);
    return {.encode = form.encode.of(elements),
            .decode = form.decode.of(elements),
            .add = form.add.of(elements),
            .message = message_.time(bytes),
            .port = message_.work(bytes)};
  }

  /// What a slice adds to its codec stream: a batch's launch costs the batch at least its elements.
  SliceCosts load_of(const Form& form, std::int64_t elements, const SliceCosts& alone) const {
    if (!batched(elements)) return alone;
    const auto x = static_cast<double>(elements);
    SliceCosts load = alone;
    load.encode = form.encode.line().b * x;
    load.decode = form.decode.line().b * x;
    load.add = form.add.line().b * x;
    return load;
  }

  /// Sums of the same over all slices but the last, plus the last.
  static SliceCosts total(std::int64_t count, const SliceCosts& first, const SliceCosts& last) {
    const auto times = static_cast<double>(count - 1);
    return {.encode = times * first.encode + last.encode,
            .decode = times * first.decode + last.decode,
            .add = times * first.add + last.add,
            .message = times * first.message + last.message,
            .port = times * first.port + last.port};
  }

  OptionWork alone(std::size_t place, const casync::Decision& decision) {
    const std::uint32_t g = ready_.order[place];
    const std::int64_t elements = model_.gradients[g].elements;
    const casync::Strategy& strategy = strategy_of(decision);
    const Form& form = forms_[form_of(decision)];
    if (is_staged(decision)) return staged(place, decision, strategy);
    if (strategy.form == casync::Strategy::Form::kWhole) {
      return all_reduced(place, elements * static_cast<std::int64_t>(sizeof(float)));
    }
    const auto key = std::make_tuple(elements, decision.algorithm, decision.partitions, &strategy);
    auto known = memo_.find(key);
    if (known == memo_.end()) {
      known = memo_.emplace(key, relative(form, elements, decision.partitions, strategy)).first;
    }
    OptionWork work = known->second.work;
    finish(place, known->second, work);
    return work;
  }

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

  StageTimes stage_times(const Factors& factors, const casync::Decision& decision) const {
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

  static void require_stages(const costs::CodecCosts& codec, std::size_t stages) {
    if (codec.stages.size() == stages) return;
    throw io::InputError(
        fmt::format("this profile has costs of {} stages of an algorithm that has {}; measure it "
                    "with hipress-profile `algorithm`",
                    codec.stages.size(), stages));
  }

  /// A gradient that is compressed in stages: after each encode its factor travels as raw values
  /// do, and every node's next encode waits for its mean. Who serves a factor's partitions depends
  /// on the other gradients, so every node counts with what the one with least of it has.
  OptionWork staged(std::size_t place, const casync::Decision& decision,
                    const casync::Strategy& strategy) {
    const std::uint32_t g = ready_.order[place];
    const Factors factors = factors_of(
        choices_.algorithms[static_cast<std::size_t>(decision.algorithm)], model_.gradients[g]);
    const StageTimes times = stage_times(factors, decision);
    OptionWork work;
    Relative chain;
    for (std::size_t stage = 0; stage < factors.size(); ++stage) {
      work.codec.average += times.encodes[stage];
      work.codec.all += times.encodes[stage];
      const bool last = stage + 1 == factors.size();
      const FactorOnItsWay factor = on_its_way(factors[stage], decision.partitions, strategy);
      add_factor(factor, work);
      // From its first encode on, no node goes on before all nodes have encoded the first factor.
      const double takes = last ? factor.first_to_end : factor.first_to_mean;
      chain.after_first += times.encodes[stage] + takes;
      chain.after_last += times.encodes[stage] + (stage > 0 ? takes : factor.last_to(last));
    }
    work.codec.average += times.decode;
    work.codec.all += times.decode;
    work.port_head = times.encodes.front();
    work.port_tail = times.decode + (is_whole(strategy) || nodes_ == 1 ? 0 : message_.latency());
    chain.after_first += times.decode;
    chain.after_last += times.decode;
    finish(place, chain, work);
    return work;
  }

  static bool is_whole(const casync::Strategy& strategy) {
    return strategy.form == casync::Strategy::Form::kWhole;
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
                            const casync::Strategy& strategy) {
    FactorOnItsWay way;
    if (nodes_ == 1) return way;
    if (is_whole(strategy)) {
      const std::int64_t bytes = factor.elements_in(1) * static_cast<std::int64_t>(sizeof(float));
      const double time = all_reduce_.time(bytes);
      way.work.collective = time;
      if (all_reduces_load_ports()) way.work.port.average = way.work.port.all = time;
      way.first_to_mean = way.first_to_end = way.last_to_mean = way.last_to_end = time;
      return way;
    }
    const std::int64_t elements = factor.elements_in(partitions);
    const Relative& raw = raw_relative(elements, partitions, strategy);
    way.work = raw.work;
    const std::int64_t rounds = partitions / nodes_;
    for (Work* const on : {&way.work.port, &way.work.codec}) {
      on->all += static_cast<double>(raw.work.servers > 0 ? rounds : 0) * on->served;
    }
    way.first_to_end = raw.after_first;
    way.last_to_end = raw.after_last;
    const SliceCosts slice = costs_of(forms_[0], elements / partitions);
    const double gathered =
        strategy.bound->gathered == nullptr ? 0 : strategy.bound->gathered(slice, wire_);
    // A node has the mean when all that it receives for that has come.
    const double received = way.work.port.all - port_limit(machines_).credit;
    way.first_to_mean = std::max(gathered, received + message_.latency());
    return way;
  }

  const Relative& raw_relative(std::int64_t elements, std::int64_t partitions,
                               const casync::Strategy& strategy) {
    const auto key =
        std::make_tuple(elements, casync::kRaw, static_cast<std::int32_t>(partitions), &strategy);
    auto known = memo_.find(key);
    if (known == memo_.end()) {
      known = memo_.emplace(key, relative(forms_[0], elements, partitions, strategy)).first;
    }
    return known->second;
  }

  static void add_factor(const FactorOnItsWay& factor, OptionWork& work) {
    work.port.average += factor.work.port.average;
    work.port.all += factor.work.port.all;
    work.codec.average += factor.work.codec.average;
    work.codec.all += factor.work.codec.all;
    work.host += factor.work.host;
    work.collective += factor.work.collective;
  }

  /// It takes no credit from bursts, which comes back meanwhile.
  bool all_reduces_load_ports() const {
    return !costs::is_hierarchical(machines_.cluster) && port_limit(machines_).credit == 0;
  }

  void finish(std::size_t place, const Relative& relative, OptionWork& work) const {
    work.end = std::max({ready_.first(place) + relative.after_first,
                         ready_.last(place) + relative.after_last,
                         *std::max_element(ready_.compute_end.begin(), ready_.compute_end.end())});
  }

  Relative relative(const Form& form, std::int64_t elements, std::int64_t partitions,
                    const casync::Strategy& strategy) {
    const casync::BoundTerms& terms = *strategy.bound;
    const std::int64_t longest = casync::slice(elements, partitions, 0).elements;
    const std::int64_t count = (elements + longest - 1) / longest;
    const std::int64_t shortest = elements - (count - 1) * longest;
    Slices slices;
    slices.count = count;
    slices.first = costs_of(form, longest);
    slices.last = costs_of(form, shortest);
    slices.first_load = load_of(form, longest, slices.first);
    slices.last_load = load_of(form, shortest, slices.last);
    slices.total = total(count, slices.first_load, slices.last_load);
    const double local = picoseconds(
        costs::local_s(machines_.cluster, elements * static_cast<std::int64_t>(sizeof(float))));
    Relative result;
    OptionWork& work = result.work;
    const bool raw = form.algorithm == nullptr;
    add_loads(slices, terms, work);
    work.host = crossings_of(terms) * host_work(form, elements, longest);
    work.local = 2 * local;
    work.port_head = work.port_tail = work.codec_head = work.own_head = work.codec_tail = local;
    if (nodes_ > 1) {
      work.port_head += slices.last.encode;
      work.port_tail +=
          message_.latency() + (raw ? 0 : std::min(slices.last.decode, slices.last.add));
      if (raw) work.codec_head += first_arrival(slices);
      if (raw) work.codec_tail += terms.spread(slices.last, wire_);
    }
    const double piped = raw || nodes_ == 1 ? 0 : terms.piped(slices, wire_);
    const double loads = busiest(work, slices);
    result.after_first = 2 * local + std::max({chain(slices, terms), piped, loads});
    result.after_last = 2 * local + chain_of_last(slices, terms);
    return result;
  }

  double chain(const Slices& slices, const casync::BoundTerms& terms) const {
    return nodes_ == 1 ? slices.first.encode + slices.first.decode : terms.chain(slices, wire_);
  }

  /// From the ready time of the node that is last.
  double chain_of_last(const Slices& slices, const casync::BoundTerms& terms) const {
    if (ready_.speeds.size() == 1) return 0;
    const SliceCosts& slice = slices.first;
    return nodes_ == 1 ? slice.encode + slice.decode : terms.chain_of_last(slice, wire_);
  }

  /// From the first node's ready time to the first message's arrival, at least.
  double first_arrival(const Slices& slices) const {
    return wire_.hop(slices.last) + wire_.latency;
  }

  void add_loads(const Slices& slices, const casync::BoundTerms& terms, OptionWork& work) const {
    const casync::Loads loads = terms.loads(slices, wire_);
    work.port = loads.port;
    work.codec = loads.codec;
    work.servers = loads.servers;
  }

  /// Of one message per slice between two hosts.
  double host_work(const Form& form, std::int64_t elements, std::int64_t longest) const {
    const std::int64_t full = (elements - 1) / longest;
    const Line& host = message_.between_hosts();
    const auto bytes = static_cast<double>(form.bytes(longest)) * static_cast<double>(full) +
                       static_cast<double>(form.bytes(elements - full * longest));
    return host.a * static_cast<double>(full + 1) + host.b * bytes;
  }

  /// How many messages of a partition leave a host for another at least, the mean over hosts, where
  /// hosts have a port that their nodes share.
  double crossings_of(const casync::BoundTerms& terms) const {
    const costs::Cluster& cluster = machines_.cluster;
    if (!cluster.host_link || machines_.network == sim::Network::kPort) return 0;
    const auto [known, is_new] = crossings_.try_emplace(&terms, 0.0);
    if (is_new) known->second = terms.crossings(cluster.host);
    return known->second;
  }

  /// The node with most to do has that to do.
  double busiest(const OptionWork& work, const Slices& slices) const {
    const double rounds = std::floor(static_cast<double>(slices.count - 1) / n_);
    const auto most = [&](const Work& on) {
      // The first server has a full round more than the last partition's, which may be short.
      const double at_first =
          work.servers == 0
              ? 0
              : rounds * on.served +
                    (slices.count > 1 && std::fmod(static_cast<double>(slices.count - 1), n_) > 0
                         ? on.served
                         : on.served_last);
      return std::max(on.average, on.all + at_first);
    };
    const PortLimit limit = port_limit(machines_);
    const double local = work.local / 2;
    const double on_port = work.port_head +
                           limit.factor * std::max(0.0, most(work.port) - limit.credit) +
                           work.port_tail;
    const double on_codec = work.codec_head + most(work.codec) + work.codec_tail;
    return (nodes_ == 1 ? on_codec : std::max(on_port, on_codec)) - 2 * local;
  }

  OptionWork all_reduced(std::size_t place, std::int64_t bytes) const {
    OptionWork work;
    const double local = picoseconds(costs::local_s(machines_.cluster, bytes));
    const double time = all_reduce_.time(bytes);
    work.local = 2 * local;
    work.collective = time;
    if (all_reduces_load_ports()) work.port.average = work.port.all = time;
    work.port_head = work.port_tail = work.codec_head = work.own_head = work.codec_tail = local;
    Relative relative;
    relative.after_first = relative.after_last = 2 * local + time;
    finish(place, relative, work);
    return work;
  }

  /// A member's part of a bulk group's work: of what grows with size its own, of what does not the
  /// share that it has in the largest group that it can be in.
  OptionWork in_group(std::size_t place, const casync::Decision& decision, double share) {
    const std::uint32_t g = ready_.order[place];
    const std::int64_t elements = model_.gradients[g].elements;
    const casync::Strategy& strategy = strategy_of(decision);
    const Form& form = forms_[form_of(decision)];
    if (is_staged(decision)) return staged_in_group(place, decision, strategy, share);
    OptionWork work;
    if (strategy.form == casync::Strategy::Form::kWhole) {
      const std::int64_t bytes = elements * static_cast<std::int64_t>(sizeof(float));
      work = all_reduced(place, bytes);
      work.local = 2 * local_slope() * static_cast<double>(bytes);
      work.port.average = work.port.all = 0;
      work.collective =
          share * all_reduce_line_.a + all_reduce_line_.b * static_cast<double>(bytes);
      if (all_reduces_load_ports()) work.port.average = work.port.all = work.collective;
      return work;
    }
    // K = N: every node serves one partition, of at least this many elements of this gradient.
    const double slice = static_cast<double>(elements) / n_;
    const Line message = message_.line();
    const auto part = [&](double of_constants) {
      const auto launch = [&](const LeastCost& cost) {
        const double fixed = scheme_.batch.threshold_bytes > 0 ? 0 : of_constants * cost.line().a;
        return fixed + cost.line().b * slice;
      };
      const double port = of_constants * message.a + message.b * form.bytes_per_element * slice;
      return SliceCosts{.encode = launch(form.encode),
                        .decode = launch(form.decode),
                        .add = launch(form.add),
                        .message = port,
                        .port = port};
    };
    const SliceCosts own = part(share);
    const Line& host = message_.between_hosts();
    const casync::BoundTerms& terms = *strategy.bound;
    work.host =
        n_ * crossings_of(terms) * (share * host.a + host.b * form.bytes_per_element * slice);
    Slices shares;  // of the group's N slices
    shares.count = nodes_;
    shares.total = {.encode = n_ * own.encode,
                    .decode = n_ * own.decode,
                    .add = n_ * own.add,
                    .port = n_ * own.port};
    const casync::Loads loads = terms.loads(shares, wire_);
    work.port.average = work.port.all = loads.port.average;
    work.codec.average = work.codec.all = loads.codec.average;
    const std::int64_t least = (elements + nodes_ - 1) / nodes_;
    Slices slices;
    slices.count = 1;
    slices.first = slices.last = costs_of_at_least(form, least);
    slices.total = slices.first;
    work.in_group = OptionWork::InGroup{.slice = slices.first, .share = own, .slope = part(0)};
    const bool raw = form.algorithm == nullptr;
    const double local = picoseconds(
        costs::local_s(machines_.cluster, elements * static_cast<std::int64_t>(sizeof(float))));
    work.local = 2 * local_slope() * static_cast<double>(elements) * sizeof(float);
    work.port_head = work.port_tail = work.codec_head = work.own_head = work.codec_tail = local;
    if (nodes_ > 1) {
      work.port_head += slices.first.encode;
      work.port_tail +=
          message_.latency() + (raw ? 0 : std::min(slices.first.decode, slices.first.add));
    }
    Relative relative;
    relative.after_first = 2 * local + chain(slices, terms);
    relative.after_last = 2 * local + chain_of_last(slices, terms);
    finish(place, relative, work);
    return work;
  }

  /// From a group's first encode of a factor, of which a member has this part, until some node, or
  /// with the last factor the last node, has its mean.
  double stage_in_group(const FactorSums& factor, const casync::Strategy& strategy,
                        bool last) const {
    if (nodes_ == 1) return 0;
    if (is_whole(strategy)) {
      return all_reduce_line_.a +
             all_reduce_line_.b * static_cast<double>(factor.mean_values) * sizeof(float);
    }
    Slices slices;
    slices.count = 1;
    slices.first = slices.last =
        costs_of_at_least(forms_[0], (factor.mean_values + nodes_ - 1) / nodes_);
    slices.total = slices.first;
    if (last) return strategy.bound->chain(slices, wire_);
    return strategy.bound->gathered == nullptr ? 0 : strategy.bound->gathered(slices.first, wire_);
  }

  /// The same of a group that is compressed in stages, whose costs are linear: what grows with the
  /// members' sizes is their own. It takes at least as long as one with this gradient alone.
  OptionWork staged_in_group(std::size_t place, const casync::Decision& decision,
                             const casync::Strategy& strategy, double share) {
    const std::uint32_t g = ready_.order[place];
    const casync::Algorithm& algorithm =
        choices_.algorithms[static_cast<std::size_t>(decision.algorithm)];
    const Factors factors = factors_of(algorithm, model_.gradients[g]);
    const StageTimes times = stage_times(factors, decision);
    const costs::CodecCosts& codec = codecs_[static_cast<std::size_t>(decision.algorithm)];
    // Rounding of the group's times, of which a member has its share, is not more than 2 ps.
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
      const double takes = stage_in_group(factors[stage], strategy, stage + 1 == factors.size());
      chain.after_first += times.encodes[stage] + takes;
      chain.after_last += times.encodes[stage] + (stage > 0 || is_whole(strategy) ? takes : 0);
      if (nodes_ == 1) continue;
      const auto bytes = static_cast<double>(factors[stage].mean_values) * sizeof(float);
      if (is_whole(strategy)) {
        const double time = share * all_reduce_line_.a + all_reduce_line_.b * bytes;
        work.collective += time;
        if (all_reduces_load_ports()) work.port.average += time;
        continue;
      }
      work.port.average += 2 * (n_ - 1) * (share * message.a + message.b * bytes / n_);
      coded += (n_ - 1) * ((batches ? 0 : share * add.a) +
                           add.b * static_cast<double>(factors[stage].mean_values) / n_);
      const Line& host = message_.between_hosts();
      work.host += n_ * crossings_of(*strategy.bound) * (share * host.a + host.b * bytes / n_);
    }
    work.port.all = work.port.average;
    work.codec.average = work.codec.all = coded;
    work.port_head = times.encodes.front();
    work.port_tail = times.decode + (is_whole(strategy) || nodes_ == 1 ? 0 : message_.latency());
    chain.after_first += times.decode;
    chain.after_last += times.decode;
    finish(place, chain, work);
    return work;
  }

  /// A slice of so many elements or more.
  SliceCosts costs_of_at_least(const Form& form, std::int64_t elements) const {
    const auto bytes =
        static_cast<std::int64_t>(form.bytes_per_element * static_cast<double>(elements));
    return {.encode = form.encode.of(elements),
            .decode = form.decode.of(elements),
            .add = form.add.of(elements),
            .message = message_.time(bytes),
            .port = message_.work(bytes)};
  }

  double local_slope() const {
    const double gpus = machines_.cluster.gpus_per_node;
    if (gpus == 1) return 0;
    return kSlack * (gpus - 1) / gpus / machines_.cluster.gpu_link.bandwidth *
           kPicosecondsPerSecond;
  }

  /// Per form, of which groups are, and per place, how many members the largest group can have that
  /// the gradient can be in; 0: none. Forms without stages have the first table.
  void find_groups() {
    group_sizes_.assign(forms_.size(), std::vector<double>(ready_.order.size(), 0));
    if (scheme_.bulk.threshold_bytes <= 0) return;
    group_sizes_[0] = groups_of([&](std::size_t place) -> std::int64_t {
      const models::Gradient& gradient = model_.gradients[ready_.order[place]];
      return gradient.elements * models::size_of(gradient.dtype);
    });
    for (std::size_t form = 1; form < forms_.size(); ++form) {
      const casync::Algorithm& algorithm = *forms_[form].algorithm;
      if (!algorithm.is_staged()) continue;
      group_sizes_[form] = groups_of([&](std::size_t place) -> std::int64_t {
        const std::uint32_t g = ready_.order[place];
        const bool has_it = std::ranges::any_of(
            choices_.gradients[g],
            [&](const casync::Decision& decision) { return form_of(decision) == form; });
        if (!has_it) return kNotSmall;
        return casync::groupable(model_.gradients[g], static_cast<std::int8_t>(form - 1),
                                 &algorithm)
            .bytes;
      });
    }
  }

  static constexpr std::int64_t kNotSmall = std::numeric_limits<std::int64_t>::max();

  template <class BytesOf>
  std::vector<double> groups_of(const BytesOf& bytes_of) const {
    std::vector<double> sizes_of(ready_.order.size(), 0);
    const casync::Aggregation& rule = scheme_.bulk;
    std::vector<std::size_t> small;
    std::vector<std::int64_t> sizes;
    for (std::size_t place = 0; place < ready_.order.size(); ++place) {
      const std::int64_t bytes = bytes_of(place);
      if (bytes >= rule.threshold_bytes) continue;
      small.push_back(place);
      sizes.push_back(bytes);
    }
    const double most = static_cast<double>(most_members(sizes));
    std::size_t first = 0;
    std::vector<double> window(small.size());  // members of the group that begins with this one
    for (std::size_t last = 0; last < small.size(); ++last) {
      while (rule.wait && nominal(small[last]) - nominal(small[first]) > *rule.wait) ++first;
      for (std::size_t i = first; i <= last; ++i) window[i] = static_cast<double>(last - i + 1);
    }
    for (std::size_t i = 0; i < small.size(); ++i) {
      double largest = 0;
      for (std::size_t j = 0; j <= i; ++j) {
        if (static_cast<double>(i - j) < window[j]) largest = std::max(largest, window[j]);
      }
      sizes_of[small[i]] = std::min(largest, most);
    }
    return sizes_of;
  }

  casync::Picoseconds nominal(std::size_t place) const {
    return casync::from_seconds(model_.gradients[ready_.order[place]].ready_s);
  }

  /// How many of the smallest fit a group.
  std::size_t most_members(std::vector<std::int64_t> sizes) const {
    if (!scheme_.bulk.limit_bytes) return sizes.size();
    std::sort(sizes.begin(), sizes.end());
    std::int64_t sum = 0;
    std::size_t count = 0;
    while (count < sizes.size() && sum + sizes[count] <= *scheme_.bulk.limit_bytes) {
      sum += sizes[count++];
    }
    return std::max<std::size_t>(count, 1);
  }

  const models::Model& model_;
  const Machines& machines_;
  const Choices& choices_;
  const Scheme& scheme_;
  const casync::Carriers carriers_;
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
  std::map<std::tuple<std::int64_t, std::int8_t, std::int32_t, const casync::Strategy*>, Relative>
      memo_;
};

}  // namespace

std::vector<Form> forms_of(const Machines& machines,
                           const std::vector<casync::Algorithm>& algorithms,
                           const ReadyTimes& ready) {
  const auto least = [&](const costs::Curve& curve) {
    return LeastCost(curve, machines.cluster.gpus_per_node, ready.speeds.front(),
                     rounds_by_speed(ready));
  };
  std::vector<Form> forms(algorithms.size() + 1);
  forms[0].add = least(machines.profile.merge);
  forms[0].bytes_per_element = sizeof(float);
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    Form& form = forms[i + 1];
    form.algorithm = &algorithms[i];
    if (form.algorithm->is_staged()) continue;
    const costs::CodecCosts& codec = machines.profile.codec(algorithms[i].name);
    form.encode = least(codec.encode);
    form.decode = least(codec.decode);
    form.add = least(codec.decode_add);
    form.bytes_per_element = static_cast<double>(form.bytes(kManyElements)) /
                             static_cast<double>(kManyElements) * kSlack;
  }
  return forms;
}

ReadyTimes ready_times(const models::Model& model, const costs::Cluster& cluster) {
  ReadyTimes ready;
  ready.order = casync::backward_order(model);
  ready.speeds = cluster.compute_speed;
  std::sort(ready.speeds.begin(), ready.speeds.end(), std::greater<>());
  ready.speeds.erase(std::unique(ready.speeds.begin(), ready.speeds.end()), ready.speeds.end());
  for (const double speed : cluster.compute_speed) {
    const auto found = std::find(ready.speeds.begin(), ready.speeds.end(), speed);
    ready.speed_of.push_back(static_cast<std::uint32_t>(found - ready.speeds.begin()));
  }
  for (const double speed : ready.speeds) {
    const auto length = [&](casync::Picoseconds nominal) {
      const auto time = static_cast<double>(nominal.count());
      return speed == 1 ? time : std::floor(time / speed + 0.5);
    };
    double now = length(casync::from_seconds(models::before_backward_s(model)));
    casync::Picoseconds reached{0};
    std::vector<double>& times = ready.of_speed.emplace_back();
    for (const std::uint32_t g : ready.order) {
      const casync::Picoseconds due = casync::from_seconds(model.gradients[g].ready_s);
      now += length(due - reached);
      reached = due;
      times.push_back(now);
    }
    ready.compute_end.push_back(now);
  }
  return ready;
}

std::vector<std::vector<OptionWork>> least_work(const models::Model& model,
                                                const Machines& machines, const Choices& choices,
                                                const Scheme& scheme, const ReadyTimes& ready) {
  WorkMaker maker(model, machines, choices, scheme, ready);
  std::vector<std::vector<OptionWork>> work;
  for (std::size_t place = 0; place < ready.order.size(); ++place) {
    work.push_back(maker.options(place));
  }
  return work;
}

}  // namespace hipress::planner
