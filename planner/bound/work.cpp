#include "planner/bound/work.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "casync/layout.hpp"
#include "casync/strategy.hpp"
#include "planner/bound/costs.hpp"

namespace hipress::planner {
namespace {

/// Where a codec's bytes per element are taken from: with so many, what a message has besides
/// (headers, the last word) does not matter.
constexpr std::int64_t kManyElements = std::int64_t{1} << 40;

using casync::SliceCosts;
using casync::Slices;

/// What is looked up once for all gradients of a shape.
class WorkMaker {
 public:
  WorkMaker(const models::Model& model, const Machines& machines, const Choices& choices,
            const Shape& shape, const ReadyTimes& ready)
      : model_(model),
        machines_(machines),
        choices_(choices),
        shape_(shape),
        ready_(ready),
        message_(machines),
        all_reduce_(machines),
        all_reduce_line_(all_reduce_.line()),
        nodes_(machines.cluster.nodes),
        n_(nodes_),
        wire_{.nodes = n_, .latency = message_.latency(), .burst = message_.burst()} {
    const bool by_speed = ready.speeds.size() > 1 || ready.speeds.front() != 1;
    const auto least = [&](const costs::Curve& curve) {
      return LeastCost(curve, machines.cluster.gpus_per_node, ready.speeds.front(), by_speed);
    };
    forms_.resize(choices.algorithms.size() + 1);
    forms_[0].add = least(machines.profile.merge);
    forms_[0].bytes_per_element = sizeof(float);
    for (std::size_t i = 0; i < choices.algorithms.size(); ++i) {
      const costs::CodecCosts& codec = machines.profile.codec(choices.algorithms[i].name);
      Form& form = forms_[i + 1];
      form.algorithm = &choices.algorithms[i];
      form.encode = least(codec.encode);
      form.decode = least(codec.decode);
      form.add = least(codec.decode_add);
      form.bytes_per_element = static_cast<double>(form.bytes(kManyElements)) /
                               static_cast<double>(kManyElements) * kSlack;
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
    if (group_size_[place] < 2) return all;
    std::vector<bool> done(forms_.size(), false);
    for (std::size_t i = 0; i < decisions.size(); ++i) {
      const std::size_t form = form_of(decisions[i]);
      if (done[form]) continue;
      done[form] = true;
      OptionWork work = in_group(place, decisions[i]);
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
    const bool raw = decision.algorithm == casync::kRaw && !shape_.raw_strategy.empty();
    return casync::find_strategy(raw ? shape_.raw_strategy : shape_.strategy);
  }

  bool batched(std::int64_t elements) const {
    return elements * static_cast<std::int64_t>(sizeof(float)) < shape_.batch.threshold_bytes;
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
    const SliceCosts& all = slices.total;
    const casync::Loads loads = terms.loads(slices, wire_);
    work.port = loads.port;
    work.codec = loads.codec;
    work.servers = loads.servers;
    work.port.average = 2 * (n_ - 1) / n_ * all.port;
    work.codec.average = all.encode + all.decode + (n_ - 1) / n_ * all.add;
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
    // It takes no credit from bursts, which comes back meanwhile.
    if (!costs::is_hierarchical(machines_.cluster) && port_limit(machines_).credit == 0) {
      work.port.average = work.port.all = time;
    }
    work.port_head = work.port_tail = work.codec_head = work.own_head = work.codec_tail = local;
    Relative relative;
    relative.after_first = relative.after_last = 2 * local + time;
    finish(place, relative, work);
    return work;
  }

  /// A member's part of a bulk group's work: of what grows with size its own, of what does not the
  /// share that it has in the largest group that it can be in.
  OptionWork in_group(std::size_t place, const casync::Decision& decision) {
    const std::uint32_t g = ready_.order[place];
    const std::int64_t elements = model_.gradients[g].elements;
    const casync::Strategy& strategy = strategy_of(decision);
    const Form& form = forms_[form_of(decision)];
    const double share = 1 / group_size_[place];
    OptionWork work;
    if (strategy.form == casync::Strategy::Form::kWhole) {
      const std::int64_t bytes = elements * static_cast<std::int64_t>(sizeof(float));
      work = all_reduced(place, bytes);
      work.local = 2 * local_slope() * static_cast<double>(bytes);
      work.port.average = work.port.all = 0;
      work.collective =
          share * all_reduce_line_.a + all_reduce_line_.b * static_cast<double>(bytes);
      if (!costs::is_hierarchical(machines_.cluster) && port_limit(machines_).credit == 0) {
        work.port.average = work.port.all = work.collective;
      }
      return work;
    }
    // K = N: every node serves one partition, of at least this many elements of this gradient.
    const double slice = static_cast<double>(elements) / n_;
    const Line message = message_.line();
    const double port = share * message.a + message.b * form.bytes_per_element * slice;
    const auto launch = [&](const LeastCost& cost) {
      const double fixed = shape_.batch.threshold_bytes > 0 ? 0 : share * cost.line().a;
      return fixed + cost.line().b * slice;
    };
    if (nodes_ > 1) work.port.average = work.port.all = 2 * (n_ - 1) * port;
    const Line& host = message_.between_hosts();
    const casync::BoundTerms& terms = *strategy.bound;
    work.host =
        n_ * crossings_of(terms) * (share * host.a + host.b * form.bytes_per_element * slice);
    work.codec.average = work.codec.all =
        n_ * (launch(form.encode) + launch(form.decode)) + (n_ - 1) * launch(form.add);
    const std::int64_t least = (elements + nodes_ - 1) / nodes_;
    Slices slices;
    slices.count = 1;
    slices.first = slices.last = costs_of_at_least(form, least);
    slices.total = slices.first;
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

  /// Per place, how many members the largest group can have that the gradient can be in; 0: none.
  void find_groups() {
    const std::size_t places = ready_.order.size();
    group_size_.assign(places, 0);
    const casync::Aggregation& rule = shape_.bulk;
    if (rule.threshold_bytes <= 0) return;
    std::vector<std::size_t> small;
    std::vector<std::int64_t> sizes;
    for (std::size_t place = 0; place < places; ++place) {
      const models::Gradient& gradient = model_.gradients[ready_.order[place]];
      const std::int64_t bytes = gradient.elements * models::size_of(gradient.dtype);
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
      group_size_[small[i]] = std::min(largest, most);
    }
  }

  casync::Picoseconds nominal(std::size_t place) const {
    return casync::from_seconds(model_.gradients[ready_.order[place]].ready_s);
  }

  /// How many of the smallest fit a group.
  std::size_t most_members(std::vector<std::int64_t> sizes) const {
    if (!shape_.bulk.limit_bytes) return sizes.size();
    std::sort(sizes.begin(), sizes.end());
    std::int64_t sum = 0;
    std::size_t count = 0;
    while (count < sizes.size() && sum + sizes[count] <= *shape_.bulk.limit_bytes) {
      sum += sizes[count++];
    }
    return std::max<std::size_t>(count, 1);
  }

  const models::Model& model_;
  const Machines& machines_;
  const Choices& choices_;
  const Shape& shape_;
  const ReadyTimes& ready_;
  const LeastMessage message_;
  const LeastAllReduce all_reduce_;
  const Line all_reduce_line_;
  const std::uint32_t nodes_;
  const double n_;
  const casync::Wire wire_;
  mutable std::map<const casync::BoundTerms*, double> crossings_;
  std::vector<Form> forms_;  // raw, then the algorithms
  std::vector<double> group_size_;
  std::map<std::tuple<std::int64_t, std::int8_t, std::int32_t, const casync::Strategy*>, Relative>
      memo_;
};

}  // namespace

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
    double now = length(casync::from_seconds(model.forward_s));
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
                                                const Shape& shape, const ReadyTimes& ready) {
  WorkMaker maker(model, machines, choices, shape, ready);
  std::vector<std::vector<OptionWork>> work;
  for (std::size_t place = 0; place < ready.order.size(); ++place) {
    work.push_back(maker.options(place));
  }
  return work;
}

}  // namespace hipress::planner
