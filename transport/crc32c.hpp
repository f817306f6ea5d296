#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hipress::transport {

/// Portable implementation of crc32c(): slicing-by-8, with tables.
std::uint32_t crc32c_portable(std::span<const std::byte> data, std::uint32_t seed = 0);

}  // namespace hipress::transport
