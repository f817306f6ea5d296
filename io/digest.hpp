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

/// SHA-256 of the bytes. Throws RunError if libcrypto fails, as when memory runs out.
Digest sha256(std::span<const std::byte> bytes);
Digest sha256(std::string_view bytes);

/// HMAC-SHA-256 of `data` under `key` (RFC 2104). Throws RunError as sha256() does.
Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> data);

/// Two lower-case hexadecimal digits per byte.
std::string to_hex(std::span<const std::byte> bytes);

/// Compares two digests in a time that depends only on their size, so timing reveals no byte.
bool constant_time_equal(std::span<const std::byte> a, std::span<const std::byte> b);

/// Cryptographically secure random bytes from the kernel (getrandom), for keys, challenges and file
/// names. Throws RunError if the kernel gives none.
std::vector<std::byte> random_bytes(std::size_t count);

}  // namespace hipress::io
