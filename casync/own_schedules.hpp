#pragma once

#include <span>

namespace hipress::casync {

struct ScheduleRow;

/// Built-in rows: the table in schedules/. The first is the default.
std::span<const ScheduleRow* const> own_schedules();

}  // namespace hipress::casync
