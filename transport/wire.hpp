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

// A transport provides one-sided writes. A rank exposes memory to one peer as a *window* with a
// number, its slot; the peer writes into the window through a *writer*. session.cpp and the files
// that it uses build messages, credits, checks, failures and deadlines on these writes.

/// Thrown if the connection to or from one peer is over.
class WireClosed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Memory of this rank that one peer may write to until the window is destroyed. While the wire is
/// open, a window may be destroyed only if no put to it is pending, unless the wire
/// takes_windows_back(). One thread at a time waits for windows of a peer, because a wire may
/// receive on that thread.
class Window {
 public:
  virtual ~Window() = default;
  /// Waits for the next completed put; returns once per put, in order. Throws WireClosed if the
  /// peer's connection is over, even if earlier completed puts were not waited for: their bytes are
  /// in place.
  virtual void wait() = 0;
};

/// Writes from one piece of this rank's memory into one window of a peer.
class Writer {
 public:
  virtual ~Writer() = default;
  /// Starts to copy `bytes` bytes from `offset` in the writer's memory to `window_offset` in the
  /// window; does not wait. All puts to one peer complete there in the order of the calls, also
  /// those through different writers. The memory must not change until wait() has returned for this
  /// put. The window must be exposed and large enough. Throws WireClosed if the connection is over.
  virtual void put(std::size_t offset, std::size_t bytes, std::size_t window_offset) = 0;
  /// Waits until the next put's bytes have left the memory; returns once per put. Throws WireClosed
  /// if the connection is over.
  virtual void wait() = 0;
};

/// A transport's own collectives. Calls are as in Collective and ShardCollectives, but fail with
/// WireClosed.
class WireCollective {
 public:
  virtual ~WireCollective() = default;
  virtual void all_reduce(std::span<std::byte> values, const Addition& addition) = 0;
  virtual ShardCollectives* shards() { return nullptr; }
  virtual void close() noexcept = 0;
};

/// All-gather of one text per rank, in rank order.
using TellAll = std::function<std::vector<std::string>(const std::string& mine)>;

/// One rank's connections to all others.
class Wire {
 public:
  virtual ~Wire() = default;
  /// Exposes memory as a window; open() opens a writer to such a window of a peer. Both may be
  /// called before and after connect(). Slots are not negative. No two windows of one peer have the
  /// same slot at the same time.
  virtual std::unique_ptr<Window> expose(int peer, int slot, std::span<std::byte> memory) = 0;
  virtual std::unique_ptr<Writer> open(int peer, int slot, std::span<const std::byte> memory) = 0;
  /// Creates a collective. All ranks call this together, once they are connected.
  virtual std::shared_ptr<WireCollective> collective(const TellAll& tell_all) = 0;
  /// True if a window may be destroyed at any time. Its memory is not written to afterwards, and a
  /// pending or later put to it ends the peer's connection after all preceding puts.
  virtual bool takes_windows_back() const { return false; }
  /// Connects to all ranks. After that, peers may put into the windows exposed before. Throws as
  /// TransportRow::connect does.
  virtual void connect() = 0;
  /// Called when all ranks are connected: releases the resources of the rendezvous.
  virtual void connected() noexcept {}
  /// Closes all connections in good order: peers still receive data that has left. Wakes every
  /// waiting thread; afterwards no window is written to and no writer's memory is read. Any thread
  /// may call it, also while connect() waits.
  virtual void close() noexcept = 0;
};

}  // namespace hipress::transport
