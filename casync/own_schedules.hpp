#pragma once

#include <span>

namespace hipress::casync {

struct ScheduleRow;

/// The project's own rows, which schedules/ defines; the first is the default.
std::span<const ScheduleRow* const> own_schedules();

}  // namespace hipress::casync
