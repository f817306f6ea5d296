#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hipress::io {

/// A SHA-256 or HMAC-SHA-256, as OpenSSL's libcrypto computes them.
using Digest = std::array<std::byte, 32>;

/// RunError if libcrypto fails, as it does where memory has ended.
Digest sha256(std::span<const std::byte> bytes);
Digest sha256(std::string_view bytes);

/// Only a process that knows `key` can compute it for `data` (RFC 2104). RunError as sha256().
Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> data);

/// Two lower-case hexadecimal digits per byte.
std::string to_hex(std::span<const std::byte> bytes);

/// Equal in size and content. The time depends on the size alone, so that nobody can guess a digest
/// byte by byte.
bool constant_time_equal(std::span<const std::byte> a, std::span<const std::byte> b);

/// Bytes of the kernel's generator that nobody can predict: for keys, challenges and names of
/// files. RunError if the kernel gives none.
std::vector<std::byte> random_bytes(std::size_t count);

}  // namespace hipress::io
