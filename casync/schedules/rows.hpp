#pragma once

#include "casync/schedule.hpp"

/// The rows of schedules(), a file each.
namespace hipress::casync {

extern const ScheduleRow kDdp;
extern const ScheduleRow kLocal;

}  // namespace hipress::casync
