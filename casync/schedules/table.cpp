#include <array>

#include "casync/own_schedules.hpp"
#include "casync/schedules/rows.hpp"

namespace hipress::casync {

std::span<const ScheduleRow* const> own_schedules() {
  static const std::array rows = {&kDdp, &kLocal, &kFsdp, &kHsdp};
  return rows;
}

}  // namespace hipress::casync
