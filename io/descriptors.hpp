#pragma once

#include <cstdint>

namespace hipress::io {

/// Sees to it that this process may open `wanted` more files and sockets: raises the soft limit
/// (ulimit -n; 1024 on most machines) as far as that takes, and the hard one lets it. Returns how
/// many more it may then open, which is less than `wanted` where the hard limit is in the way.
std::int64_t allow_descriptors(std::int64_t wanted);

}  // namespace hipress::io
