#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/digest.hpp"

namespace hipress::transport {

// Two ranks prove to each other that they know their job's secret before either interprets anything
// else that the other sends. Each answers the other's challenge with an HMAC-SHA-256, as in the
// three-pass mutual authentication of ISO/IEC 9798-4:
//
//   accepting rank:   nonce a
//   connecting rank:  claim = magic, ranks, purpose, nonce c; HMAC("claim", a, claim, address)
//   accepting rank:   HMAC("answer", a, claim, address)
//
// Every message has a fixed length. Nonces are fresh, so nothing can be replayed. The address is
// the one that was connected to, so a greeting cannot be passed on to another rank's port. The
// bytes that follow on the connection are neither encrypted nor signed: see SECURITY.md.

/// Secret of a job, the same on all its ranks.
using Secret = std::vector<std::byte>;

inline constexpr std::size_t kNonceBytes = 32;
using Nonce = std::array<std::byte, kNonceBytes>;

/// Connecting rank, accepting rank, and purpose of the connection.
struct Claim {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t purpose = 0;  ///< distinguishes the connections of two ranks
  friend bool operator==(const Claim&, const Claim&) = default;
};

/// Size of a claim message: magic, from, to, purpose (little endian), nonce, HMAC.
inline constexpr std::size_t kClaimBytes = 8 + 3 * 4 + kNonceBytes + 32;
inline constexpr std::size_t kAnswerBytes = 32;

/// The accepting rank's side, for one connection.
class Acceptor {
 public:
  /// `address` is this rank's listening address, as the others know it.
  Acceptor(const Secret& secret, std::string address);

  /// The first message.
  const Nonce& nonce() const { return nonce_; }
  /// Claim in `message` if its sender knows the secret, else nullopt.
  std::optional<Claim> verify(std::span<const std::byte, kClaimBytes> message);
  /// Answer to the verified claim.
  io::Digest answer() const;

 private:
  const Secret& secret_;
  const std::string address_;
  Nonce nonce_;
  std::vector<std::byte> transcript_;
};

/// The connecting rank's side, for one connection.
class Connector {
 public:
  /// `address` is the listening address that the other rank has published.
  Connector(const Secret& secret, std::string address, Claim claim);

  /// Message to send in reply to `nonce`.
  std::array<std::byte, kClaimBytes> claim(std::span<const std::byte, kNonceBytes> nonce);
  /// True if the other end knows the secret.
  bool verify(std::span<const std::byte, kAnswerBytes> answer) const;

 private:
  const Secret& secret_;
  const std::string address_;
  const Claim claim_;
  Nonce nonce_;
  std::vector<std::byte> transcript_;
};

}  // namespace hipress::transport
