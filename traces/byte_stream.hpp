#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace hipress::traces {

/// A stream of bytes that is read once, from beginning to end, in constant memory.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Reads at most `most` bytes and returns their number, which is 0 only at the end.
  virtual std::size_t read(char* to, std::size_t most) = 0;
  /// Name of the file, for messages.
  virtual const std::string& name() const = 0;
};

/// Maximum size of a file in bytes: as it is stored, and unpacked.
inline constexpr std::int64_t kMostPacked = std::int64_t{8} << 30;
inline constexpr std::int64_t kMostUnpacked = std::int64_t{64} << 30;

/// Opens a file. Unpacks it if its first two bytes are those of gzip (RFC 1952; one or several
/// members). Throws as io::InputFile does. Throws io::InputError for damaged or truncated gzip
/// data, and for more than kMostUnpacked bytes.
std::unique_ptr<ByteStream> open_unpacked(const std::string& path);

/// Stream of bytes, which must outlive it. A read returns at most `piece` bytes; 0: no limit.
std::unique_ptr<ByteStream> stream_of(std::string_view bytes, std::size_t piece = 0);

/// Stream whose first bytes can be inspected before they are read.
class Peeked : public ByteStream {
 public:
  /// `stream` must outlive it.
  explicit Peeked(ByteStream& stream) : stream_(stream) {}
  /// The first bytes, at most `most` of them. Call it before the first read().
  std::string_view peek(std::size_t most);
  std::size_t read(char* to, std::size_t most) override;
  const std::string& name() const override { return stream_.name(); }

 private:
  ByteStream& stream_;
  std::string first_;
  std::size_t taken_ = 0;
};

}  // namespace hipress::traces
