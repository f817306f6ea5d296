#include "transport/memory_wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "io/error.hpp"
#include "transport/rendezvous.hpp"

namespace hipress::transport {
namespace {

/// One direction of a connection between two ranks.
struct Direction {
  struct Exposed {
    std::span<std::byte> memory;
    int puts = 0;  ///< number of completed puts that wait() has not returned for
  };

  std::mutex mutex;
  std::condition_variable changed;
  bool closed = false;
  std::map<int, Exposed> windows;  ///< by slot

  void put(int slot, std::span<const std::byte> source, std::size_t offset) {
    const std::lock_guard lock(mutex);
    if (closed) throw WireClosed("closed");
    if (!windows.contains(slot)) {  // its owner has withdrawn it
      closed = true;
      changed.notify_all();
      throw WireClosed("closed");
    }
    Exposed& window = windows.at(slot);
    const auto target = window.memory.subspan(offset, source.size());
    if (!source.empty()) std::memcpy(target.data(), source.data(), source.size());
    ++window.puts;
    changed.notify_all();
  }

  void wait(int slot) {
    std::unique_lock lock(mutex);
    Exposed& window = windows.at(slot);
    changed.wait(lock, [&] { return closed || window.puts > 0; });
    if (window.puts == 0) throw WireClosed("closed");
    --window.puts;
  }

  void close() {
    const std::lock_guard lock(mutex);
    closed = true;
    changed.notify_all();
  }
};

/// Connections of a job, by sender and receiver.
struct Fabric {
  std::mutex mutex;
  std::map<std::pair<int, int>, std::shared_ptr<Direction>> directions;

  std::shared_ptr<Direction> between(int from, int to) {
    const std::lock_guard lock(mutex);
    auto& direction = directions[{from, to}];
    if (!direction) direction = std::make_shared<Direction>();
    return direction;
  }
};

/// All-reduce of a job's ranks: the last to arrive sums in rank order, then all copy.
struct Adder {
  std::mutex mutex;
  std::condition_variable changed;
  bool closed = false;
  std::uint64_t sums = 0;  ///< number of completed sums
  std::map<int, std::span<const std::byte>> present;
  int to_copy = 0;
  std::vector<std::byte> sum;

  void all_reduce(int rank, int size, std::span<std::byte> values, const Addition& addition) {
    std::unique_lock lock(mutex);
    const auto wait = [&](const auto& until) {
      changed.wait(lock, [&] { return closed || until(); });
      if (!until()) throw WireClosed("closed");  // no error if a rank that has its sum closes
    };
    wait([&] { return to_copy == 0; });
    const std::uint64_t mine = sums;
    present[rank] = values;
    if (static_cast<int>(present.size()) == size) {
      add_up(addition);
      to_copy = size;
      ++sums;
      changed.notify_all();
    } else {
      wait([&] { return sums > mine; });
    }
    std::ranges::copy(sum, values.begin());
    if (--to_copy == 0) changed.notify_all();
  }

  void add_up(const Addition& addition) {
    sum.assign(present.begin()->second.begin(), present.begin()->second.end());
    for (auto other = std::next(present.begin()); other != present.end(); ++other) {
      if (other->second.size() != sum.size()) throw WireClosed("ranks reduce different lengths");
      addition.add(sum.data(), other->second.data(), sum.size() / addition.value_bytes);
    }
    present.clear();
  }

  void close() {
    const std::lock_guard lock(mutex);
    closed = true;
    changed.notify_all();
  }
};

class MemoryCollective : public WireCollective {
 public:
  MemoryCollective(int rank, int size, std::shared_ptr<Adder> adder)
      : rank_(rank), size_(size), adder_(std::move(adder)) {}

  void all_reduce(std::span<std::byte> values, const Addition& addition) override {
    adder_->all_reduce(rank_, size_, values, addition);
  }
  void close() noexcept override { adder_->close(); }

 private:
  const int rank_;
  const int size_;
  std::shared_ptr<Adder> adder_;
};

class MemoryWindow : public Window {
 public:
  MemoryWindow(std::shared_ptr<Direction> direction, int slot, std::span<std::byte> memory)
      : direction_(std::move(direction)), slot_(slot) {
    const std::lock_guard lock(direction_->mutex);
    direction_->windows[slot] = {memory};
  }
  ~MemoryWindow() override {
    const std::lock_guard lock(direction_->mutex);
    direction_->windows.erase(slot_);
  }
  MemoryWindow(const MemoryWindow&) = delete;
  MemoryWindow& operator=(const MemoryWindow&) = delete;

  void wait() override { direction_->wait(slot_); }

 private:
  std::shared_ptr<Direction> direction_;
  int slot_;
};

class MemoryWriter : public Writer {
 public:
  MemoryWriter(std::shared_ptr<Direction> direction, int slot, std::span<const std::byte> memory)
      : direction_(std::move(direction)), slot_(slot), memory_(memory) {}

  void put(std::size_t offset, std::size_t bytes, std::size_t window_offset) override {
    direction_->put(slot_, memory_.subspan(offset, bytes), window_offset);
  }
  void wait() override {}  // put() copies synchronously

 private:
  std::shared_ptr<Direction> direction_;
  int slot_;
  std::span<const std::byte> memory_;
};

class MemoryWire : public Wire {
 public:
  explicit MemoryWire(const JobOptions& options)
      : rank_(options.rank),
        size_(options.size),
        rendezvous_(options),
        name_(fmt::format("{}/{:016x}", options.rendezvous, job_hash(options))),
        fabric_(shared_by_name<Fabric>(name_)) {}

  std::unique_ptr<Window> expose(int peer, int slot, std::span<std::byte> memory) override {
    return std::make_unique<MemoryWindow>(fabric_->between(peer, rank_), slot, memory);
  }
  std::unique_ptr<Writer> open(int peer, int slot, std::span<const std::byte> memory) override {
    return std::make_unique<MemoryWriter>(fabric_->between(rank_, peer), slot, memory);
  }
  std::shared_ptr<WireCollective> collective(const TellAll& tell_all) override {
    const auto adder = shared_by_name<Adder>(fmt::format("{}/{}", name_, collectives_++));
    tell_all({});  // from here on, all ranks hold the adder
    return std::make_shared<MemoryCollective>(rank_, size_, adder);
  }
  bool takes_windows_back() const override { return true; }
  void connect() override {
    rendezvous_.meet();
    rendezvous_.publish("exposed", {'1'});
    for (int peer = 0; peer < size_; ++peer) rendezvous_.fetch(peer, "exposed");
  }
  void close() noexcept override {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      fabric_->between(peer, rank_)->close();
      fabric_->between(rank_, peer)->close();
    }
  }

 private:
  const int rank_;
  const int size_;
  Rendezvous rendezvous_;
  const std::string name_;
  int collectives_ = 0;
  std::shared_ptr<Fabric> fabric_;
};

}  // namespace

std::unique_ptr<Wire> make_memory_wire(const JobOptions& options) {
  if (!options.rendezvous.starts_with("local:")) {
    throw io::InputError(
        fmt::format("transport 'memory' joins threads of one process, which meet at "
                    "'local:NAME', not at '{}'",
                    io::printable_path(options.rendezvous)));
  }
  return std::make_unique<MemoryWire>(options);
}

}  // namespace hipress::transport
