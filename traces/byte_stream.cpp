#include "traces/byte_stream.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <new>

#include "io/error.hpp"
#include "io/input_file.hpp"
#include "io/quantity.hpp"

namespace hipress::traces {
namespace {

class PlainFile : public ByteStream {
 public:
  explicit PlainFile(const std::string& path)
      : file_(path, {.most_bytes = kMostPacked, .pipe = std::chrono::minutes(10)}) {}
  std::size_t read(char* to, std::size_t most) override { return file_.read(to, most); }
  const std::string& name() const override { return file_.path(); }

 private:
  io::InputFile file_;
};

/// Stream that unpacks another stream.
class Unpacked : public ByteStream {
 public:
  explicit Unpacked(std::unique_ptr<ByteStream> packed) : packed_(std::move(packed)) {
    constexpr int kGzip = 16 + MAX_WBITS;
    if (inflateInit2(&state_, kGzip) != Z_OK) throw std::bad_alloc();
  }
  ~Unpacked() override { inflateEnd(&state_); }
  Unpacked(const Unpacked&) = delete;
  Unpacked& operator=(const Unpacked&) = delete;

  const std::string& name() const override { return packed_->name(); }

  std::size_t read(char* to, std::size_t most) override {
    state_.next_out = reinterpret_cast<Bytef*>(to);
    state_.avail_out = static_cast<uInt>(std::min<std::size_t>(most, 1u << 30));
    const uInt room = state_.avail_out;
    while (state_.avail_out == room && !done_) step();
    const std::size_t got = room - state_.avail_out;
    total_ += static_cast<std::int64_t>(got);
    check_growth();
    if (total_ > kMostUnpacked) {
      throw io::InputError(name(), 0,
                           fmt::format("unpacks to more than {}; give a part of the trace",
                                       io::format_size(kMostUnpacked)));
    }
    return got;
  }

 private:
  void step() {
    if (state_.avail_in == 0) {
      state_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
      state_.avail_in = static_cast<uInt>(packed_->read(buffer_.data(), buffer_.size()));
      taken_ += state_.avail_in;
      if (state_.avail_in == 0 && between_members_) {
        done_ = true;
        return;
      }
      if (state_.avail_in == 0) {
        throw io::InputError(name(), 0,
                             "its gzip data ends too early: it was cut off; copy or export it "
                             "again");
      }
    }
    if (between_members_) inflateReset(&state_);
    between_members_ = false;
    const int status = inflate(&state_, Z_NO_FLUSH);
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status == Z_STREAM_END) {
      between_members_ = true;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      throw io::InputError(name(), 0,
                           "its gzip data is damaged: gzip -t says where; copy or export it again");
    }
  }

  /// Throws io::InputError if the file unpacks to far more than traces do (they shrink to 5–10 %),
  /// or takes too long to read.
  void check_growth() const {
    constexpr std::int64_t kLarge = std::int64_t{256} << 20, kMostRatio = 200;
    constexpr std::chrono::minutes kLongest(20);
    if (total_ < kLarge) return;
    if (total_ / kMostRatio > taken_) {
      throw io::InputError(name(), 0,
                           fmt::format("unpacks to more than {} times its size, {} so far: it is "
                                       "no trace; unpack it to look at it",
                                       kMostRatio, io::format_size(total_)));
    }
    if (std::chrono::steady_clock::now() - start_ > kLongest) {
      throw io::InputError(name(), 0,
                           fmt::format("was read for {} minutes, {} so far; give a part of the "
                                       "trace",
                                       kLongest.count(), io::format_size(total_)));
    }
  }

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::int64_t taken_ = 0;  // packed bytes read
  std::unique_ptr<ByteStream> packed_;
  z_stream state_{};
  std::array<char, 64 * 1024> buffer_;
  bool between_members_ = false;
  bool done_ = false;
  std::int64_t total_ = 0;
};

class InMemory : public ByteStream {
 public:
  InMemory(std::string_view bytes, std::size_t piece) : bytes_(bytes), piece_(piece) {}
  std::size_t read(char* to, std::size_t most) override {
    const std::size_t count = std::min({most, bytes_.size(), piece_ == 0 ? bytes_.size() : piece_});
    if (count > 0) std::memcpy(to, bytes_.data(), count);
    bytes_.remove_prefix(count);
    return count;
  }
  const std::string& name() const override { return name_; }

 private:
  std::string_view bytes_;
  std::size_t piece_;
  std::string name_ = "memory";
};

/// A Peeked stream together with the stream that it reads.
class PeekedFile : public ByteStream {
 public:
  explicit PeekedFile(std::unique_ptr<ByteStream> file) : file_(std::move(file)), peeked_(*file_) {}
  std::string_view peek(std::size_t most) { return peeked_.peek(most); }
  std::size_t read(char* to, std::size_t most) override { return peeked_.read(to, most); }
  const std::string& name() const override { return file_->name(); }

 private:
  std::unique_ptr<ByteStream> file_;
  Peeked peeked_;
};

}  // namespace

std::string_view Peeked::peek(std::size_t most) {
  std::size_t length = first_.size();
  first_.resize(std::max(most, length));
  while (length < most) {
    const std::size_t got = stream_.read(first_.data() + length, most - length);
    if (got == 0) break;
    length += got;
  }
  first_.resize(length);
  return first_;
}

std::size_t Peeked::read(char* to, std::size_t most) {
  if (taken_ == first_.size()) return stream_.read(to, most);
  const std::size_t count = std::min(most, first_.size() - taken_);
  std::memcpy(to, first_.data() + taken_, count);
  taken_ += count;
  return count;
}

std::unique_ptr<ByteStream> open_unpacked(const std::string& path) {
  auto file = std::make_unique<PeekedFile>(std::make_unique<PlainFile>(path));
  if (file->peek(2) == "\x1f\x8b") return std::make_unique<Unpacked>(std::move(file));
  return file;
}

std::unique_ptr<ByteStream> stream_of(std::string_view bytes, std::size_t piece) {
  return std::make_unique<InMemory>(bytes, piece);
}

}  // namespace hipress::traces
