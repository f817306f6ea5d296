// Tests the parts of the C interface for programs whose own collectives carry messages: codecs, and
// plans of sharded schedules.
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/hipress.h"

using Catch::Contains;

namespace {

constexpr std::int64_t kElements = 512;

std::string last_error() { return hipress_last_error(); }

/// A temporary file, which the destructor removes.
class File {
 public:
  explicit File(const std::string& name, const std::string& content = {})
      : path_(std::filesystem::temp_directory_path() / (std::to_string(getpid()) + name)) {
    if (!content.empty()) std::ofstream(path_) << content;
  }
  ~File() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// A codec, and the maximum size of its messages of kElements elements.
struct Coder {
  explicit Coder(const char* algorithm, std::uint64_t seed = 1) {
    REQUIRE(hipress_codec_open(algorithm, seed, &codec) == HIPRESS_OK);
    capacity = hipress_codec_bytes(codec, kElements);
  }
  Coder(const Coder&) = delete;
  Coder& operator=(const Coder&) = delete;
  ~Coder() { hipress_codec_close(codec); }

  std::vector<std::byte> encoded(const std::vector<float>& values, std::uint64_t step,
                                 std::int64_t state_elements) const {
    auto* const room = static_cast<std::byte*>(std::aligned_alloc(64, 64 * 64));
    hipress_encode encode = {};
    encode.values = values.data();
    encode.elements = kElements;
    encode.step = step;
    encode.state_elements = state_elements;
    encode.message = room;
    encode.capacity = capacity;
    CHECK(hipress_codec_encode(codec, &encode, 1) == HIPRESS_OK);
    std::vector<std::byte> message(room, room + encode.message_bytes);
    std::free(room);
    return message;
  }

  hipress_codec* codec = nullptr;
  std::int64_t capacity = 0;
};

std::vector<float> ramp() {
  std::vector<float> values(kElements);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 64 - 4;
  return values;
}

const hipress_gradient kGradients[] = {{"a", 100, HIPRESS_FLOAT32, 0, nullptr, 0},
                                       {"b", 60, HIPRESS_FLOAT32, 0, nullptr, 0}};

std::string plan_of(const std::string& top, const std::string& first) {
  return "schema: hipress.plan/1\nmodel: m\ntopology: allreduce\nnodes: 4\n" + top +
         "search: given\nnetwork: fair\nprofile: p\ntool: t\ngradients:\n"
         "- {name: a, elements: 100, algorithm: int4block, K: 1, " +
         first + "}\n- {name: b, elements: 60, algorithm: none, K: 1}\n";
}

hipress_status read_plan(const std::string& path, std::string& found) {
  char* text = nullptr;
  const hipress_status status =
      hipress_read_sharded_plan(path.c_str(), "onebit", 4, kGradients, 2, &text);
  found = text == nullptr ? "" : text;
  hipress_free_result(text);
  return status;
}

}  // namespace

TEST_CASE("runtime: codecs in C: the mean of what two messages decode to, rounded once") {
  const Coder half("fp16");
  hipress_codec_traits traits;
  REQUIRE(hipress_codec_describe(half.codec, &traits) == HIPRESS_OK);
  CHECK(traits.half_precision == 1);
  CHECK(traits.message_type == HIPRESS_FLOAT16);
  CHECK(traits.keeps == 0);
  CHECK(half.capacity == 2 * kElements);
  // fp16 represents multiples of 1/64 up to 4: they have at most 8 bits. (x + x) / 2 = x.
  const std::vector<float> values = ramp();
  alignas(16) std::array<std::byte, 2 * kElements> room;
  const std::vector<std::byte> message = half.encoded(values, 0, 0);
  std::copy(message.begin(), message.end(), room.begin());
  const std::array<const void*, 2> messages = {room.data(), room.data()};
  const std::array<std::int64_t, 2> bytes = {2 * kElements, 2 * kElements};
  std::vector<float> mean(kElements, 7);
  hipress_decode decode = {.messages = messages.data(),
                           .message_bytes = bytes.data(),
                           .count = 2,
                           .values = mean.data(),
                           .elements = kElements,
                           .type = HIPRESS_FLOAT32,
                           .divisor = 2};
  REQUIRE(hipress_codec_decode(half.codec, &decode, 1) == HIPRESS_OK);
  CHECK(mean == values);
  // A single message overwrites the values.
  std::fill(mean.begin(), mean.end(), 7.0f);
  decode.count = 1;
  decode.divisor = 0;
  REQUIRE(hipress_codec_decode(half.codec, &decode, 1) == HIPRESS_OK);
  CHECK(mean == values);
}

TEST_CASE(
    "runtime: codecs in C: residuals are kept, saved and loaded, and draws go by step and seed") {
  const std::vector<float> values = ramp();
  const Coder drawn("int4block");
  CHECK(drawn.capacity == 16 + 8 * 4 + 256);  // header, 8 blocks' steps, half a byte per element
  CHECK(drawn.encoded(values, 1, 0) == drawn.encoded(values, 1, 0));
  CHECK(drawn.encoded(values, 1, 0) != drawn.encoded(values, 2, 0));
  CHECK(Coder("int4block", 2).encoded(values, 1, 0) != drawn.encoded(values, 1, 0));

  const Coder first("onebit");
  hipress_codec_traits traits;
  REQUIRE(hipress_codec_describe(first.codec, &traits) == HIPRESS_OK);
  CHECK(traits.keeps == 1);
  // With a residual, the same values in the same step give a different message.
  const File file("-state");
  const auto without = first.encoded(values, 3, kElements);
  REQUIRE(hipress_codec_save(first.codec, file.path().c_str()) == HIPRESS_OK);
  const auto with = first.encoded(values, 3, kElements);
  CHECK(with != without);
  const Coder other("onebit");
  REQUIRE(hipress_codec_load(other.codec, file.path().c_str()) == HIPRESS_OK);
  CHECK(other.encoded(values, 3, kElements) == with);
}

TEST_CASE("runtime: codecs in C: what does not fit is refused in words") {
  hipress_codec* codec = nullptr;
  CHECK(hipress_codec_open("int9block", 1, &codec) == HIPRESS_INVALID);
  CHECK(codec == nullptr);
  CHECK_THAT(last_error(), Contains("int9block") && Contains("int8block"));
  CHECK(hipress_codec_open("powersgd(rank=4)", 1, &codec) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("whole gradients"));
  CHECK(hipress_codec_open("mine.pse", 1, &codec) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("is a program"));
  CHECK(hipress_codec_open(nullptr, 1, &codec) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("algorithm is null"));

  const Coder coder("int8block");
  CHECK(hipress_codec_bytes(coder.codec, -1) == -1);
  CHECK(hipress_codec_bytes(coder.codec, INT64_MAX) == -1);
  CHECK_THAT(last_error(), Contains("elements, got 9223372036854775807"));
  const std::vector<float> values = ramp();
  alignas(16) std::array<std::byte, 64> room;
  hipress_encode encode = {};
  encode.values = values.data();
  encode.elements = kElements;
  encode.message = room.data();
  encode.capacity = 64;
  CHECK(hipress_codec_encode(coder.codec, &encode, 1) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("takes 544 bytes, and there is room for 64"));
  std::vector<float> to(kElements);
  const void* const message = room.data();
  const std::int64_t bytes = 64;
  hipress_decode decode = {};
  decode.messages = &message;
  decode.message_bytes = &bytes;
  decode.count = 1;
  decode.values = to.data();
  decode.elements = kElements;
  CHECK(hipress_codec_decode(coder.codec, &decode, 1) == HIPRESS_FAILED);
  CHECK_THAT(last_error(), Contains("64 bytes"));
}

TEST_CASE("runtime: codecs in C: a decode that is refused has written nothing") {
  for (const char* const algorithm : {"onebit", "int8block", "fp16", "dgc", "lossless"}) {
    INFO(algorithm);
    const Coder coder(algorithm);
    const std::vector<std::byte> made = coder.encoded(ramp(), 0, 0);
    auto* const room = static_cast<std::byte*>(std::aligned_alloc(64, 64 * 64));
    std::copy(made.begin(), made.end(), room);
    const auto length = static_cast<std::int64_t>(made.size());
    // Exactly as many values as the messages have, so that writes beyond them are seen.
    std::vector<float> values(kElements, 7);
    const std::vector<float> before = values;
    const auto decode_with = [&](const void* second, std::int64_t bytes, std::int64_t elements,
                                 void* to) {
      const std::array<const void*, 2> messages = {room, second};
      const std::array<std::int64_t, 2> lengths = {length, bytes};
      // The first decode is valid, but must not be done if the second is refused.
      const std::array<const void*, 1> good = {room};
      std::array<hipress_decode, 2> decodes = {};
      decodes[0] = {.messages = good.data(),
                    .message_bytes = lengths.data(),
                    .count = 1,
                    .values = values.data(),
                    .elements = kElements,
                    .type = HIPRESS_FLOAT32,
                    .divisor = 0};
      decodes[1] = {.messages = messages.data(),
                    .message_bytes = lengths.data(),
                    .count = 2,
                    .values = to,
                    .elements = elements,
                    .type = HIPRESS_FLOAT32,
                    .divisor = 0};
      return hipress_codec_decode(coder.codec, decodes.data(), 2);
    };
    const std::int64_t large = std::int64_t{1} << 20;
    CHECK(decode_with(room, length, large, values.data()) != HIPRESS_OK);
    CHECK(decode_with(room, length, std::int64_t{1} << 31, values.data()) != HIPRESS_OK);
    CHECK(decode_with(room, length, std::int64_t{1} << 62, values.data()) == HIPRESS_INVALID);
    CHECK(decode_with(room, length, INT64_MAX, values.data()) == HIPRESS_INVALID);
    CHECK(decode_with(room, length, -1, values.data()) == HIPRESS_INVALID);
    CHECK(decode_with(room, -1, kElements, values.data()) == HIPRESS_FAILED);
    CHECK(decode_with(room, INT64_MAX, kElements, values.data()) == HIPRESS_FAILED);
    CHECK(decode_with(nullptr, length, kElements, values.data()) == HIPRESS_INVALID);
    CHECK_THAT(last_error(), Contains("a message is null"));
    CHECK(decode_with(room, length, kElements, nullptr) == HIPRESS_INVALID);
    CHECK_THAT(last_error(), Contains("values is null"));
    CHECK(values == before);
    CHECK(decode_with(room, length, kElements, values.data()) == HIPRESS_OK);
    std::free(room);
  }
}

TEST_CASE("runtime: codecs in C: an encode that is refused has written nothing") {
  const Coder coder("onebit");
  auto* const room = static_cast<std::byte*>(std::aligned_alloc(64, 64 * 64));
  const std::vector<float> values = ramp();
  std::array<hipress_encode, 2> encodes = {};
  for (hipress_encode& one : encodes) {
    one.values = values.data();
    one.elements = kElements;
    one.message = room;
    one.capacity = coder.capacity;
    one.state_elements = 2 * kElements;
  }
  const auto encode = [&] { return hipress_codec_encode(coder.codec, encodes.data(), 2); };
  // Looking up the residual of a slice invalidates those of overlapping slices in the call.
  encodes[1].first_element = kElements - 1;
  CHECK(encode() == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("element 511 of gradient 0, role 0; make them in two calls"));
  encodes[0].first_element = INT64_MIN;
  CHECK(encode() == HIPRESS_INVALID);
  encodes[0].first_element = 0;
  encodes[1].first_element = INT64_MAX;
  CHECK(encode() == HIPRESS_INVALID);
  encodes[1].first_element = 0;
  CHECK(encode() == HIPRESS_INVALID);
  encodes[1].first_element = kElements;
  CHECK(encode() == HIPRESS_OK);
  encodes[1].first_element = 0;
  encodes[1].role = 1;
  CHECK(encode() == HIPRESS_OK);
  for (hipress_encode& one : encodes) one.message_bytes = 3;
  encodes[1].message = nullptr;
  CHECK(encode() == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("message is null"));
  encodes[1].message = room;
  encodes[1].values = nullptr;
  CHECK(encode() == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("values is null"));
  CHECK(encodes[0].message_bytes == 3);
  std::free(room);
}

TEST_CASE("runtime: codecs in C: numbers that lie in no gradient are refused") {
  // This holds without residuals, too, as random draws depend on the element.
  for (const char* const algorithm : {"onebit", "tbq", "fp16"}) {
    const Coder coder(algorithm);
    const std::vector<float> values = ramp();
    alignas(16) std::array<std::byte, 4096> room{};
    hipress_encode encode = {};
    encode.values = values.data();
    encode.elements = kElements;
    encode.message = room.data();
    encode.capacity = room.size();
    const auto refused = [&](std::int64_t first_element, std::int64_t state_elements) {
      encode.first_element = first_element;
      encode.state_elements = state_elements;
      encode.message_bytes = 3;
      const hipress_status status = hipress_codec_encode(coder.codec, &encode, 1);
      CHECK((status == HIPRESS_OK || encode.message_bytes == 3));
      return status == HIPRESS_INVALID;
    };
    INFO(algorithm);
    const std::int64_t most = std::int64_t{1} << 48;
    CHECK(refused(-5, 0));
    CHECK_THAT(last_error(), Contains("512 elements from first_element -5 on do not lie within"));
    for (const std::int64_t first : {INT64_MIN, most - kElements + 1, most, INT64_MAX}) {
      CAPTURE(first);
      CHECK(refused(first, 0));
    }
    for (const std::int64_t all : {INT64_MIN, std::int64_t{-1}, std::int64_t{1},
                                   std::int64_t{kElements} - 1, most + 1, INT64_MAX}) {
      CAPTURE(all);
      CHECK(refused(0, all));
    }
    CHECK(refused(1, kElements));
    CHECK_FALSE(refused(most - kElements, 0));
    CHECK_FALSE(refused(kElements, 2 * kElements));
    encode.divisor = NAN;
    CHECK(refused(0, 0));
    CHECK_THAT(last_error(), Contains("divisor is nan"));
  }
}

TEST_CASE("runtime: codecs in C: a count that is a negative number is refused") {
  const Coder coder("onebit");
  hipress_encode encode = {};
  hipress_decode decode = {};
  const auto negative = static_cast<std::size_t>(-1);
  CHECK(hipress_codec_encode(coder.codec, &encode, negative) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("count is 18446744073709551615, which no list of encodes"));
  CHECK(hipress_codec_decode(coder.codec, &decode, negative) == HIPRESS_INVALID);
  char* text = nullptr;
  CHECK(hipress_read_sharded_plan("none", "onebit", 2, kGradients, negative, &text) ==
        HIPRESS_INVALID);
  CHECK(hipress_read_sharded_plan("none", "onebit", -1, kGradients, 2, &text) == HIPRESS_INVALID);
}

TEST_CASE("runtime: plans of shards in C: what is decided, by gradient") {
  const File file("-plan.yaml", plan_of("schedule: fsdp(reshard=false)\nexchange_within: 2\n",
                                        "gather: int8block"));
  std::string found;
  CHECK(read_plan(file.path(), found) == HIPRESS_OK);
  CHECK(
      found ==
      R"json({"schedule":"fsdp(reshard=false)","named":false,"shard":4,"reshard":1,)json"
      R"json("prefetch":"pre","in_flight":2,"separate_communicators":false,)json"
      R"json("exchange_within":2,"gradients":[{"algorithm":"int4block","gather":"int8block"},)json"
      R"json({"algorithm":null,"gather":null}]})json");
  // A named plan only determines the reductions.
  CHECK(read_plan("int8block", found) == HIPRESS_OK);
  CHECK_THAT(found, Contains(R"("schedule":null,"named":true,"shard":4,"reshard":4)") &&
                        Contains(R"({"algorithm":"int8block","gather":null})"));
}

TEST_CASE("runtime: plans of shards in C: what cannot be trained so is refused") {
  std::string found;
  const File averaged("-ddp.yaml", plan_of("", ""));
  CHECK(read_plan(averaged.path(), found) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("-ddp.yaml:1: the plan is for schedule ddp"));
  CHECK(found.empty());
  const File local("-local.yaml", plan_of("schedule: local(steps=4)\n", ""));
  CHECK(read_plan(local.path(), found) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("-local.yaml:5: schedule: the plan is for schedule local"));
  const File coarse("-coarse.yaml", plan_of("schedule: fsdp\n", "gather: onebit"));
  CHECK(read_plan(coarse.path(), found) == HIPRESS_INVALID);
  CHECK_THAT(last_error(),
             Contains("-coarse.yaml:11: gradient 'a'") && Contains("gathered as onebit"));
  // Ranks apply momentum when they encode, so the sum of their messages gives no mean of gradients.
  std::string with_momentum = plan_of("schedule: fsdp\n", "gather: int8block");
  with_momentum.replace(with_momentum.find("algorithm: none"), 15, "algorithm: dgc(momentum=0.9)");
  const File optimizer("-optimizer.yaml", with_momentum);
  CHECK(read_plan(optimizer.path(), found) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("-optimizer.yaml:5: schedule: gradient 'b'"));
  CHECK(read_plan("dgc(momentum=0.9)", found) == HIPRESS_INVALID);  // a named plan
  CHECK_THAT(last_error(), Contains("gradient 'a'") && Contains("dgc(momentum=0.9)"));
  CHECK(read_plan("powersgd(rank=1)", found) == HIPRESS_OK);  // it leaves vectors raw
  CHECK(read_plan("nowhere", found) == HIPRESS_INVALID);
  char* text = nullptr;
  CHECK(hipress_read_sharded_plan("none", "onebit", 0, kGradients, 2, &text) == HIPRESS_INVALID);
  CHECK(hipress_read_sharded_plan(nullptr, "onebit", 2, kGradients, 2, &text) == HIPRESS_INVALID);
  CHECK_THAT(last_error(), Contains("plan is null"));
}
