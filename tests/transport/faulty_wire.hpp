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

/// A put on its way through a faulty wire.
struct Put {
  int peer = 0;
  int slot = kRingSlot;
  std::span<std::byte> bytes;  ///< copy of the content, which may be changed
  // Treatment of the put.
  int copies = 1;  ///< 0: it is lost; 2: it arrives twice, a record as two records
  std::chrono::nanoseconds delay{};  ///< delay of this put and of all later ones to this peer
  bool cut = false;                  ///< all connections of the rank close instead

  /// The record, if the put writes to the ring. Segments in windows of their own have none.
  std::optional<Record> record() const;
  /// Replaces the record, and sets its CRC.
  void replace(Record record);
};

/// Function that sees every put of a rank, in order and one at a time, and may change it.
using Strike = std::function<void(Put&)>;

/// A wire that passes every put on to the wire below, after `strike` has seen it. A thread per peer
/// passes them on, so that a delay holds up the link and not the rank.
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
  /// Counterpart of one of the rank's writers: a writer of the wire below, with memory of its own.
  struct Way;
  struct Parcel;
  /// Actual stream of records to one peer. After a record has been doubled, later ones have other
  /// places in the ring and other sequence numbers than the rank assumes.
  struct Stream {
    std::uint64_t position = 0;
    std::uint64_t repeated = 0;
  };

  /// Throws WireClosed if the put cuts the connections or they are closed already.
  void send(Put put, Parcel parcel);
  void send_record(Put put, Parcel parcel);

  std::unique_ptr<Wire> wire_;
  std::mutex mutex_;
  Strike strike_;
  std::vector<Stream> streams_;                 ///< by peer
  std::vector<std::unique_ptr<Relay>> relays_;  ///< by peer
};

/// State of a fault.
struct Injury {
  std::uint64_t draw = 0;  ///< random number for the fault's choices, such as a bit or a delay
  int peer = 0;            ///< peer of the first put that is hit
  bool done = false;       ///< the fault has taken effect
  std::optional<std::uint32_t> crc = {};  ///< CRC of a changed segment, for its record
};

/// A kind of fault.
struct FaultRow {
  std::string_view name;
  std::string_view help;
  /// True if the job succeeds in spite of the fault, only later.
  bool harmless;
  /// True if the job must fail, unless the fault strikes after all messages have arrived.
  bool fatal;
  /// Called with the put that is hit, and with all later puts.
  void (*strike)(Put& put, Injury& injury);
};
std::span<const FaultRow> faults();
const FaultRow& find_fault(std::string_view name);

/// Place where a fault strikes: put number `ordinal`, from 0, of a kind, counted over all peers.
struct Site {
  std::optional<RecordType> at;  ///< unset: a segment in a window of its own
  std::uint64_t ordinal = 0;
};

/// Makes the strike of one fault at one place. It sets `*struck` if the fault has taken effect.
Strike make_strike(const FaultRow& fault, const Site& site, std::uint64_t draw,
                   std::shared_ptr<std::atomic<bool>> struck);

}  // namespace hipress::transport::test
