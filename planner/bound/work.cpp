#include "planner/bound/work.hpp"

#include <algorithm>
#include <cmath>

#include "casync/layout.hpp"
#include "planner/bound/group_sizes.hpp"
#include "planner/bound/work_maker.hpp"

namespace hipress::planner {
namespace {

/// Where a codec's bytes per element are taken from: with so many, what a message has besides
/// (headers, the last word) does not matter.
constexpr std::int64_t kManyElements = std::int64_t{1} << 40;

}  // namespace

bool rounds_by_speed(const ReadyTimes& ready) {
  return ready.speeds.size() > 1 || ready.speeds.front() != 1;
}

WorkMaker::WorkMaker(const models::Model& model, const Machines& machines, const Choices& choices,
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
    const double group_size = group_sizes_[is_staged(decisions[i]) ? form : 0][place];
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
