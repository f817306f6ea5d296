#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "transport/endpoint.hpp"

namespace hipress::transport {

// What a transport has to provide: one-sided writes. A rank exposes memory to one peer as a
// *window* with a number, its slot; the peer writes into the window through a *writer*. session.cpp
// and the files that it uses build messages, credits, checks, failures and deadlines on these
// writes alone, once for all transports.

/// The connection to or from one peer is over.
class WireClosed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Memory of this rank that one peer may write to, until the window is destroyed. While the wire is
/// open, a window is destroyed only when no put to it can be under way, unless the wire
/// takes_windows_back(). One thread at a time waits
/// for windows of one peer: a wire may receive in that thread.
class Window {
 public:
  virtual ~Window() = default;
  /// Returns once per completed put, in their order. WireClosed when the peer's connection is over,
  /// even if puts completed before that are not yet waited for: their bytes are in place.
  virtual void wait() = 0;
};

/// Writes from one piece of this rank's memory into one window of a peer.
class Writer {
 public:
  virtual ~Writer() = default;
  /// Starts to copy `bytes` bytes, from `offset` in the writer's memory to `window_offset` in the
  /// window. Does not wait. All puts to one peer complete there in the order of their calls, also
  /// those through different writers. The memory must not change until wait() has returned for this
  /// put. The window must be exposed, and large enough. WireClosed if the connection is over; then
  /// the put did not happen.
  virtual void put(std::size_t offset, std::size_t bytes, std::size_t window_offset) = 0;
  /// Returns once per put, when its bytes have left the memory. WireClosed when the connection is
  /// over.
  virtual void wait() = 0;
};

/// What a transport may bring of its own for sums over all ranks, and for shards. Calls are as
/// Collective's, but fail with WireClosed.
class WireCollective {
 public:
  virtual ~WireCollective() = default;
  virtual void all_reduce(std::span<std::byte> values, const Addition& addition) = 0;
  virtual ShardCollectives* shards() { return nullptr; }
  virtual void close() noexcept = 0;
};

/// Tells a text to all ranks and returns what each has told, in rank order.
using TellAll = std::function<std::vector<std::string>(const std::string& mine)>;

/// One rank's connections to all others.
class Wire {
 public:
  virtual ~Wire() = default;
  /// Windows may be exposed, and writers opened, before connect() and after it. Slots are not
  /// negative; per peer no two windows of one slot are exposed at the same time.
  virtual std::unique_ptr<Window> expose(int peer, int slot, std::span<std::byte> memory) = 0;
  virtual std::unique_ptr<Writer> open(int peer, int slot, std::span<const std::byte> memory) = 0;
  /// All ranks make it together, once they are connected.
  virtual std::shared_ptr<WireCollective> collective(const TellAll& tell_all) = 0;
  /// Whether a window may be destroyed at any time: nothing is written to it afterwards, and a put
  /// that comes for it, or is under way, ends the peer's connection, behind all puts before it.
  virtual bool takes_windows_back() const { return false; }
  /// Connects to all ranks; what peers put from then on finds the windows exposed before. Throws as
  /// TransportRow::connect does.
  virtual void connect() = 0;
  /// All ranks are known to be connected: what was needed to find each other can go.
  virtual void connected() noexcept {}
  /// Ends all connections in good order: peers still get what has left already. Wakes every waiting
  /// thread; after that no window is written to and no writer's memory is read. May be called by
  /// any thread, also while connect() waits.
  virtual void close() noexcept = 0;
};

}  // namespace hipress::transport
