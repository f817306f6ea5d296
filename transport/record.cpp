#include "transport/record.hpp"

#include "transport/endpoint.hpp"

namespace hipress::transport {
namespace {

std::uint32_t crc_of_fields(const Record& record) {
  return crc32c(std::as_bytes(std::span(&record, 1)).first(offsetof(Record, record_crc)));
}

}  // namespace

void seal(Record& record) { record.record_crc = crc_of_fields(record); }

std::string_view fault(const Record& record, std::uint64_t job, std::uint64_t sequence) {
  if (record.magic != Record::kMagic) return "something that is no record";
  if (record.record_crc != crc_of_fields(record)) return "a damaged record";
  if (record.job != job) return "a record of another job";
  if (record.sequence != sequence) return "a record out of sequence";
  if (record.segment_bytes > record.length ||
      record.offset > record.length - record.segment_bytes) {
    return "a record of a segment outside its message";
  }
  const std::size_t limit = record.is_inline != 0 ? kInlineBytes : kSegmentBytes;
  if (record.segment_bytes > limit) return "a record of too long a segment";
  return {};
}

}  // namespace hipress::transport
