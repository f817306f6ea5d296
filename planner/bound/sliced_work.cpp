// Computes the least work of gradients whose slices are encoded, merged and decoded one by one.

#include <algorithm>
#include <cmath>
#include <map>

#include "casync/layout.hpp"
#include "planner/bound/work_maker.hpp"

namespace hipress::planner {

SliceCosts WorkMaker::costs_of(const Form& form, std::int64_t elements) const {
  const std::int64_t bytes = form.bytes(elements);
  return {.encode = form.encode.of(elements),
          .decode = form.decode.of(elements),
          .add = form.add.of(elements),
          .message = message_.time(bytes),
          .port = message_.work(bytes)};
}

SliceCosts WorkMaker::load_of(const Form& form, std::int64_t elements,
                              const SliceCosts& alone) const {
  if (!batched(elements)) return alone;
  const auto x = static_cast<double>(elements);
  SliceCosts load = alone;
  load.encode = form.encode.line().b * x;
  load.decode = form.decode.line().b * x;
  load.add = form.add.line().b * x;
  return load;
}

SliceCosts WorkMaker::total(std::int64_t count, const SliceCosts& first, const SliceCosts& last) {
  const auto times = static_cast<double>(count - 1);
  return {.encode = times * first.encode + last.encode,
          .decode = times * first.decode + last.decode,
          .add = times * first.add + last.add,
          .message = times * first.message + last.message,
          .port = times * first.port + last.port};
}

OptionWork WorkMaker::alone(std::size_t place, const casync::Decision& decision) {
  const std::uint32_t g = ready_.order[place];
  const std::int64_t elements = model_.gradients[g].elements;
  const casync::Topology& topology = topology_of(decision);
  const Form& form = forms_[form_of(decision)];
  const Factors factors = factors_of(form.algorithm, model_.gradients[g]);
  if (!factors.empty()) return averaged(place, decision, factors, topology);
  if (topology.form == casync::Topology::Form::kWhole) {
    return all_reduced(place, elements * static_cast<std::int64_t>(sizeof(float)));
  }
  const auto key = std::make_tuple(elements, decision.algorithm, decision.partitions, &topology);
  auto known = memo_.find(key);
  if (known == memo_.end()) {
    known = memo_.emplace(key, relative(form, elements, decision.partitions, topology)).first;
  }
  OptionWork work = known->second.work;
  finish(place, known->second, work);
  return work;
}

WorkMaker::Relative WorkMaker::relative(const Form& form, std::int64_t elements,
                                        std::int64_t partitions, const casync::Topology& topology) {
  const casync::BoundTerms& terms = *topology.bound;
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

double WorkMaker::chain(const Slices& slices, const casync::BoundTerms& terms) const {
  return nodes_ == 1 ? slices.first.encode + slices.first.decode : terms.chain(slices, wire_);
}

double WorkMaker::chain_of_last(const Slices& slices, const casync::BoundTerms& terms) const {
  if (ready_.speeds.size() == 1) return 0;
  const SliceCosts& slice = slices.first;
  return nodes_ == 1 ? slice.encode + slice.decode : terms.chain_of_last(slice, wire_);
}

double WorkMaker::first_arrival(const Slices& slices) const {
  return wire_.hop(slices.last) + wire_.latency;
}

void WorkMaker::add_loads(const Slices& slices, const casync::BoundTerms& terms,
                          OptionWork& work) const {
  const casync::Loads loads = terms.loads(slices, wire_);
  work.port = loads.port;
  work.codec = loads.codec;
  work.servers = loads.servers;
}

double WorkMaker::host_work(const Form& form, std::int64_t elements, std::int64_t longest) const {
  const std::int64_t full = (elements - 1) / longest;
  const Line& host = message_.between_hosts();
  const auto bytes = static_cast<double>(form.bytes(longest)) * static_cast<double>(full) +
                     static_cast<double>(form.bytes(elements - full * longest));
  return host.a * static_cast<double>(full + 1) + host.b * bytes;
}

double WorkMaker::crossings_of(const casync::BoundTerms& terms) const {
  const costs::Cluster& cluster = machines_.cluster;
  if (!cluster.host_link || machines_.network == sim::Network::kPort) return 0;
  const auto [known, is_new] = crossings_.try_emplace(&terms, 0.0);
  if (is_new) known->second = terms.crossings(cluster.host);
  return known->second;
}

double WorkMaker::busiest(const OptionWork& work, const Slices& slices) const {
  const double rounds = std::floor(static_cast<double>(slices.count - 1) / n_);
  const auto most = [&](const Work& on) {
    // The first server has one full slice more than the last partition's, whose slice may be short.
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

OptionWork WorkMaker::in_group(std::size_t place, const casync::Decision& decision, double share) {
  const std::uint32_t g = ready_.order[place];
  const std::int64_t elements = model_.gradients[g].elements;
  const casync::Topology& topology = topology_of(decision);
  const Form& form = forms_[form_of(decision)];
  const Factors factors = factors_of(form.algorithm, model_.gradients[g]);
  if (!factors.empty()) return averaged_in_group(place, decision, factors, topology, share);
  OptionWork work;
  if (topology.form == casync::Topology::Form::kWhole) {
    const std::int64_t bytes = elements * static_cast<std::int64_t>(sizeof(float));
    work = all_reduced(place, bytes);
    work.local = 2 * local_slope() * static_cast<double>(bytes);
    work.port.average = work.port.all = 0;
    work.collective = share * all_reduce_line_.a + all_reduce_line_.b * static_cast<double>(bytes);
    if (all_reduces_load_ports()) work.port.average = work.port.all = work.collective;
    return work;
  }
  // K = N, so every node serves one partition, with `slice` or more elements of this gradient.
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
  const casync::BoundTerms& terms = *topology.bound;
  work.host = n_ * crossings_of(terms) * (share * host.a + host.b * form.bytes_per_element * slice);
  Slices shares;  // costs of the N slices of the group
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

SliceCosts WorkMaker::costs_of_at_least(const Form& form, std::int64_t elements) const {
  const auto bytes =
      static_cast<std::int64_t>(form.bytes_per_element * static_cast<double>(elements));
  return {.encode = form.encode.of(elements),
          .decode = form.decode.of(elements),
          .add = form.add.of(elements),
          .message = message_.time(bytes),
          .port = message_.work(bytes)};
}

}  // namespace hipress::planner
