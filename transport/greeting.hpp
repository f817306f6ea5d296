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

// How two ranks prove to each other that they know their job's secret, before either interprets
// anything else that the other sends. A challenge and response in both directions with
// HMAC-SHA-256, as ISO/IEC 9798-4 describes ("three pass mutual authentication"):
//
//   accepting rank   → nonce a
//   connecting rank  → claim: magic, ranks and purpose, nonce c, HMAC(secret, "claim" … a, c,
//   claim) accepting rank   → HMAC(secret, "answer" … a, c, claim)
//
// Every message has a fixed length. Nonces are fresh, so nothing can be replayed. Both HMACs cover
// the address that was connected to, so a greeting cannot be passed on to another rank's port. What
// follows on the connection is neither encrypted nor signed: SECURITY.md says what that means.

/// The secret of a job, the same on all its ranks.
using Secret = std::vector<std::byte>;

inline constexpr std::size_t kNonceBytes = 32;
using Nonce = std::array<std::byte, kNonceBytes>;

/// Who connects to whom, and what for.
struct Claim {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t purpose = 0;  ///< tells apart what connections of two ranks are for
  friend bool operator==(const Claim&, const Claim&) = default;
};

/// magic, from, to, purpose (little endian), nonce, HMAC.
inline constexpr std::size_t kClaimBytes = 8 + 3 * 4 + kNonceBytes + 32;
inline constexpr std::size_t kAnswerBytes = 32;

/// The accepting rank's side, for one connection.
class Acceptor {
 public:
  /// `address` is where this rank listens, as it told the others.
  Acceptor(const Secret& secret, std::string address);

  /// To be sent first.
  const Nonce& nonce() const { return nonce_; }
  /// The claim, if whoever sent `message` knows the secret; else nothing.
  std::optional<Claim> verify(std::span<const std::byte, kClaimBytes> message);
  /// What to answer to the verified claim.
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
  /// `address` is where the other rank says that it listens.
  Connector(const Secret& secret, std::string address, Claim claim);

  /// What to send after `nonce` has been received.
  std::array<std::byte, kClaimBytes> claim(std::span<const std::byte, kNonceBytes> nonce);
  /// Whether the other end knows the secret.
  bool verify(std::span<const std::byte, kAnswerBytes> answer) const;

 private:
  const Secret& secret_;
  const std::string address_;
  const Claim claim_;
  Nonce nonce_;
  std::vector<std::byte> transcript_;
};

}  // namespace hipress::transport
