#include "transport/seal.hpp"

#include <fmt/format.h>

#include <span>
#include <stdexcept>

namespace hipress::transport {
namespace {

constexpr std::string_view kOpen = "hipress open\n";
constexpr std::string_view kSealed = "hipress sealed ";
constexpr std::size_t kProofBytes = 2 * std::tuple_size_v<io::Digest>;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

[[noreturn]] void refuse_content(std::string_view why) {
  throw std::runtime_error(fmt::format("it was not written by a rank of this job: {}", why));
}

}  // namespace

std::string Seal::proof(std::string_view name, std::string_view text) const {
  // The length separates the name from the text.
  const std::string proven = fmt::format("hipress item {} {}{}", name.size(), name, text);
  return io::to_hex(io::hmac_sha256(*secret_, bytes_of(proven)));
}

std::string Seal::close(std::string_view name, std::string_view text) const {
  if (!secret_) return fmt::format("{}{}", kOpen, text);
  return fmt::format("{}{}\n{}", kSealed, proof(name, text), text);
}

std::string Seal::open(std::string_view name, std::string_view item) const {
  if (!secret_) {
    if (item.starts_with(kOpen)) return std::string(item.substr(kOpen.size()));
    if (!item.starts_with(kSealed))
      refuse_content("its first line is not that of a rank of this version");
    refuse_content(
        "its writer has a `secret_file`, and this rank has none; give every rank the same one");
  }
  if (item.starts_with(kOpen)) {
    refuse_content(
        "its writer has no `secret_file`, and this rank has one; give every rank the same one");
  }
  if (!item.starts_with(kSealed) || item.size() <= kSealed.size() + kProofBytes) {
    refuse_content("its first line is not that of a rank of this version");
  }
  const std::string_view theirs = item.substr(kSealed.size(), kProofBytes);
  const std::string_view text = item.substr(kSealed.size() + kProofBytes + 1);
  if (item[kSealed.size() + kProofBytes] != '\n' ||
      !io::constant_time_equal(bytes_of(theirs), bytes_of(proof(name, text)))) {
    refuse_content(
        "it does not prove knowledge of the secret; give every rank the same `secret_file`");
  }
  return std::string(text);
}

}  // namespace hipress::transport
