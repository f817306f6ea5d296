#include "casync/schedules/rows.hpp"

namespace hipress::casync {
namespace {

Timetable every_step(const ScheduleValues&, const models::Model& model) {
  return {.steps = 1,
          .part_of = std::vector<std::uint32_t>(model.gradients.size(), 0),
          .synchronisations = {{.part = 0, .step = 0, .awaited = 1}}};
}

}  // namespace

/// Data-parallel training: every step averages all gradients, and the next forward waits for them.
const ScheduleRow kDdp{.name = "ddp",
                       .help = "the mean of every gradient in every step",
                       .parameters = {},
                       .check = nullptr,
                       .timetable = every_step,
                       .gives_up = nullptr};

}  // namespace hipress::casync
