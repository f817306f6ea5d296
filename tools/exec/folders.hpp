#pragma once

#include <cstdint>
#include <optional>

#include "io/environment.hpp"
#include "tools/exec/job.hpp"

namespace hipress::replay {

/// Makes the folders of means and states that this process's ranks write, and looks at the states
/// that are read. io::InputError for what cannot be.
void prepare_folders(const CommandLine& line, const Job& job,
                     const std::optional<io::Launch>& launch, std::uint32_t ranks);

}  // namespace hipress::replay
