#include "planner/bound/ready_times.hpp"

#include <algorithm>
#include <cmath>

#include "casync/layout.hpp"

namespace hipress::planner {

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

bool rounds_by_speed(const ReadyTimes& ready) {
  return ready.speeds.size() > 1 || ready.speeds.front() != 1;
}

}  // namespace hipress::planner
