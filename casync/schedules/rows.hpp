#pragma once

#include "casync/schedule.hpp"

/// The rows of schedules(), a file each.
namespace hipress::casync {

extern const ScheduleRow kDdp;
extern const ScheduleRow kLocal;

/// Those of them that are not registered.
std::span<const ScheduleRow* const> own_schedules();

}  // namespace hipress::casync
