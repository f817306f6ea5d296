// Tests that a decode writes only to its own values, even if a member of the job writes into the
// window (shared memory) that holds the message while it is decoded.

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/codec/codec.hpp"

namespace hipress::kernels {
namespace {

/// Memory between inaccessible regions, each larger than the 16 GiB that a 32-bit index reaches.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes)
      : bytes_(kGuard + bytes + kGuard),
        memory_(static_cast<std::byte*>(::mmap(
            nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    REQUIRE(memory_ != MAP_FAILED);
    REQUIRE(::mprotect(memory_ + kGuard, bytes, PROT_READ | PROT_WRITE) == 0);
  }
  ~Guarded() { ::munmap(memory_, bytes_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  std::byte* data() { return memory_ + kGuard; }

 private:
  static constexpr std::size_t kGuard = std::size_t{17} << 30;
  std::size_t bytes_;
  std::byte* memory_;
};

/// The writing member. When page `watched` is first read, it replaces the window's bytes between
/// offset `from` and that page.
struct Member {
  std::byte* window = nullptr;
  std::byte* watched = nullptr;
  std::size_t page = 0;
  const std::vector<std::byte>* other = nullptr;
  std::size_t from = 0;  ///< offset of the first byte that is replaced
  int puts = 0;
};
Member member;

void put(int, siginfo_t* info, void*) {
  auto* const at = static_cast<std::byte*>(info->si_addr);
  if (at < member.watched || at >= member.watched + member.page) {
    constexpr char kWords[] = "a decode left its values\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kWords, sizeof kWords - 1);
    _exit(70);
  }
  ::mprotect(member.watched, member.page, PROT_READ | PROT_WRITE);
  for (std::byte* to = member.window + member.from; to < member.watched; ++to) {
    *to = (*member.other)[static_cast<std::size_t>(to - member.window)];
  }
  ++member.puts;
}

class Handler {
 public:
  Handler() {
    struct sigaction action = {};
    action.sa_sigaction = put;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, &before_);
  }
  ~Handler() { ::sigaction(SIGSEGV, &before_, nullptr); }
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;

 private:
  struct sigaction before_ = {};
};

constexpr std::int64_t kElements = 1 << 21;

struct Put {
  const char* what;
  std::size_t from;    ///< offset of the first word that is replaced, in bytes
  std::uint32_t word;  ///< new value of the words
  std::size_t step;    ///< distance between replaced words, in bytes
};

/// Decodes a message whose beginning is replaced after its validation, while the rest is validated.
void decode_while_changed(const std::string& name, const Put& what, DecodeMode mode,
                          float sum_divisor, ValueType type = ValueType::kFloat32) {
  const auto codec = make_codec(name);
  std::vector<float> values(kElements);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i * 2654435761u % 1000) - 500;
  }
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::int64_t bytes = codec->encoded_bytes(kElements);
  Guarded window((static_cast<std::size_t>(bytes) + page - 1) / page * page);
  EncodeItem encode;
  encode.values = values.data();
  encode.elements = kElements;
  encode.message = window.data();
  encode.message_bytes = &bytes;
  codec->encode({&encode, 1});
  std::vector<std::byte> other(window.data(), window.data() + bytes);
  for (std::size_t i = what.from; i + 4 <= other.size(); i += what.step) {
    std::memcpy(&other[i], &what.word, 4);
  }
  Guarded output(kElements * sizeof(float));
  std::memset(output.data(), 0, kElements * sizeof(float));
  // A third of the message, or two thirds of a sparsifier's indices, come before the watched page.
  member = {.window = window.data(),
            .watched = window.data() + static_cast<std::size_t>(bytes) / 3 / page * page,
            .page = page,
            .other = &other,
            .from = what.from};
  const std::byte* const read = window.data();
  DecodeItem decode;
  decode.messages = {&read, 1};
  decode.message_bytes = {&bytes, 1};
  decode.elements = kElements;
  decode.values = output.data();
  decode.mode = mode;
  decode.own_divisor = 1;
  decode.sum_divisor = sum_divisor;
  decode.type = type;
  {
    const Handler handler;
    REQUIRE(::mprotect(member.watched, page, PROT_NONE) == 0);
    try {
      codec->decode({&decode, 1});
    } catch (const std::runtime_error&) {
      // Words that were replaced before they were validated are refused.
    }
  }
  CHECK(member.puts == 1);
}

TEST_CASE("a decode writes its own values alone, whatever is put into its message meanwhile",
          "[slow]") {
  const Put puts[] = {{"indices behind the end", 16, 0xfffffff0u, 8},
                      {"indices before a part's first", 16, 0, 8},
                      {"entries without end, at any place", 8, 0x7fffffffu, 4},
                      {"entries without end, at the first place", 8, 0x7fffffffu, 1 << 20},
                      {"all of it", 0, 0, 4}};
  for (const char* name : {"graddrop(rho=0.2)", "dgc(rho=0.2)", "lossless", "onebit", "tbq",
                           "terngrad", "int8block", "int4block", "fp8block", "fp4block", "fp16"}) {
    for (const Put& what : puts) {
      CAPTURE(name, what.what);
      decode_while_changed(name, what, DecodeMode::kOverwrite, 1);
      decode_while_changed(name, what, DecodeMode::kAdd, 1);
      decode_while_changed(name, what, DecodeMode::kAdd, 4);
      // Slices of 16-bit numbers are decoded part by part, in a buffer of fp32 numbers.
      decode_while_changed(name, what, DecodeMode::kOverwrite, 1, ValueType::kFloat16);
      decode_while_changed(name, what, DecodeMode::kAdd, 1, ValueType::kFloat16);
    }
  }
}

}  // namespace
}  // namespace hipress::kernels
