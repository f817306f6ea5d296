#pragma once

#include "casync/schedule.hpp"

/// The rows of schedules().
namespace hipress::casync {

extern const ScheduleRow kDdp;
extern const ScheduleRow kLocal;
extern const ScheduleRow kFsdp;
extern const ScheduleRow kHsdp;

}  // namespace hipress::casync
