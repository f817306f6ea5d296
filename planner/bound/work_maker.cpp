#include "planner/bound/work_maker.hpp"

#include <algorithm>

#include "casync/layout.hpp"
#include "planner/bound/group_sizes.hpp"

namespace hipress::planner {
WorkMaker::WorkMaker(const models::Model& model, const Machines& machines, const Choices& choices,
                     const Scheme& scheme, const ReadyTimes& ready)
    : model_(model),
      machines_(machines),
      choices_(choices),
      scheme_(scheme),
      pair_(casync::topologies_of(scheme.topology, scheme.raw_topology)),
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
  group_sizes_ = group_sizes(model, choices, scheme, ready);
}

std::vector<OptionWork> WorkMaker::options(std::size_t place) {
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
    const double group_size = group_sizes_[form][place];
    if (done[form] || group_size < 2) continue;
    done[form] = true;
    OptionWork work = in_group(place, decisions[i], 1 / group_size);
    work.option = static_cast<std::uint16_t>(i);
    all.push_back(work);
  }
  return all;
}

void WorkMaker::finish(std::size_t place, const Relative& relative, OptionWork& work) const {
  work.end = std::max({ready_.first(place) + relative.after_first,
                       ready_.last(place) + relative.after_last,
                       *std::max_element(ready_.compute_end.begin(), ready_.compute_end.end())});
}

OptionWork WorkMaker::all_reduced(std::size_t place, std::int64_t bytes) const {
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
