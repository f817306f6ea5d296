#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hipress::transport {

/// Type of a record, with the meaning of its fields.
enum class RecordType : std::uint16_t {
  kHello,     ///< rank `tag` has connected; the first record
  kManifest,  ///< content: ManifestEntry list of the messages that the sender expects in `exchange`
  kBegin,     ///< the sender has begun iteration `iteration` of `exchange`, as its `tag`-th one
  kPosted,    ///< the sender can receive messages of its `tag`-th iteration of `exchange`
  kMessage,   ///< a segment of message `tag`
  kGather,    ///< content: a segment of the sender's text in all_gather number `iteration`
  kBeat,      ///< heartbeat; carries only `consumed`
  kAbort,     ///< rank `tag` ended the job; `iteration`: a Loss; content: the reason
  kEnd,  ///< the sender has left in good order, after `iteration` collective calls; the last record
};

/// Header of a message in the *ring*, a window of fixed size through which a rank writes to a peer.
/// Up to kInlineBytes of content follow their record in the ring. Longer content is written in
/// segments of kSegmentBytes straight into a window of its own. The record of a segment is sent
/// *after* it, so the segment has arrived when its record has.
struct Record {
  static constexpr std::uint32_t kMagic = 0x48695072;  // also detects a host with a different byte
                                                       // order

  std::uint32_t magic = kMagic;
  RecordType type = RecordType::kBeat;
  std::uint16_t is_inline = 1;  ///< 1: the segment follows the record; 0: it is in its own window
  std::uint64_t job = 0;        ///< hash of the job's id and plan
  std::uint64_t sequence = 0;   ///< number of the record from this sender to this receiver
  std::uint64_t consumed = 0;   ///< position up to which the sender has read its ring
  std::uint64_t iteration = 0;
  std::uint64_t length = 0;  ///< size of the whole content, bytes
  std::uint64_t offset = 0;  ///< offset of the segment in the content, bytes
  std::uint32_t segment_bytes = 0;
  std::uint32_t segment_crc = 0;  ///< CRC32C of the segment
  std::uint32_t exchange = 0;
  std::uint32_t tag = 0;
  std::uint32_t reserved = 0;
  std::uint32_t record_crc = 0;  ///< CRC32C of all preceding fields
};
static_assert(sizeof(Record) == 80);

/// A message that a rank expects, and the window for it.
struct ManifestEntry {
  std::uint32_t tag = 0;
  std::int32_t slot = -1;  ///< slot of the window; -1: inline, never longer than kInlineBytes
  std::uint64_t capacity = 0;
};

/// Maximum size of inline content. A larger one means fewer and cheaper writes for small messages,
/// but more copying and memory.
inline constexpr std::size_t kInlineBytes = 4096;
/// Size of a segment. Larger segments need fewer records. Smaller ones stay in the cache between
/// CRC and copy, and the receiver checks one while the next travels.
inline constexpr std::size_t kSegmentBytes = 256 * 1024;
inline constexpr std::size_t kRingBytes = 256 * 1024;
/// Ring bytes reserved for beats, aborts and ends, so that a full ring cannot silence a rank.
inline constexpr std::size_t kRingReserve = 16 * 1024;
inline constexpr int kRingSlot = 0;

/// Ring bytes of a record with its inline content.
constexpr std::size_t footprint(std::size_t inline_bytes) {
  return sizeof(Record) + (inline_bytes + 15) / 16 * 16;
}

/// Location in the ring of a record at stream position `position`. A record never wraps: both ends
/// skip the ring's last bytes if the largest record does not fit there.
struct Place {
  std::size_t skipped;
  std::size_t offset;
};
constexpr Place place_at(std::uint64_t position) {
  const auto offset = static_cast<std::size_t>(position % kRingBytes);
  const std::size_t left = kRingBytes - offset;
  return left < footprint(kInlineBytes) ? Place{left, 0} : Place{0, offset};
}

/// Sets `record_crc`.
void seal(Record& record);

/// Checks a record's CRC, job and sequence number. Returns a description of the fault, or an empty
/// text.
std::string_view fault(const Record& record, std::uint64_t job, std::uint64_t sequence);

}  // namespace hipress::transport
