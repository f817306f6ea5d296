// Fuzzes the reader of a connection: frames (InStream), and the records (Inbound) in the ring that
// frames fill. Damaged input must end with an error, and nothing outside a window may be written.
//
//   build/fuzz/tests/transport/fuzz_records -max_total_time=600 -max_len=8192

#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "transport/link.hpp"
#include "transport/tcp_stream.hpp"

namespace {

using namespace hipress::transport;

constexpr std::uint64_t kJob = 42;
constexpr int kOtherSlot = 7;
constexpr std::size_t kOtherBytes = 100;

class StreamWindow : public Window {
 public:
  StreamWindow(InStream& stream, int slot, std::span<std::byte> memory)
      : stream_(stream), slot_(slot) {
    stream_.expose(slot, memory);
  }
  ~StreamWindow() override { stream_.withdraw(slot_); }
  StreamWindow(const StreamWindow&) = delete;
  StreamWindow& operator=(const StreamWindow&) = delete;
  void wait() override { stream_.wait(slot_); }

 private:
  InStream& stream_;
  const int slot_;
};

/// Wire that only has windows, all of one stream.
class ReadingWire : public Wire {
 public:
  explicit ReadingWire(InStream& stream) : stream_(stream) {}
  std::unique_ptr<Window> expose(int, int slot, std::span<std::byte> memory) override {
    return std::make_unique<StreamWindow>(stream_, slot, memory);
  }
  std::unique_ptr<Writer> open(int, int, std::span<const std::byte>) override { return nullptr; }
  std::shared_ptr<WireCollective> collective(const TellAll&) override { return nullptr; }
  void connect() override {}
  void close() noexcept override { stream_.close(); }

 private:
  InStream& stream_;
};

void append(std::vector<std::byte>& bytes, const void* more, std::size_t count) {
  const auto* const begin = static_cast<const std::byte*>(more);
  bytes.insert(bytes.end(), begin, begin + count);
}

/// Makes the fuzzer's bytes into records with valid CRCs, in frames for the ring.
std::vector<std::byte> sealed(std::span<const unsigned char> input) {
  std::vector<std::byte> stream;
  std::uint64_t sequence = 0, position = 0;
  while (input.size() >= sizeof(Record)) {
    Record record;
    std::memcpy(&record, input.data(), sizeof record);
    input = input.subspan(sizeof record);
    record.magic = Record::kMagic;
    record.job = kJob;
    record.sequence = sequence++;
    const std::size_t follows = std::min<std::size_t>(record.segment_bytes % 256, input.size());
    const auto content = input.first(follows);
    input = input.subspan(follows);
    record.segment_crc = crc32c(std::as_bytes(content));
    seal(record);
    const Place place = place_at(position);
    position += place.skipped + footprint(follows);
    const FrameHeader header{.window_offset = place.offset,
                             .bytes = static_cast<std::uint32_t>(footprint(follows)),
                             .slot = kRingSlot};
    append(stream, &header, sizeof header);
    append(stream, &record, sizeof record);
    append(stream, content.data(), content.size());
    stream.resize(stream.size() + footprint(follows) - sizeof record - content.size());
  }
  return stream;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span input(data + 1, size - 1);
  std::vector<std::byte> bytes;
  if (data[0] % 2 == 0) {
    append(bytes, input.data(), input.size());
  } else {
    bytes = sealed(input);
  }
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
  Socket writing(ends[0]);
  InStream stream;
  ReadingWire wire(stream);
  Inbound inbound(wire, 1, kJob);
  // Exactly as long as the window, so that the address sanitizer sees any write beyond it.
  std::vector<std::byte> other(kOtherBytes);
  const StreamWindow window(stream, kOtherSlot, other);
  stream.connect(Socket(ends[1]));
  const std::size_t sent = std::min<std::size_t>(bytes.size(), 64 * 1024);  // the kernel's room
  if (::send(writing.number(), bytes.data(), sent, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && sent > 0) {
    std::abort();
  }
  writing.close();
  try {
    for (;;) {
      const auto [record, content] = inbound.next();
      volatile std::byte last{};
      for (const std::byte byte : content) last = byte;
      (void)last;
      inbound.release();
    }
  } catch (const WireClosed&) {
  } catch (const std::runtime_error&) {
  }
  stream.close();
  return 0;
}
