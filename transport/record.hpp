#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hipress::transport {

/// What a record says.
enum class RecordType : std::uint16_t {
  kHello,     ///< `tag` has connected; the first record
  kManifest,  ///< content: what its sender expects of the receiver in `exchange`, as ManifestEntry
  kBegin,     ///< its sender has begun iteration `iteration`, its `tag`-th, of `exchange`
  kPosted,    ///< its sender can receive messages of its `tag`-th iteration of `exchange`
  kMessage,   ///< a segment of message `tag`
  kGather,    ///< content: a segment of its sender's text in all_gather number `iteration`
  kBeat,      ///< its sender lives; brings nothing but `consumed`
  kAbort,     ///< rank `tag` has ended the job; iteration: the number of a Loss; content: why
  kEnd,       ///< its sender has left in good order, after `iteration` all-reduces; the last record
};

/// A rank writes to a peer by writing records into the peer's *ring*, a window of fixed size. Up to
/// kInlineBytes of content follow their record in the ring. Longer content is written in segments
/// of kSegmentBytes straight into a window of its own; each segment is announced by a record
/// *after* it, so that it has arrived when its record has. A record has fields of the whole content
/// and fields of the segment.
struct Record {
  static constexpr std::uint32_t kMagic = 0x48695072;  // also tells a host of other byte order

  std::uint32_t magic = kMagic;
  RecordType type = RecordType::kBeat;
  std::uint16_t is_inline = 1;  ///< 1: the segment follows the record; 0: it is in its window
  std::uint64_t job = 0;        ///< hash of the job's text and plan
  std::uint64_t sequence = 0;   ///< of all records from this sender to this receiver
  std::uint64_t consumed = 0;   ///< ring bytes of the other direction that may be written again
  std::uint64_t iteration = 0;
  std::uint64_t length = 0;  ///< bytes of the whole content
  std::uint64_t offset = 0;  ///< of the segment in it
  std::uint32_t segment_bytes = 0;
  std::uint32_t segment_crc = 0;  ///< CRC32C of the segment
  std::uint32_t exchange = 0;
  std::uint32_t tag = 0;
  std::uint32_t reserved = 0;
  std::uint32_t record_crc = 0;  ///< CRC32C of all the fields before
};
static_assert(sizeof(Record) == 80);

/// One message that a rank expects, and where its peer is to put it.
struct ManifestEntry {
  std::uint32_t tag = 0;
  std::int32_t slot = -1;  ///< of the window; -1: the message is never longer than kInlineBytes
  std::uint64_t capacity = 0;
};

/// The longest content that travels inside the ring. Larger: fewer, cheaper writes for small
/// messages, more copying and memory.
inline constexpr std::size_t kInlineBytes = 4096;
/// Larger: fewer records; smaller: a segment stays in the cache between its CRC and its copy, and
/// the receiver checks one while the next travels.
inline constexpr std::size_t kSegmentBytes = 256 * 1024;
inline constexpr std::size_t kRingBytes = 256 * 1024;
/// Ring bytes that only beats, aborts and ends may use, so that a full ring cannot silence a rank.
inline constexpr std::size_t kRingReserve = 16 * 1024;
inline constexpr int kRingSlot = 0;

/// Ring bytes taken by a record and what follows it.
constexpr std::size_t footprint(std::size_t inline_bytes) {
  return sizeof(Record) + (inline_bytes + 15) / 16 * 16;
}

/// Where in the ring the record that begins at stream position `position` lies. A record never
/// wraps: both ends skip the ring's last bytes when the largest record would not fit there.
struct Place {
  std::size_t skipped;
  std::size_t offset;
};
constexpr Place place_at(std::uint64_t position) {
  const auto offset = static_cast<std::size_t>(position % kRingBytes);
  const std::size_t left = kRingBytes - offset;
  return left < footprint(kInlineBytes) ? Place{left, 0} : Place{0, offset};
}

/// Fills in `record_crc`.
void seal(Record& record);

/// An empty text if the record is whole and belongs to this job and place in the sequence, else
/// what is wrong with it.
std::string_view fault(const Record& record, std::uint64_t job, std::uint64_t sequence);

}  // namespace hipress::transport
