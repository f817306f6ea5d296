#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace hipress::traces {

/// Bytes from a beginning to an end, in one pass; memory does not grow with their number.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Up to `most` bytes, and 0 only at the end.
  virtual std::size_t read(char* to, std::size_t most) = 0;
  /// What messages call it: the file.
  virtual const std::string& name() const = 0;
};

/// Most bytes that a file may have, and that what it is unpacked to may have.
inline constexpr std::int64_t kMostPacked = std::int64_t{8} << 30;
inline constexpr std::int64_t kMostUnpacked = std::int64_t{64} << 30;

/// A file's bytes, unpacked if its first two bytes say that it is gzipped (one member or several,
/// RFC 1952). Throws as io::InputFile does, and io::InputError for damaged or truncated gzip data
/// and for more than kMostUnpacked bytes.
std::unique_ptr<ByteStream> open_unpacked(const std::string& path);

/// Bytes that are in memory already, handed out `piece` at a time; 0: all at once. They must
/// outlive the stream.
std::unique_ptr<ByteStream> stream_of(std::string_view bytes, std::size_t piece = 0);

/// A stream whose first bytes can be looked at before they are read.
class Peeked : public ByteStream {
 public:
  /// `stream` must outlive it.
  explicit Peeked(ByteStream& stream) : stream_(stream) {}
  /// The first bytes, at most `most` of them; to be called before the first read.
  std::string_view peek(std::size_t most);
  std::size_t read(char* to, std::size_t most) override;
  const std::string& name() const override { return stream_.name(); }

 private:
  ByteStream& stream_;
  std::string first_;
  std::size_t taken_ = 0;
};

}  // namespace hipress::traces
