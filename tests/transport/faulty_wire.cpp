#include "tests/transport/faulty_wire.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace hipress::transport::test {

// ----------------------------------------------------------------------------------------- put

std::optional<Record> Put::record() const {
  Record record;
  if (slot != kRingSlot || bytes.size() < sizeof record) return std::nullopt;
  std::memcpy(&record, bytes.data(), sizeof record);
  return record;
}

void Put::replace(Record record) {
  seal(record);
  std::memcpy(bytes.data(), &record, sizeof record);
}

// ---------------------------------------------------------------------------------------- wire

struct FaultyWire::Way {
  std::vector<std::byte> staging;
  std::unique_ptr<Writer> writer;
  // Guarded by the relay's mutex.
  std::uint64_t left = 0;    ///< number of puts that have left
  std::uint64_t waited = 0;  ///< number of puts that have been waited for
};

struct FaultyWire::Parcel {
  std::shared_ptr<Way> way;
  std::vector<std::byte> bytes;
  std::size_t offset = 0, window_offset = 0;
  int copies = 1;
  std::chrono::nanoseconds delay{};
  int completes = 1;  ///< puts of the rank that are done when it has left; 0: a copy follows
};

/// Queue of puts on their way to one peer, and the thread that delivers them.
class FaultyWire::Relay {
 public:
  Relay() : thread_([this] { run(); }) {}
  ~Relay() { close(); }

  void add(Parcel parcel) {
    const std::lock_guard lock(mutex_);
    if (closed_) throw WireClosed("closed");
    queue_.push_back(std::move(parcel));
    changed_.notify_all();
  }
  /// Waits until one more put of this way has left.
  void wait(Way& way) {
    std::unique_lock lock(mutex_);
    const std::uint64_t number = ++way.waited;
    changed_.wait(lock, [&] { return closed_ || way.left >= number; });
    if (way.left < number) throw WireClosed("closed");
  }
  void close() noexcept {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return closed_ || !queue_.empty(); });
      if (closed_) return;
      const Parcel parcel = std::move(queue_.front());
      queue_.pop_front();
      changed_.wait_for(lock, parcel.delay, [this] { return closed_; });
      if (closed_) return;
      lock.unlock();
      const bool delivered = deliver(parcel);
      lock.lock();
      closed_ = closed_ || !delivered;
      if (delivered) parcel.way->left += static_cast<std::uint64_t>(parcel.completes);
      changed_.notify_all();
    }
  }

  static bool deliver(const Parcel& parcel) {
    Way& way = *parcel.way;
    std::ranges::copy(parcel.bytes,
                      way.staging.begin() + static_cast<std::ptrdiff_t>(parcel.offset));
    try {
      for (int copy = 0; copy < parcel.copies; ++copy) {
        way.writer->put(parcel.offset, parcel.bytes.size(), parcel.window_offset);
        way.writer->wait();
      }
      return true;
    } catch (const WireClosed&) {
      return false;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  std::deque<Parcel> queue_;
  std::jthread thread_;
};

class FaultyWire::FaultyWriter : public Writer {
 public:
  FaultyWriter(FaultyWire& wire, int peer, int slot, std::span<const std::byte> memory)
      : wire_(wire), peer_(peer), slot_(slot), memory_(memory), way_(std::make_shared<Way>()) {
    way_->staging.resize(memory.size());
    way_->writer = wire.wire_->open(peer, slot, way_->staging);
  }
  void put(std::size_t offset, std::size_t bytes, std::size_t window_offset) override {
    const auto part = memory_.subspan(offset, bytes);
    Parcel parcel{way_, {part.begin(), part.end()}, offset, window_offset};
    const Put put{.peer = peer_, .slot = slot_, .bytes = parcel.bytes};
    wire_.send(put, std::move(parcel));
  }
  void wait() override { wire_.relays_[static_cast<std::size_t>(peer_)]->wait(*way_); }

 private:
  FaultyWire& wire_;
  const int peer_, slot_;
  const std::span<const std::byte> memory_;
  const std::shared_ptr<Way> way_;
};

FaultyWire::FaultyWire(std::unique_ptr<Wire> wire, int ranks, Strike strike)
    : wire_(std::move(wire)),
      strike_(std::move(strike)),
      streams_(static_cast<std::size_t>(ranks)) {
  for (int peer = 0; peer < ranks; ++peer) relays_.push_back(std::make_unique<Relay>());
}

FaultyWire::~FaultyWire() { close(); }

std::unique_ptr<Window> FaultyWire::expose(int peer, int slot, std::span<std::byte> memory) {
  return wire_->expose(peer, slot, memory);
}

std::unique_ptr<Writer> FaultyWire::open(int peer, int slot, std::span<const std::byte> memory) {
  return std::make_unique<FaultyWriter>(*this, peer, slot, memory);
}

std::shared_ptr<WireCollective> FaultyWire::collective(const TellAll& tell_all) {
  return wire_->collective(tell_all);
}

void FaultyWire::close() noexcept {
  for (const auto& relay : relays_) relay->close();
  wire_->close();
}

void FaultyWire::send(Put put, Parcel parcel) {
  const std::lock_guard lock(mutex_);
  strike_(put);
  if (put.cut) {
    close();
    throw WireClosed("cut");
  }
  parcel.delay = put.delay;
  if (put.slot == kRingSlot) return send_record(put, std::move(parcel));
  parcel.copies = put.copies;
  relays_[static_cast<std::size_t>(put.peer)]->add(std::move(parcel));
}

void FaultyWire::send_record(Put put, Parcel parcel) {
  const auto peer = static_cast<std::size_t>(put.peer);
  Stream& stream = streams_[peer];
  const int copies = std::max(put.copies, 1);  // a lost put still takes its place in the ring
  parcel.copies = std::min(put.copies, 1);
  for (int copy = 1; copy <= copies; ++copy) {
    if (stream.repeated > 0) {
      Record record = *put.record();
      record.sequence += copy == 1 ? stream.repeated : 1;
      put.replace(record);
    }
    const Place place = place_at(stream.position);
    // The first put is as long as the whole ring, but its record takes only footprint(0).
    stream.position +=
        place.skipped + (put.bytes.size() == kRingBytes ? footprint(0) : put.bytes.size());
    parcel.offset = parcel.window_offset = place.offset;
    parcel.completes = copy == copies ? 1 : 0;
    if (copy < copies) ++stream.repeated;
    relays_[peer]->add(parcel);
    if (put.bytes.size() == kRingBytes) {
      parcel.bytes.resize(footprint(0));
      put.bytes = parcel.bytes;
    }
  }
}

// -------------------------------------------------------------------------------------- faults

namespace {

/// Number of bytes of a put that a CRC covers, which excludes the padding to a multiple of 16.
std::size_t covered(const Put& put) {
  const std::optional<Record> record = put.record();
  if (!record) return put.bytes.size();
  return sizeof *record + (record->is_inline != 0 ? record->segment_bytes : 0);
}

void flip(std::byte& byte, unsigned bit) { byte ^= std::byte{1} << bit; }

void delay(Put& put, Injury& injury) {
  if (std::exchange(injury.done, true)) return;
  put.delay = std::chrono::milliseconds(1 + injury.draw % 300);
}

void drop(Put& put, Injury& injury) {
  if (!std::exchange(injury.done, true)) put.copies = 0;
}

void duplicate(Put& put, Injury& injury) {
  if (!std::exchange(injury.done, true)) put.copies = 2;
}

void corrupt(Put& put, Injury& injury) {
  if (std::exchange(injury.done, true)) return;
  const std::uint64_t bit = injury.draw % (8 * covered(put));
  flip(put.bytes[bit / 8], static_cast<unsigned>(bit % 8));
}

/// Byte of the content, chosen by `draw`: the one with the sign bit, if the content is fp32 values.
std::byte& highest_of_four(std::span<std::byte> content, std::uint64_t draw) {
  return content[std::min(draw % content.size() / 4 * 4 + 3, content.size() - 1)];
}

void forge(Put& put, Injury& injury) {
  if (injury.done || put.peer != injury.peer) return;
  std::optional<Record> record = put.record();
  if (!record) {
    flip(highest_of_four(put.bytes, injury.draw), 7);
    injury.crc = crc32c(put.bytes);
  } else if (injury.crc && record->type == RecordType::kMessage) {
    injury.done = true;
    record->segment_crc = *injury.crc;
    put.replace(*record);
  } else if (record->type == RecordType::kMessage && record->is_inline != 0 &&
             record->segment_bytes > 0) {
    injury.done = true;
    const auto content = put.bytes.subspan(sizeof *record, record->segment_bytes);
    flip(highest_of_four(content, injury.draw), 7);
    record->segment_crc = crc32c(content);
    put.replace(*record);
  }
}

void become_foreign(Put& put, Injury& injury) {
  std::optional<Record> record = put.record();
  if (injury.done || !record) return;
  injury.done = true;
  record->job = ~record->job;
  put.replace(*record);
}

void fall_silent(Put& put, Injury& injury) {
  injury.done = true;
  const bool to_all = injury.draw % 2 == 0;
  if (to_all || put.peer == injury.peer) put.copies = 0;
}

void cut(Put& put, Injury& injury) {
  injury.done = true;
  put.cut = true;
}

constexpr std::array kRows{
    FaultRow{"delay", "a link holds up what is sent, for less than the timeout", true, false,
             delay},
    FaultRow{"drop", "one put is lost", false, true, drop},
    FaultRow{"duplicate", "one put comes twice", false, false, duplicate},
    FaultRow{"corrupt", "one bit changes on the way", false, true, corrupt},
    FaultRow{"forge", "one bit of a message changes before its CRC is taken", false, false, forge},
    FaultRow{"foreign", "a record says that it is of another job", false, true, become_foreign},
    FaultRow{"silence", "nothing more comes from a rank, to all or to one", false, true,
             fall_silent},
    FaultRow{"cut", "a rank's connections close, as if it had died", false, true, cut},
};

}  // namespace

std::span<const FaultRow> faults() { return kRows; }

const FaultRow& find_fault(std::string_view name) {
  const auto found = std::ranges::find(kRows, name, &FaultRow::name);
  if (found == kRows.end()) throw std::invalid_argument("no fault " + std::string(name));
  return *found;
}

Strike make_strike(const FaultRow& fault, const Site& site, std::uint64_t draw,
                   std::shared_ptr<std::atomic<bool>> struck) {
  return [&fault, site, seen = std::uint64_t{0}, begun = false, injury = Injury{.draw = draw},
          struck = std::move(struck)](Put& put) mutable {
    if (!begun) {
      const std::optional<Record> record = put.record();
      const bool here = site.at ? record && record->type == *site.at : put.slot != kRingSlot;
      if (!here || seen++ != site.ordinal) return;
      begun = true;
      injury.peer = put.peer;
    }
    fault.strike(put, injury);
    *struck = injury.done;
  };
}

}  // namespace hipress::transport::test
