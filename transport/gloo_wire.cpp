#include "transport/gloo_wire.hpp"

#include <fmt/format.h>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/common/error.h>
#include <gloo/context.h>
#include <gloo/transport/buffer.h>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io/error.hpp"
#include "transport/loopback.hpp"
#include "transport/rendezvous.hpp"
#include "transport/socket.hpp"

namespace hipress::transport {
namespace {

// Every pair of ranks has two connections, one per direction. On a shared one, a rank's sending
// thread writes to the socket under the pair's lock; gloo's loop thread needs that lock to read,
// and spins meanwhile. For messages of 1 MiB, two connections cost a fifth less than one. A
// connection on which only one side writes can also be closed without losing bytes that are under
// way.
//
// Gloo's unbound buffers need the receiver's permission for every message and search all
// outstanding permissions each time; bound buffers need neither.

void ignore_sigpipe() {
  struct sigaction action {};
  if (::sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) {
    action.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &action, nullptr);
  }
}

std::shared_ptr<gloo::transport::Device> open_device(const JobOptions& options) {
  const Address address = address_of(options.interface);
  if (loopback(options.interface).empty() && !options.insecure) {
    throw io::InputError(
        fmt::format("transport gloo accepts every connection to {} as a rank: use tcp, or give "
                    "`insecure` if no one else can reach that network",
                    address.host()));
  }
  gloo::transport::tcp::attr attributes;
  attributes.hostname = address.host();
  try {
    return gloo::transport::tcp::CreateDevice(attributes);
  } catch (const std::exception& error) {
    throw io::InputError(fmt::format(
        "rank {} cannot listen at {}: {}; is it an address of this host (ip address show lists "
        "them), and are files left to open (ulimit -n)?",
        options.rank, address.host(), error.what()));
  }
}

/// Calls gloo and translates its exceptions.
template <typename Call>
void checked(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    throw WireClosed(error.what());
  }
}

class GlooWindow : public Window {
 public:
  explicit GlooWindow(std::unique_ptr<gloo::transport::Buffer> buffer)
      : buffer_(std::move(buffer)) {}
  void wait() override {
    checked([this] { buffer_->waitRecv(); });
  }

 private:
  std::unique_ptr<gloo::transport::Buffer> buffer_;
};

class GlooWriter : public Writer {
 public:
  explicit GlooWriter(std::unique_ptr<gloo::transport::Buffer> buffer)
      : buffer_(std::move(buffer)) {}
  void put(std::size_t offset, std::size_t bytes, std::size_t window_offset) override {
    checked([&] { buffer_->send(offset, bytes, window_offset); });
  }
  void wait() override {
    checked([this] { buffer_->waitSend(); });
  }

 private:
  std::unique_ptr<gloo::transport::Buffer> buffer_;
};

void close_pairs(gloo::transport::Context& context) noexcept {
  // A wait that times out makes gloo close all pairs of a context and wake all their waiters.
  // Closing a pair explicitly wakes no waiter.
  try {
    std::byte nothing{};
    context.createUnboundBuffer(&nothing, sizeof nothing)->waitRecv(std::chrono::milliseconds(0));
  } catch (const std::exception&) {
    return;  // expected
  }
}

/// Context for gloo's algorithms, made of connected pairs.
class PairsContext : public gloo::Context {
 public:
  PairsContext(int own_rank, int ranks, std::shared_ptr<gloo::transport::Device> device,
               std::shared_ptr<gloo::transport::Context> pairs)
      : gloo::Context(own_rank, ranks) {
    device_ = std::move(device);
    transportContext_ = std::move(pairs);
  }
};

/// Sets the output, as integers of `value_bytes` bytes. Gloo needs only the size of the numbers, so
/// that it splits none of them; the caller's function adds them.
void set_values(gloo::AllreduceOptions& options, std::span<std::byte> values,
                std::size_t value_bytes) {
  const auto as = [&]<class Number>(Number* numbers) {
    options.setOutput(numbers, values.size() / sizeof(Number));
  };
  if (value_bytes == sizeof(std::uint16_t)) {
    as(reinterpret_cast<std::uint16_t*>(values.data()));
  } else {
    as(reinterpret_cast<std::uint32_t*>(values.data()));
  }
}

/// Gloo's collectives, over connections of their own.
class GlooCollective : public WireCollective, private ShardCollectives {
 public:
  GlooCollective(std::shared_ptr<gloo::Context> context,
                 std::shared_ptr<gloo::transport::Context> pairs, std::chrono::milliseconds timeout)
      : context_(std::move(context)), pairs_(std::move(pairs)), timeout_(timeout) {}

  void all_reduce(std::span<std::byte> values, const Addition& addition) override {
    if (values.empty()) return;
    run<gloo::AllreduceOptions>([&](gloo::AllreduceOptions& options) {
      set_values(options, values, addition.value_bytes);
      options.setReduceFunction(
          [&addition](void* into, const void* a, const void* b, std::size_t count) {
            if (into != a) std::memcpy(into, a, count * addition.value_bytes);
            addition.add(into, b, count);
          });
      return [&options] { gloo::allreduce(options); };
    });
  }
  ShardCollectives* shards() override { return this; }
  void close() noexcept override {
    const std::lock_guard lock(closing_);
    if (!std::exchange(closed_, true)) close_pairs(*pairs_);
  }

 private:
  void all_gather(std::span<const std::byte> shard, std::span<std::byte> all) override {
    if (all.empty()) return;
    run<gloo::AllgatherOptions>([&](gloo::AllgatherOptions& options) {
      options.setInput(writable(shard), shard.size());
      options.setOutput(as_bytes(all), all.size());
      return [&options] { gloo::allgather(options); };
    });
  }
  /// All-reduces all and copies this rank's shard, as PyTorch does: Gloo has no reduce-scatter.
  void reduce_scatter(std::span<std::byte> all, std::span<std::byte> shard,
                      const Addition& addition) override {
    all_reduce(all, addition);
    std::ranges::copy(
        all.subspan(shard.size() * static_cast<std::size_t>(context_->rank)).first(shard.size()),
        shard.begin());
  }
  void all_to_all(std::span<const std::byte> from, std::span<std::byte> into) override {
    if (into.empty()) return;
    run<gloo::AlltoallOptions>([&](gloo::AlltoallOptions& options) {
      options.setInput(writable(from), from.size());
      options.setOutput(as_bytes(into), into.size());
      return [&options] { gloo::alltoall(options); };
    });
  }

  static std::uint8_t* as_bytes(std::span<std::byte> bytes) {
    return reinterpret_cast<std::uint8_t*>(bytes.data());
  }
  /// Gloo has one buffer type for both directions; this one is only read.
  static std::uint8_t* writable(std::span<const std::byte> bytes) {
    return as_bytes({const_cast<std::byte*>(bytes.data()), bytes.size()});
  }

  /// Runs the algorithm that `prepare` returns for the options.
  template <class Options, class Prepare>
  void run(const Prepare& prepare) {
    checked([&] {
      Options options(context_);
      options.setTimeout(timeout_);
      const auto call = prepare(options);
      try {
        call();
      } catch (...) {
        // A thread of gloo, or of another rank in this process, may still use a buffer that
        // `options` owns. After close(), none does.
        close();
        throw;
      }
    });
  }

  std::shared_ptr<gloo::Context> context_;
  std::shared_ptr<gloo::transport::Context> pairs_;
  std::chrono::milliseconds timeout_;
  std::mutex closing_;
  bool closed_ = false;
};

class GlooWire : public Wire {
 public:
  explicit GlooWire(const JobOptions& options)
      : rank_(options.rank),
        size_(options.size),
        timeout_(static_cast<std::int64_t>(1000 * options.timeout_s) + 1),
        device_(open_device(options)),
        upward_(make_pairs()),
        downward_(make_pairs()),
        rendezvous_(options) {}

  std::unique_ptr<Window> expose(int peer, int slot, std::span<std::byte> memory) override {
    return std::make_unique<GlooWindow>(
        pair(peer, rank_).createRecvBuffer(slot, memory.data(), memory.size()));
  }

  std::unique_ptr<Writer> open(int peer, int slot, std::span<const std::byte> memory) override {
    // Gloo has one buffer type for both directions; this one is only read.
    auto* const source = const_cast<std::byte*>(memory.data());
    return std::make_unique<GlooWriter>(
        pair(rank_, peer).createSendBuffer(slot, source, memory.size()));
  }

  std::shared_ptr<WireCollective> collective(const TellAll& tell_all) override;
  void connect() override;
  void connected() noexcept override { rendezvous_.clean_up(); }
  void close() noexcept override;

 private:
  using Context = std::shared_ptr<gloo::transport::Context>;
  class Connecting;

  /// This rank's end of the connection that carries data from `from` to `to`; this rank is one of
  /// them.
  gloo::transport::Pair& pair(int from, int to) const {
    return *(from < to ? upward_ : downward_)->getPair(from == rank_ ? to : from);
  }

  Context make_pairs();
  std::vector<char> addresses() const;
  void connect_pairs(int peer, const std::vector<char>& theirs);

  const int rank_;
  const int size_;
  const std::chrono::milliseconds timeout_;
  std::shared_ptr<gloo::transport::Device> device_;  ///< owns gloo's loop thread
  Context upward_;  ///< pairs that carry data from the lower to the higher rank
  Context downward_;
  std::mutex closing_;
  bool closed_ = false;
  Context connecting_;     ///< context of a collective under construction
  Rendezvous rendezvous_;  ///< last: announces this rank, after which no constructor may fail
};

GlooWire::Context GlooWire::make_pairs() {
  Context context = device_->createContext(rank_, size_);
  // session.cpp keeps all deadlines: gloo's timeouts close connections without naming a culprit.
  context->setTimeout(gloo::kNoTimeout);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) context->createPair(peer);
  }
  return context;
}

/// Addresses of both pairs with every rank, by rank; for this rank, as many zeros.
std::vector<char> GlooWire::addresses() const {
  const int other = rank_ == 0 ? 1 : 0;
  const std::size_t length = upward_->getPair(other)->address().bytes().size();
  std::vector<char> all;
  for (int peer = 0; peer < size_; ++peer) {
    for (const Context& context : {upward_, downward_}) {
      const auto bytes =
          peer == rank_ ? std::vector<char>(length) : context->getPair(peer)->address().bytes();
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
  }
  return all;
}

void GlooWire::connect() {
  rendezvous_.meet();
  if (size_ == 1) return;
  rendezvous_.publish("addresses", addresses());
  std::mutex mutex;
  std::condition_variable_any late;
  const std::jthread alarm([&](const std::stop_token& done) {
    std::unique_lock lock(mutex);
    late.wait_until(lock, done, rendezvous_.deadline(), [] { return false; });
    if (!done.stop_requested()) close();
  });
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const std::vector<char> theirs = rendezvous_.fetch(peer, "addresses");
    try {
      connect_pairs(peer, theirs);
    } catch (const std::exception& error) {
      throw PeerError(
          peer, fmt::format("rank {} and rank {} cannot connect: {}", rank_, peer, error.what()));
    }
  }
}

void GlooWire::connect_pairs(int peer, const std::vector<char>& theirs) {
  const std::size_t length = theirs.size() / (2 * static_cast<std::size_t>(size_));
  auto mine = theirs.begin() + static_cast<std::ptrdiff_t>(2 * length) * rank_;
  for (const Context& context : {upward_, downward_}) {
    const auto end = mine + static_cast<std::ptrdiff_t>(length);
    context->getPair(peer)->connect(std::vector<char>(mine, end));
    mine = end;
  }
}

void GlooWire::close() noexcept {
  Context connecting;
  {
    const std::lock_guard lock(closing_);
    closed_ = true;
    connecting = connecting_;
  }
  if (connecting) close_pairs(*connecting);
  for (const Context& context : {upward_, downward_}) close_pairs(*context);
}

/// Pairs of a collective while they connect. Wire::close() closes them too; otherwise a rank that
/// is lost meanwhile would be awaited for ever.
class GlooWire::Connecting {
 public:
  explicit Connecting(GlooWire& wire) : wire_(wire), pairs_(wire.make_pairs()) {
    const std::lock_guard lock(wire_.closing_);
    if (wire_.closed_) throw WireClosed("closed");
    wire_.connecting_ = pairs_;
  }
  ~Connecting() {
    const std::lock_guard lock(wire_.closing_);
    wire_.connecting_.reset();
  }
  Connecting(const Connecting&) = delete;
  Connecting& operator=(const Connecting&) = delete;

  const Context& pairs() const { return pairs_; }

 private:
  GlooWire& wire_;
  Context pairs_;
};

std::shared_ptr<WireCollective> GlooWire::collective(const TellAll& tell_all) {
  const Connecting connecting(*this);
  const Context& pairs = connecting.pairs();
  std::string mine;
  const auto length_of = [&](int peer) { return pairs->getPair(peer)->address().bytes().size(); };
  const std::size_t length = size_ > 1 ? length_of(rank_ == 0 ? 1 : 0) : 0;
  for (int peer = 0; peer < size_; ++peer) {
    const auto bytes =
        peer == rank_ ? std::vector<char>(length) : pairs->getPair(peer)->address().bytes();
    mine.append(bytes.begin(), bytes.end());
  }
  const std::vector<std::string> all = tell_all(mine);
  checked([&] {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      const auto begin =
          all[static_cast<std::size_t>(peer)].begin() + static_cast<std::ptrdiff_t>(length) * rank_;
      pairs->getPair(peer)->connect({begin, begin + static_cast<std::ptrdiff_t>(length)});
    }
  });
  return std::make_shared<GlooCollective>(
      std::make_shared<PairsContext>(rank_, size_, device_, pairs), pairs, timeout_);
}

}  // namespace

Descriptors gloo_descriptors(int size) {
  // The loop's own descriptors, and two while it accepts a connection.
  constexpr std::int64_t kDevice = 4;
  const std::int64_t peers = size - 1;
  return {.connected = 2 * peers + kDevice, .collective = peers, .strangers = 0};
}

std::unique_ptr<Wire> make_gloo_wire(const JobOptions& options) {
  ignore_sigpipe();
  return std::make_unique<GlooWire>(options);
}

}  // namespace hipress::transport
