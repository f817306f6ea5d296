// Tests kernels/export/operator.hpp, which frameworks' wrappers call, with a hand-written
// algorithm: it has its own decode function and two state arrays, and its messages vary in length.
#include "kernels/export/operator.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/compll/compiled.hpp"

// operator.hpp hides the types that it declares; this header uses them and must be hidden, too.
#pragma GCC visibility push(hidden)
#include "kernels/user/algorithm.hpp"
#pragma GCC visibility pop

extern "C" const hipress::kernels::CompiledAlgorithm hipress_dgc_portable;

using namespace hipress::kernels;
using Catch::Matchers::Contains;

namespace {

/// Algorithm "Positive": sends the number of positive values, and the index and value / `scale` of
/// each. The first state array counts encodes, the second one holds the last gradient.
namespace positive {

struct Entry {
  std::int32_t index;
  float value;
};

double scale_of(const BoundAlgorithm& bound) {
  double scale;
  std::memcpy(&scale, bound.bytes, sizeof scale);
  return scale;
}

void bind(const double* values, BoundAlgorithm& bound) {
  std::memcpy(bound.bytes, values, 2 * sizeof *values);
}

std::int64_t encoded_bytes(const BoundAlgorithm&, std::int64_t elements) {
  return 8 + elements * static_cast<std::int64_t>(sizeof(Entry));
}

void encode(const BoundAlgorithm& bound, const EncodeItem& item) {
  REQUIRE(reinterpret_cast<std::uintptr_t>(item.message) % 16 == 0);
  const auto* const values = static_cast<const float*>(item.values);
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < item.elements; ++i) {
    if (item.state.data != nullptr) {
      item.state.data[i] += 1;
      item.state.data[item.state.stride + i] = values[i];
    }
    if (values[i] <= 0) continue;
    const Entry entry = {static_cast<std::int32_t>(i),
                         values[i] / static_cast<float>(scale_of(bound))};
    std::memcpy(item.message + 8 + count++ * static_cast<std::int64_t>(sizeof entry), &entry,
                sizeof entry);
  }
  std::memcpy(item.message, &count, sizeof count);
  *item.message_bytes = 8 + count * static_cast<std::int64_t>(sizeof(Entry));
}

std::size_t decode(const BoundAlgorithm& bound, const DecodeItem& item) {
  REQUIRE(reinterpret_cast<std::uintptr_t>(item.messages[0]) % 16 == 0);
  std::int64_t count = 0;
  if (item.message_bytes[0] < 8) return 0;
  std::memcpy(&count, item.messages[0], sizeof count);
  if (item.message_bytes[0] != 8 + count * static_cast<std::int64_t>(sizeof(Entry))) return 0;
  auto* const values = static_cast<float*>(item.values);
  if (item.mode == DecodeMode::kOverwrite) std::fill_n(values, item.elements, 0.0f);
  for (std::int64_t i = 0; i < count; ++i) {
    Entry entry;
    std::memcpy(&entry, item.messages[0] + 8 + i * static_cast<std::int64_t>(sizeof entry),
                sizeof entry);
    values[entry.index] += entry.value * static_cast<float>(scale_of(bound));
  }
  return 1;
}

constexpr DeclaredParameter kParameters[] = {{"scale", 2, 0.5, 8, false},
                                             {"keep", __builtin_nan(""), 1, 4, true}};
const CompiledAlgorithm kProgram = {.name = "positive",
                                    .parameters = kParameters,
                                    .parameter_count = 2,
                                    .error_feedback = true,
                                    .state_arrays = 2,
                                    .deferrable = false,
                                    .bind = bind,
                                    .encoded_bytes = encoded_bytes,
                                    .encode = encode,
                                    .decode = decode,
                                    .settle = nullptr,
                                    .planes_offset = 0,
                                    .planes = nullptr,
                                    .levels = nullptr,
                                    .cuda = {}};

}  // namespace positive

std::vector<std::byte> encoded(const Operator& coder, const std::vector<float>& values,
                               float* state) {
  const auto elements = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> message(static_cast<std::size_t>(coder.message_bytes(elements)));
  message.resize(static_cast<std::size_t>(
      coder.encode(values.data(), elements, state, draw_key(0, 0, 0, 0), message.data())));
  return message;
}

}  // namespace

TEST_CASE("an operator serves algorithms that decode by themselves") {
  const Operator coder(positive::kProgram, {4, 1});
  const std::vector<float> values = {1, -2, 3, 0};
  std::vector<float> state(8, 5);
  const std::vector<std::byte> message = encoded(coder, values, state.data());
  CHECK(coder.message_bytes(4) == 8 + 4 * 8);
  CHECK(message.size() == 8 + 2 * 8);  // two values are positive
  CHECK(state == std::vector<float>{6, 6, 6, 6, 1, -2, 3, 0});

  std::vector<float> decoded(4, 9), sum(4, 10);
  const auto bytes = static_cast<std::int64_t>(message.size());
  coder.decode(message.data(), bytes, 4, decoded.data());
  coder.decode_add(message.data(), bytes, 4, sum.data());
  CHECK(decoded == std::vector<float>{1, 0, 3, 0});
  CHECK(sum == std::vector<float>{11, 10, 13, 10});

  CHECK_THROWS_WITH(coder.decode(message.data(), bytes - 8, 4, decoded.data()),
                    Contains("positive: damaged message"));
  CHECK_THROWS_WITH(coder.decode(message.data(), 41, 4, decoded.data()),
                    Contains("a message of 41 bytes for 4 elements, expected at most 40"));
  CHECK_THROWS_WITH(coder.decode(message.data(), 0, 4, decoded.data()), Contains("0 bytes"));
}

TEST_CASE("messages of an operator may lie anywhere") {
  const Operator coder(positive::kProgram, {4, 1});
  const std::vector<float> values = {1, -2, 3, 0};
  alignas(16) std::byte room[64];
  std::vector<float> decoded(4);
  for (std::byte* const message : {room, room + 1, room + 8}) {
    const std::int64_t bytes =
        coder.encode(values.data(), 4, nullptr, draw_key(0, 0, 0, 0), message);
    coder.decode(message, bytes, 4, decoded.data());
    CHECK(decoded == std::vector<float>{1, 0, 3, 0});
  }
}

TEST_CASE("an operator's parameters are checked, by order and by name") {
  const auto by_name = [](std::vector<Operator::Named> given) {
    Operator::of(positive::kProgram, given);
  };
  CHECK_NOTHROW(by_name({{"keep", 2}}));
  CHECK_THROWS_WITH(by_name({}), Contains("keep has no default and was not given"));
  CHECK_THROWS_WITH(by_name({{"keep", 2.5}}), Contains("whole numbers from 1 to 4"));
  CHECK_THROWS_WITH(by_name({{"keep", 2}, {"scale", 9}}),
                    Contains("scale=9 is out of range; it takes numbers from 0.5 to 8"));
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(by_name({{"keep", kNan}}), Contains("keep=nan is out of range"));
  CHECK_THROWS_WITH(by_name({{"keep", 2}, {"scale", kNan}}), Contains("scale=nan is out of range"));
  CHECK_THROWS_WITH(Operator(positive::kProgram, {2, kNan}), Contains("keep=nan is out of range"));
  CHECK_THROWS_WITH(by_name({{"kep", 2}}),
                    Contains("no parameter is called 'kep'; there is scale, keep"));
  CHECK_THROWS_WITH(Operator(positive::kProgram, {2}), Contains("1 parameters, expected 2"));
}

TEST_CASE("an operator's state has a row for every array") {
  const Operator coder(positive::kProgram, {4, 1});
  using Shape = std::vector<std::int64_t>;
  CHECK(coder.takes_state(Shape{2, 33}, 33));
  CHECK_FALSE(coder.takes_state(Shape{0}, 33));
  CHECK_FALSE(coder.takes_state(Shape{2, 0}, 33));
  for (const Shape& wrong : {Shape{1, 33}, Shape{66}, Shape{33, 2}, Shape{}, Shape{1, 2, 33}}) {
    CHECK_THROWS_WITH(coder.takes_state(wrong, 33), Contains("expected [2, 33]"));
  }
}

TEST_CASE("an operator's lengths and keys are sane") {
  const Operator coder(positive::kProgram, {4, 1});
  CHECK(coder.message_bytes(0) == 0);
  CHECK_THROWS_WITH(coder.message_bytes(-1), Contains("a gradient of -1 elements"));
  CHECK_THROWS_WITH(coder.message_bytes(INT64_MAX), Contains("elements"));
  CHECK_NOTHROW(coder.decode(nullptr, 0, 0, nullptr));
  CHECK_THROWS_WITH(coder.decode(nullptr, 4, 0, nullptr), Contains("expected 0"));
  CHECK_THROWS_WITH(draw_key(0, 0, -1, 0), Contains("node -1"));
  CHECK_THROWS_WITH(draw_key(0, 0, 0, std::int64_t{1} << 32), Contains("gradient_number"));
  CHECK(draw_key(-1, 2, 3, 4).seed == ~std::uint64_t{0});
}

namespace {

/// Requires that decode() refuses a message that is cut anywhere, or that has one element too few.
void check_cut_messages(const Operator& coder) {
  std::vector<float> values(1000), decoded(1001);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int>(i % 7) - 3);
  }
  const std::vector<std::byte> message = encoded(coder, values, nullptr);
  const auto bytes = static_cast<std::int64_t>(message.size());
  REQUIRE(bytes == coder.message_bytes(1000));
  CHECK_NOTHROW(coder.decode(message.data(), bytes, 1000, decoded.data()));
  const std::vector<float> before = decoded;
  for (std::int64_t n = 0; n < bytes; ++n) {
    INFO(n << " of " << bytes << " bytes");
    // A copy, so that a sanitizer detects reads past the end.
    const std::vector<std::byte> cut(message.begin(), message.begin() + n);
    REQUIRE_THROWS_WITH(coder.decode(cut.data(), n, 1000, decoded.data()), Contains("message"));
  }
  CHECK_THROWS_WITH(coder.decode(message.data(), bytes, 1001, decoded.data()), Contains("message"));
  CHECK(decoded == before);
}

}  // namespace

TEST_CASE("an operator refuses a message that ends too early, wherever it was cut") {
  check_cut_messages(Operator(hipress_dgc_portable, {0.1, 0.9}));
  const std::string sorts = testing::program_file(
      "sorts",
      "void SortEncode(float* gradient, uint8* compressed) {\n"
      "  float* positive = filter(gradient, [](float v) { return v > 0; });\n"
      "  compressed = concat(positive);\n}\n"
      "void SortDecode(uint8* compressed, float* gradient) {\n"
      "  float* positive;\n  extract(compressed, positive);\n"
      "  gradient = map(range(gradient.size), [&](int i) { return positive[i]; });\n}\n");
  check_cut_messages(Operator(*load_program(sorts).algorithm, {}));
}

TEST_CASE("an operator refuses slices longer than the algorithm's messages can say") {
  // A density of 1e-9 sends 5 of 33 + 2^32 elements: after the header, two arrays with room for 8
  // numbers. The header has the length modulo 2^32, here 33.
  const Operator coder(hipress_dgc_portable, {1e-9, 0.9});
  constexpr std::int64_t kElements = 33 + (std::int64_t{1} << 32);
  REQUIRE(coder.message_bytes(kElements) == 16 + 2 * 32);
  std::vector<std::byte> message = encoded(coder, std::vector<float>(33, 1.0f), nullptr);
  message.resize(16 + 2 * 32);
  float nothing = 0;
  CHECK_THROWS_WITH(
      coder.decode(message.data(), static_cast<std::int64_t>(message.size()), kElements, &nothing),
      Contains("damaged message"));
}
