#include "transport/tcp_wire.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "io/error.hpp"
#include "io/thread_variables.hpp"
#include "transport/gate.hpp"
#include "transport/rendezvous.hpp"
#include "transport/ring_reduce.hpp"
#include "transport/socket.hpp"
#include "transport/tcp_stream.hpp"

namespace hipress::transport {
namespace {

// Every pair of ranks has two connections, one per direction, for two reasons. The kernel locks a
// connection while it copies, so a sending and a receiving thread would wait for each other. And a
// connection on which only one side writes can be closed without losing bytes that are under way.

/// Thread that sends frames for which the kernel had no room when they were put.
class Sender {
 public:
  Sender();
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  /// From now on, calls stream.continue_sending() whenever the stream waits for room and the kernel
  /// has some. The stream must outlive this object.
  void look_after(OutStream& stream, Socket socket);

 private:
  void arm(int operation, int descriptor, std::uint32_t events, OutStream* stream) const;
  void run();

  io::Descriptor poll_;
  io::Descriptor stop_;  ///< event counter; non-zero: the thread must return
  std::thread thread_;
};

Sender::Sender() : poll_(::epoll_create1(EPOLL_CLOEXEC)), stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (!poll_ || !stop_) throw_errno("epoll");
  arm(EPOLL_CTL_ADD, stop_.number(), EPOLLIN, nullptr);
  thread_ = io::start_thread([this] { run(); });
}

Sender::~Sender() {
  const std::uint64_t one = 1;
  // Always true: an event counter refuses a write only when it is full.
  if (::write(stop_.number(), &one, sizeof one) == sizeof one) thread_.join();
}

void Sender::arm(int operation, int descriptor, std::uint32_t events, OutStream* stream) const {
  epoll_event event{.events = events, .data = {.ptr = stream}};
  if (::epoll_ctl(poll_.number(), operation, descriptor, &event) != 0) throw_errno("epoll_ctl");
}

void Sender::look_after(OutStream& stream, Socket socket) {
  const int descriptor = socket.number();
  arm(EPOLL_CTL_ADD, descriptor, EPOLLONESHOT, &stream);
  stream.connect(std::move(socket), [this, descriptor, &stream] {
    arm(EPOLL_CTL_MOD, descriptor, EPOLLOUT | EPOLLONESHOT, &stream);
  });
}

void Sender::run() {
  std::array<epoll_event, 16> events;
  for (;;) {
    const int n = ::epoll_wait(poll_.number(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < n; ++i) {
      auto* const stream = static_cast<OutStream*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (stream == nullptr) return;
      stream->continue_sending();
    }
  }
}

class TcpWindow : public Window {
 public:
  TcpWindow(InStream& stream, int slot, std::span<std::byte> memory)
      : stream_(stream), slot_(slot) {
    stream_.expose(slot, memory);
  }
  ~TcpWindow() override { stream_.withdraw(slot_); }
  TcpWindow(const TcpWindow&) = delete;
  TcpWindow& operator=(const TcpWindow&) = delete;

  void wait() override { stream_.wait(slot_); }

 private:
  InStream& stream_;
  const int slot_;
};

class TcpWriter : public Writer {
 public:
  TcpWriter(OutStream& stream, int slot, std::span<const std::byte> memory)
      : stream_(stream), slot_(slot), memory_(memory) {}
  ~TcpWriter() override { stream_.forget(progress_); }
  TcpWriter(const TcpWriter&) = delete;
  TcpWriter& operator=(const TcpWriter&) = delete;

  void put(std::size_t offset, std::size_t bytes, std::size_t window_offset) override {
    stream_.put(slot_, memory_.subspan(offset, bytes), window_offset, progress_);
  }
  void wait() override { stream_.wait(progress_); }

 private:
  OutStream& stream_;
  const int slot_;
  const std::span<const std::byte> memory_;
  OutStream::Progress progress_;
};

class TcpWire : public Wire {
 public:
  explicit TcpWire(const JobOptions& options)
      : options_(options),
        gate_(std::make_shared<Gate>(options.rank, options.interface)),
        rendezvous_(options) {
    for (int peer = 0; peer < options.size; ++peer) {
      if (peer != options.rank) pairs_.try_emplace(peer);
    }
  }

  std::unique_ptr<Window> expose(int peer, int slot, std::span<std::byte> memory) override {
    return std::make_unique<TcpWindow>(pairs_.at(peer).in, slot, memory);
  }
  bool takes_windows_back() const override { return true; }
  std::unique_ptr<Writer> open(int peer, int slot, std::span<const std::byte> memory) override {
    return std::make_unique<TcpWriter>(pairs_.at(peer).out, slot, memory);
  }
  std::shared_ptr<WireCollective> collective(const TellAll& tell_all) override;
  void connect() override;
  void connected() noexcept override { rendezvous_.clean_up(); }
  void close() noexcept override;

 private:
  struct Pair {
    OutStream out;
    InStream in;
  };
  /// Purpose of a connection for puts; those of collectives count up from kData + 1.
  static constexpr std::uint32_t kData = 0;

  /// Address that the rank has published. Throws io::RunError if it is not an address.
  std::string fetch_address(int peer);
  void use_gate(std::shared_ptr<Gate> gate);

  const JobOptions options_;
  std::map<int, Pair> pairs_;  ///< by the other rank
  Sender sender_;
  std::uint32_t collectives_ = 0;

  std::mutex closing_;
  bool closed_ = false;
  std::shared_ptr<Gate> gate_;  ///< gate that accepts connections at present, if any
  Rendezvous rendezvous_;       ///< last: announces this rank, after which no constructor may fail
};

void TcpWire::connect() {
  rendezvous_.meet();
  if (options_.size == 1) return;
  const std::string address = gate_->address();
  rendezvous_.publish("address", {address.begin(), address.end()});
  Gate::Request request;
  request.purpose = kData;
  request.deadline = rendezvous_.deadline();
  for (const auto& [peer, pair] : pairs_) {
    request.dialled[peer] = fetch_address(peer);
    request.accepted.push_back(peer);
  }
  Gate::Connections connections = gate_->connect(rendezvous_.secret(), request);
  for (auto& [peer, socket] : connections.dialled) {
    tune_for_sending(socket);
    sender_.look_after(pairs_.at(peer).out, std::move(socket));
  }
  for (auto& [peer, socket] : connections.accepted) {
    make_blocking(socket);
    pairs_.at(peer).in.connect(std::move(socket));
  }
  use_gate(nullptr);
}

std::string TcpWire::fetch_address(int peer) {
  const std::vector<char> item = rendezvous_.fetch(peer, "address");
  std::string text(item.begin(), item.end());
  try {
    parse_address(text);
  } catch (const std::invalid_argument& error) {
    throw io::RunError(
        fmt::format("rank {} cannot connect to rank {}, whose address at the rendezvous is wrong: "
                    "{}",
                    options_.rank, peer, error.what()));
  }
  return text;
}

void TcpWire::use_gate(std::shared_ptr<Gate> gate) {
  const std::lock_guard lock(closing_);
  if (closed_) throw WireClosed("closed");
  gate_ = std::move(gate);
}

void TcpWire::close() noexcept {
  std::shared_ptr<Gate> gate;
  {
    const std::lock_guard lock(closing_);
    closed_ = true;
    gate = gate_;
  }
  if (gate) gate->stop();
  for (auto& [peer, pair] : pairs_) pair.out.close();
  for (auto& [peer, pair] : pairs_) pair.in.close();
}

std::shared_ptr<WireCollective> TcpWire::collective(const TellAll& tell_all) {
  const int rank = options_.rank, size = options_.size;
  const auto gate = std::make_shared<Gate>(rank, options_.interface);
  use_gate(gate);
  const std::vector<std::string> addresses = tell_all(gate->address());
  Socket next, previous;
  if (size > 1) {
    const int next_rank = (rank + 1) % size, previous_rank = (rank + size - 1) % size;
    const auto patience = std::chrono::duration<double>(options_.timeout_s);
    Gate::Connections ends = gate->connect(
        rendezvous_.secret(),
        {.purpose = kData + ++collectives_,
         .dialled = {{next_rank, addresses[static_cast<std::size_t>(next_rank)]}},
         .accepted = {previous_rank},
         .deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(patience)});
    next = std::move(ends.dialled.at(next_rank));
    previous = std::move(ends.accepted.at(previous_rank));
    tune_for_sending(next);
  }
  use_gate(nullptr);
  return make_ring_reduce(rank, size, std::move(next), std::move(previous), options_.timeout_s);
}

}  // namespace

Descriptors tcp_descriptors(int size) {
  const std::int64_t peers = size - 1;
  constexpr std::int64_t kSender = 2, kListener = 1;
  return {.connected = 2 * peers + kSender + kListener, .collective = 2, .strangers = kMaxUnproven};
}

std::unique_ptr<Wire> make_tcp_wire(const JobOptions& options) {
  return std::make_unique<TcpWire>(options);
}

}  // namespace hipress::transport
