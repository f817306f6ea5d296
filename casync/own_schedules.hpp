#pragma once

#include <span>

#include "casync/schedule.hpp"

namespace hipress::casync {

/// The project's own rows, which schedules/ defines; the first is the default.
std::span<const ScheduleRow* const> own_schedules();

}  // namespace hipress::casync
