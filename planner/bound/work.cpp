#include "planner/bound/work.hpp"

#include <algorithm>
#include <array>
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

/// What one slice costs, in picoseconds.
struct SliceCosts {
  double encode = 0, decode = 0, add = 0;
  double message = 0;  ///< time alone
  double port = 0;     ///< work on a port
};

/// The slices of one option: all as long as the first but the last.
struct Slices {
  std::int64_t count = 0;
  SliceCosts first, last;
  SliceCosts total;  ///< of all
  bool launches_alone = true;
};

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
        crossings_{crossings_of(machines, false), crossings_of(machines, true)},
        nodes_(machines.cluster.nodes),
        n_(nodes_) {
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

  bool is_ring(const casync::Strategy& strategy) const { return strategy.name == "ring"; }

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
    const bool ring = is_ring(strategy);
    const auto key = std::make_tuple(elements, decision.algorithm, decision.partitions, ring);
    auto known = memo_.find(key);
    if (known == memo_.end()) {
      known = memo_.emplace(key, relative(form, elements, decision.partitions, ring)).first;
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

  Relative relative(const Form& form, std::int64_t elements, std::int64_t partitions, bool ring) {
    const std::int64_t longest = casync::slice(elements, partitions, 0).elements;
    const std::int64_t count = (elements + longest - 1) / longest;
    const std::int64_t shortest = elements - (count - 1) * longest;
    Slices slices;
    slices.count = count;
    slices.first = costs_of(form, longest);
    slices.last = costs_of(form, shortest);
    const SliceCosts first_load = load_of(form, longest, slices.first);
    const SliceCosts last_load = load_of(form, shortest, slices.last);
    slices.total = total(count, first_load, last_load);
    const double local = picoseconds(
        costs::local_s(machines_.cluster, elements * static_cast<std::int64_t>(sizeof(float))));
    Relative result;
    OptionWork& work = result.work;
    const bool raw = form.algorithm == nullptr;
    add_loads(slices, first_load, last_load, ring, work);
    work.host = crossings_[ring] * host_work(form, elements, longest);
    work.local = 2 * local;
    work.port_head = work.port_tail = work.codec_head = work.own_head = work.codec_tail = local;
    if (nodes_ > 1) {
      work.port_head += slices.last.encode;
      work.port_tail +=
          message_.latency() + (raw ? 0 : std::min(slices.last.decode, slices.last.add));
      if (raw) work.codec_head += first_arrival(slices);
      if (raw) work.codec_tail += mean_behind(slices, ring);
    }
    const double chain = ring ? ring_chain(slices) : ps_chain(slices);
    const double piped = raw || nodes_ == 1 ? 0 : ring ? ring_piped(slices) : ps_piped(slices);
    const double loads = busiest(work, slices);
    result.after_first = 2 * local + std::max({chain, piped, loads});
    result.after_last = 2 * local + (ready_.speeds.size() == 1 ? 0 : slowest_chain(slices, ring));
    return result;
  }

  /// From the first node's ready time to the first message's arrival, at least.
  double first_arrival(const Slices& slices) const { return hop(slices.last) + message_.latency(); }
  /// From a partition's last sum to the mean's last arrival, at least; raw.
  double mean_behind(const Slices& slices, bool ring) const {
    return ring ? ring_spread(slices.last) : fan(slices.last) + message_.latency();
  }

  void add_loads(const Slices& slices, const SliceCosts& first, const SliceCosts& last, bool ring,
                 OptionWork& work) const {
    const SliceCosts& all = slices.total;
    work.port.average = 2 * (n_ - 1) / n_ * all.port;
    work.codec.average = all.encode + all.decode + (n_ - 1) / n_ * all.add;
    if (ring) {
      // Where a partition starts, and where it is summed up, is one message less; where it starts,
      // one sum less.
      const double fewer = std::ceil(static_cast<double>(slices.count) / n_);
      work.port.all = nodes_ == 1 ? 0 : std::max(0.0, 2 * all.port - 2 * fewer * first.port);
      work.codec.all = all.encode + all.decode + std::max(0.0, all.add - fewer * first.add);
      return;
    }
    work.servers = static_cast<std::uint32_t>(slices.count);
    work.port.all = nodes_ == 1 ? 0 : all.port;
    work.port.served = (n_ - 2) * first.port;
    work.port.served_last = (n_ - 2) * last.port;
    if (nodes_ == 1) work.port.served = work.port.served_last = 0;
    work.codec.all = all.encode + all.decode;
    work.codec.served = (n_ - 1) * first.add;
    work.codec.served_last = (n_ - 1) * last.add;
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
  /// hosts have a port that their nodes share: of ps those between the server and the nodes on
  /// other hosts; of a ring, each of whose links but one carries two messages, those between
  /// neighbours on different hosts.
  static double crossings_of(const Machines& machines, bool ring) {
    const costs::Cluster& cluster = machines.cluster;
    if (!cluster.host_link || machines.network == sim::Network::kPort) return 0;
    std::map<std::uint32_t, double> nodes_on;
    double steps = 0, most = 0;
    for (std::uint32_t node = 0; node < cluster.nodes; ++node) {
      most = std::max(most, ++nodes_on[cluster.host[node]]);
      steps += cluster.host[node] != cluster.host[(node + 1) % cluster.nodes];
    }
    const auto hosts = static_cast<double>(nodes_on.size());
    return (ring ? 2 * std::max(0.0, steps - 1) : 2 * (cluster.nodes - most)) / hosts;
  }

  /// Messages of one partition through one port, one after the other.
  double fan(const SliceCosts& slice) const {
    return message_.through_port((n_ - 1) * slice.message);
  }
  double hop(const SliceCosts& slice) const { return message_.through_port(slice.message); }

  double ps_gathered(const SliceCosts& slice) const {
    return slice.encode + message_.latency() +
           std::max(hop(slice) + (n_ - 1) * slice.add, fan(slice) + slice.add);
  }
  double ps_spread(const SliceCosts& slice) const {
    return slice.encode + fan(slice) + message_.latency() + slice.decode;
  }
  double ps_chain(const Slices& slices) const {
    if (nodes_ == 1) return slices.first.encode + slices.first.decode;
    return ps_gathered(slices.first) + ps_spread(slices.first);
  }

  /// A node codes one slice after the other before its last one travels, and decodes them one
  /// after the other once the first has come.
  double ps_piped(const Slices& slices) const {
    const double others = std::floor(static_cast<double>(slices.count) / n_);
    const double encodes = std::max(0.0, slices.total.encode - others * slices.first.encode);
    const double decodes = std::max(0.0, slices.total.decode - others * slices.first.decode);
    const SliceCosts& least = slices.last;
    const double latency = message_.latency();
    const double coded = encodes + hop(least) + latency + least.add + ps_spread(least);
    const double spread = ps_gathered(least) + least.encode + hop(least) + latency + decodes;
    return std::max(coded, spread);
  }

  double ring_reduced(const SliceCosts& slice) const {
    return slice.encode + (n_ - 1) * (hop(slice) + message_.latency() + slice.add + slice.encode);
  }
  double ring_spread(const SliceCosts& slice) const {
    return (n_ - 1) * (hop(slice) + message_.latency()) + slice.decode;
  }
  double ring_chain(const Slices& slices) const {
    return ring_reduced(slices.first) + ring_spread(slices.first);
  }
  double ring_piped(const Slices& slices) const {
    const double coded = slices.total.encode + ring_spread(slices.last);
    const double spread = ring_reduced(slices.last) + slices.total.decode;
    return std::max(coded, spread);
  }

  /// From the ready time of the node that is last.
  double slowest_chain(const Slices& slices, bool ring) const {
    const SliceCosts& slice = slices.first;
    if (nodes_ == 1) return slice.encode + slice.decode;
    if (ring) return slice.add + slice.encode + ring_spread(slice);
    const double as_worker = slice.encode + hop(slice) + message_.latency() + slice.add;
    const double as_server = (n_ - 1) * slice.add;
    return std::min(as_worker, as_server) + ps_spread(slice);
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
    work.host = n_ * crossings_[is_ring(strategy)] *
                (share * host.a + host.b * form.bytes_per_element * slice);
    work.codec.average = work.codec.all =
        n_ * (launch(form.encode) + launch(form.decode)) + (n_ - 1) * launch(form.add);
    const std::int64_t least = (elements + nodes_ - 1) / nodes_;
    Slices slices;
    slices.count = 1;
    slices.first = slices.last = costs_of_at_least(form, least);
    slices.total = slices.first;
    const bool raw = form.algorithm == nullptr;
    const bool ring = is_ring(strategy);
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
    relative.after_first = 2 * local + (ring ? ring_chain(slices) : ps_chain(slices));
    relative.after_last = 2 * local + (ready_.speeds.size() == 1 ? 0 : slowest_chain(slices, ring));
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
  const std::array<double, 2> crossings_;  ///< of ps and of ring
  const std::uint32_t nodes_;
  const double n_;
  std::vector<Form> forms_;  // raw, then the algorithms
  std::vector<double> group_size_;
  std::map<std::tuple<std::int64_t, std::int8_t, std::int32_t, bool>, Relative> memo_;
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
