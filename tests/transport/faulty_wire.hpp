#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "transport/record.hpp"
#include "transport/wire.hpp"

namespace hipress::transport::test {

/// One put on its way through a faulty wire.
struct Put {
  int peer = 0;
  int slot = kRingSlot;
  std::span<std::byte> bytes;  ///< a copy of what is put: may be changed
  // What becomes of it.
  int copies = 1;                    ///< 0: it is lost; 2: it comes twice, a record as two of them
  std::chrono::nanoseconds delay{};  ///< it, and all that follow it to this peer, leave later
  bool cut = false;                  ///< all connections of the rank close instead

  /// The record that is put, if it is one: what lies in the ring. Segments have none.
  std::optional<Record> record() const;
  /// Puts another record in its place, with a CRC that fits.
  void replace(Record record);
};

/// Sees every put of a rank, in its order, one at a time, and may do it harm.
using Strike = std::function<void(Put&)>;

/// A wire that passes every put on to another one, after `strike` has seen it. What a thread puts
/// leaves on a thread per peer, so that a delay holds up the link and not the rank.
class FaultyWire : public Wire {
 public:
  FaultyWire(std::unique_ptr<Wire> wire, int ranks, Strike strike);
  ~FaultyWire() override;

  std::unique_ptr<Window> expose(int peer, int slot, std::span<std::byte> memory) override;
  std::unique_ptr<Writer> open(int peer, int slot, std::span<const std::byte> memory) override;
  std::shared_ptr<WireCollective> collective(const TellAll& tell_all) override;
  bool takes_windows_back() const override { return wire_->takes_windows_back(); }
  void connect() override { wire_->connect(); }
  void connected() noexcept override { wire_->connected(); }
  void close() noexcept override;

 private:
  class FaultyWriter;
  class Relay;
  /// From one piece of memory into one window: the writer of the wire below, and what it reads.
  struct Way;
  struct Parcel;
  /// The records to one peer as they really come: once one has come twice, those behind it lie
  /// elsewhere in the ring than the rank thinks, and have other numbers.
  struct Stream {
    std::uint64_t position = 0;
    std::uint64_t repeated = 0;
  };

  /// Throws WireClosed if the put cuts the connections, or they are closed.
  void send(Put put, Parcel parcel);
  void send_record(Put put, Parcel parcel);

  std::unique_ptr<Wire> wire_;
  std::mutex mutex_;
  Strike strike_;
  std::vector<Stream> streams_;                 ///< by peer
  std::vector<std::unique_ptr<Relay>> relays_;  ///< by peer
};

/// A fault under way.
struct Injury {
  std::uint64_t draw = 0;                 ///< which bit, how long: whatever the fault has to choose
  int peer = 0;                           ///< of the put that was hit
  bool done = false;                      ///< harm was done
  std::optional<std::uint32_t> crc = {};  ///< of a segment that was changed, for its record
};

/// One row per way to go wrong.
struct FaultRow {
  std::string_view name;
  std::string_view help;
  /// Whoever waits long enough sees nothing of it.
  bool harmless;
  /// The job cannot succeed unless it strikes when all messages are through.
  bool fatal;
  /// Is given the put that is hit, and all after it.
  void (*strike)(Put& put, Injury& injury);
};
std::span<const FaultRow> faults();
const FaultRow& find_fault(std::string_view name);

/// Where a fault strikes: the `ordinal`-th put of a kind, counted over all peers, from 0.
struct Site {
  std::optional<RecordType> at;  ///< none: a segment in a window of its own
  std::uint64_t ordinal = 0;
};

/// The strike of one fault at one place; `*struck` says afterwards whether harm was done.
Strike make_strike(const FaultRow& fault, const Site& site, std::uint64_t draw,
                   std::shared_ptr<std::atomic<bool>> struck);

}  // namespace hipress::transport::test
