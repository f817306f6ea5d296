// Tests the operators on arrays of any length, with programs compiled at run time.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "io/file.hpp"
#include "kernels/codec/codec.hpp"
#include "tests/compll/check.hpp"
#include "tests/compll/compiled.hpp"
#include "tests/kernels/round_trip.hpp"

namespace hipress::kernels {
namespace {

using testing::compiled;
using testing::program_file;

/// A program that sends the array `out`, which `statements` declare and which is at most as long as
/// the gradient. The program decodes to `out`, followed by zeros.
std::string sends_array(const std::string& statements) {
  return "void ArrayEncode(float* gradient, uint8* compressed) {\n" + statements +
         "\n  compressed = concat(out);\n}\n"
         "void ArrayDecode(uint8* compressed, float* gradient) {\n"
         "  float* out;\n  extract(compressed, out);\n"
         "  gradient = map(range(gradient.size), [&](int i) { return out[i]; });\n}\n"
         "float once() { return random<float>(0, 1); }\n";
}

std::vector<float> array(const std::string& name, const std::string& statements,
                         const std::vector<float>& inputs, const DrawKey& key = {}) {
  return testing::round_trip(*compiled(name, sends_array(statements)), inputs, key, {});
}

TEST_CASE("sort orders numbers, either way, and an array is read at any index") {
  const std::vector<float> inputs = {3, -1, 0, 2, -1, 8, 0.5f, -7};
  CHECK(array("sort_up", "float* out = sort(gradient);", inputs) ==
        std::vector<float>{-7, -1, -1, 0, 0.5f, 2, 3, 8});
  CHECK(array("sort_down",
              "float* sorted = sort(gradient, [](float a, float b) { return a > b; });\n"
              "float least = sorted[sorted.size - 1];\n"
              "float beyond = sorted[sorted.size] + sorted[-1];\n"
              "float* out = map(range(5), [&](int i) {\n"
              "  return i == 0 ? least : i == 1 ? beyond : sorted[i - 2]; });",
              inputs) == std::vector<float>{-7, 0, 8, 3, 2, 0, 0, 0});
}

TEST_CASE("a program of arrays for a GPU is an error that says what to do") {
  const std::string program = program_file("cpu_only", sends_array("float* out = sort(gradient);"));
  try {
    make_codec(program, Device::kCuda);
    FAIL("no error");
  } catch (const std::invalid_argument& error) {
    const std::string said = error.what();
    CHECK(said.find("'array' runs on CPUs only") != std::string::npos);
    CHECK(said.find("use the CPU") != std::string::npos);
  }
}

TEST_CASE("filter keeps elements in their order, and knows where they were") {
  const std::vector<float> inputs = {3, -1, 0, 2, -4, 8, 5, -7, 1, 1};
  CHECK(array("filter",
              "float* large = filter(gradient, [](float v) { return v > 1.5; });\n"
              "int* at = filter(range(gradient.size), [&](int i) { return gradient[i] < 0; });\n"
              "float* of_both = filter(large, [](float v) { return v < 6; });\n"
              "float* negative = gather(gradient, at);\n"
              "float* out = map(range(10), [&](int i) {\n"
              "  return i < 4 ? large[i] : i < 7 ? at[i - 4] : i == 7 ? negative[2]\n"
              "       : i == 8 ? of_both.size : of_both[2]; });",
              inputs) == std::vector<float>{3, 2, 8, 5, 1, 4, 7, -7, 3, 5});
}

TEST_CASE("largest takes the first of equals and no zeros, of any array") {
  const std::vector<float> inputs = {1, -2, 0, 2, -2, 8, 0, 0, 0, 0, 0, 0};
  CHECK(array("largest",
              "int* two = largest(gradient, 2);\n"
              "int* all = largest(gradient, 100);\n"
              "int* none = largest(gradient, -3);\n"
              "float* negative = filter(gradient, [](float v) { return v < 0; });\n"
              "int* of_filter = largest(negative, 1);\n"
              "float* found = gather(negative, of_filter);\n"
              "float* out = map(range(11), [&](int i) {\n"
              "  return i < 2 ? two[i] : i < 7 ? all[i - 2] : i == 7 ? all.size\n"
              "       : i == 8 ? none.size : i == 9 ? of_filter[0] + 100 : found[0]; });",
              inputs) == std::vector<float>{1, 5, 0, 1, 3, 4, 5, 5, 0, 100, -2, 0});
}

TEST_CASE("gather reads, scatter puts, clear empties, and indices outside are ignored") {
  const std::vector<float> inputs = {10, 11, 12, 13, 14, 15, 16, 17};
  CHECK(array("gather",
              "int* at = map(range(4), [](int i) { return i == 3 ? 99 : 6 - 2 * i; });\n"
              "float* gathered = gather(gradient, at);\n"
              "float* scattered = scatter(at, gathered, gradient.size);\n"
              "float* cleared = clear(gradient, at);\n"
              "float* out = map(range(gradient.size), [&](int i) {\n"
              "  return i < 4 ? gathered[i] : i == 4 ? scattered[2] : i == 5 ? scattered[3]\n"
              "       : i == 6 ? cleared[6] : cleared[7]; });",
              inputs) == std::vector<float>{16, 14, 12, 0, 12, 0, 0, 17});
}

TEST_CASE("reduce folds any lambda in its type, over any array") {
  const std::vector<float> inputs = {1, 2, 3, 4, -5, 1000000, 0, 0};
  CHECK(
      array("reduce",
            "float product = reduce(map(range(5), [&](int i) { return gradient[i]; }), 0.5,\n"
            "                       [](float a, float b) { return a * b; });\n"
            "int sum = reduce(map(gradient, [](float v) { return int(v) * 3; }), 1,\n"
            "                 [](int a, int b) { return a + b; });\n"
            "float* none = filter(gradient, [](float v) { return v > 1e30; });\n"
            "float least = reduce(none, 7, [](float a, float b) { return min(a, b); });\n"
            "float* some = filter(gradient, [](float v) { return v > 1.5; });\n"
            "float least_of = reduce(some, -9, [](float a, float b) { return min(a, b); });\n"
            "int bits = reduce(map(some, [](float v) { return int(v); }), 0,\n"
            "                  [](int a, int b) { return a ^ b; });\n"
            "float* out = map(range(5), [&](int i) {\n"
            "  return i == 0 ? product : i == 1 ? sum : i == 2 ? least : i == 3 ? least_of : bits;"
            " });",
            inputs) == std::vector<float>{0.5f * -120, 3 * 1000005 + 1, 7, 2,
                                          static_cast<float>(2 ^ 3 ^ 4 ^ 1000000), 0, 0, 0});
}

TEST_CASE("a fold is cut into blocks of 1024, each from its first element on") {
  // Subtraction depends on the order: the result is initial - fold(block 1) - fold(block 2).
  std::vector<float> inputs(1500);
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<float>(i % 7);
  const auto block = [&](std::size_t begin, std::size_t end) {
    float value = inputs[begin];
    for (std::size_t i = begin + 1; i < end; ++i) value -= inputs[i];
    return value;
  };
  const float expected = 100 - block(0, 1024) - block(1024, 1500);
  CHECK(array("fold",
              "float r = reduce(gradient, 100, [](float a, float b) { return a - b; });\n"
              "float* out = map(range(1), [&](int i) { return r; });",
              inputs)[0] == expected);
}

TEST_CASE("sample takes one element of every part of the array, by the draws' key") {
  std::vector<float> inputs(1000);
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<float>(i);
  const std::string program = "float* out = sample(gradient, 100);";
  const auto first = array("sample", program, inputs);
  for (std::size_t k = 0; k < 100; ++k) {
    CHECK(first[k] >= 10 * static_cast<float>(k));
    CHECK(first[k] < 10 * static_cast<float>(k + 1));
  }
  CHECK(std::set<float>(first.begin(), first.begin() + 100).size() == 100);
  CHECK(array("sample", program, inputs) == first);
  CHECK(array("sample", program, inputs, {.step = 1}) != first);
  // With more samples than elements, some elements occur twice, but none from outside the array.
  const auto many =
      array("sample_many", "float* out = map(sample(gradient, 20), [](float v) { return v + 1; });",
            std::vector<float>(inputs.begin(), inputs.begin() + 7));
  for (const float v : many) CHECK((v >= 1 && v <= 7));
}

TEST_CASE("whole random numbers are uniform and below their end") {
  // A value's count has mean 10000 and standard deviation 95; an error of five of these is allowed.
  const auto drawn =
      array("random_int", "float* out = map(gradient, [](float v) { return random<int>(-3, 7); });",
            std::vector<float>(100000, 1.0f));
  std::map<int, int> counts;
  for (const float v : drawn) ++counts[static_cast<int>(v)];
  REQUIRE(counts.size() == 10);
  CHECK(counts.begin()->first == -3);
  for (const auto& [value, count] : counts) CHECK(std::abs(count - 10000) < 475);
}

TEST_CASE("state is 0 at first, kept between steps, and finite for ever") {
  const auto codec = compiled("state",
                              "void CountEncode(float* gradient, uint8* compressed) {\n"
                              "  error_feedback gradient;\n"
                              "  state float* seen;\n  state float* large;\n"
                              "  seen = map(seen, [](float n) { return n + 1; });\n"
                              "  large = map(large, [](float n) { return (n + 1e30) * 1e9; });\n"
                              "  float* out = map(gradient, seen, [](float g, float n) {\n"
                              "    return 2 * n; });\n"
                              "  compressed = concat(out);\n}\n"
                              "void CountDecode(uint8* compressed, float* gradient) {\n"
                              "  float* out;\n  extract(compressed, out);\n  gradient = out;\n}\n");
  CHECK(codec->traits().state_arrays == 3);
  std::vector<float> states(3 * 5);
  const State state{.data = states.data(), .stride = 5};
  const std::vector<float> gradient = {1, 2, 3, 4, 5};
  CHECK(testing::round_trip(*codec, gradient, {}, state) == std::vector<float>(5, 2.0f));
  // The first five numbers are the residual: gradient - 2. Those of `seen` follow.
  CHECK(states[0] == -1);
  CHECK(states[4] == 3);
  CHECK(states[5] == 1);
  CHECK(testing::round_trip(*codec, gradient, {}, state) == std::vector<float>(5, 4.0f));
  CHECK(states[0] == 1 - 1 - 4);
  CHECK(states[5] == 2);
  for (const float v : states) CHECK(std::isfinite(v));
  // Without State, an encode acts like a first step.
  CHECK(testing::round_trip(*codec, gradient, {}, {}) == std::vector<float>(5, 2.0f));
  // A NaN leaves all states unchanged.
  const std::vector<float> before = states;
  const auto decoded = testing::round_trip(*codec, {1, NAN, 3, 4, 5}, {}, state);
  for (const float v : decoded) CHECK(std::isnan(v));
  CHECK(states == before);
}

const char* const kEveryKind =
    "void KindsEncode(float* gradient, uint8* compressed, uint8 b = 3 in [1, 8]) {\n"
    "  int* at = filter(range(gradient.size), [&](int i) { return gradient[i] > 0; });\n"
    "  int* wide = map(at, [](int i) { return i * 10000000000 - 1; });\n"
    "  uint8* bytes = map(at, [](int i) { return i + 250; });\n"
    "  uint<b>* few = map(at, [](int i) { return i; });\n"
    "  uint<16>* half = map(range(3), [](int i) { return i * 30000; });\n"
    "  uint<32>* whole = map(range(3), [](int i) { return i * 3000000000; });\n"
    "  uint<11>* odd = map(range(40), [](int i) { return 2047 - i; });\n"
    "  float* all = map(gradient, [](float v) { return v / 2; });\n"
    "  int n = at.size;\n  float third = 1.0 / 3;\n"
    "  compressed = concat(n, wide, bytes, third, few, half, whole, odd, all);\n}\n"
    "void KindsDecode(uint8* compressed, float* gradient, uint8 b = 3 in [1, 8]) {\n"
    "  int n;\n  int* wide;\n  uint8* bytes;\n  float third;\n  uint<b>* few;\n"
    "  uint<16>* half;\n  uint<32>* whole;\n  uint<11>* odd;\n  float* all;\n"
    "  extract(compressed, n, wide, bytes, third, few, half, whole, odd, all);\n"
    "  gradient = map(range(gradient.size), [&](int i) {\n"
    "    return i == 0 ? n : i == 1 ? wide[n - 1] / 10000000 : i == 2 ? bytes[n - 1]\n"
    "         : i == 3 ? third : i == 4 ? few[n - 1] : i == 5 ? half[2] : i == 6 ? whole[2] / "
    "1000\n"
    "         : i == 7 ? odd[39] : i == 8 ? wide.size + bytes.size + few.size + half.size\n"
    "         : all[i]; });\n}\n";

TEST_CASE("a message carries arrays of every type and fields between them") {
  const auto codec = compiled("kinds", kEveryKind);
  const std::vector<float> inputs = {1, -1, -1, 4, -1, -1, 7, -1, -1, 10, -3};
  // Elements 0, 3, 6 and 9 are positive.
  CHECK(testing::round_trip(*codec, inputs, {}, {}) ==
        std::vector<float>{4, 8999, 255, 1.0f / 3, 7, 60000, 4294967, 2008, 15, 5, -1.5f});
}

TEST_CASE("a general message that is damaged is refused, and nothing is written") {
  const auto codec = compiled("kinds", kEveryKind);
  const std::int64_t elements = 50;
  std::vector<float> inputs(elements, 1.0f);
  struct alignas(16) Room {
    std::byte bytes[16];
  };
  std::vector<Room> room(static_cast<std::size_t>(codec->encoded_bytes(elements)) / 16 + 1);
  std::byte* const message = room[0].bytes;
  EncodeItem item;
  item.values = inputs.data();
  item.elements = elements;
  item.message = message;
  codec->encode({&item, 1});
  const auto decodes = [&] {
    std::vector<float> values(elements, -1.0f);
    const std::byte* messages[] = {message};
    const std::int64_t lengths[] = {codec->encoded_bytes(elements)};
    DecodeItem decode;
    decode.messages = messages;
    decode.message_bytes = lengths;
    decode.elements = elements;
    decode.values = values.data();
    try {
      codec->decode({&decode, 1});
      return true;
    } catch (const std::runtime_error&) {
      CHECK(values == std::vector<float>(elements, -1.0f));
      return false;
    }
  };
  REQUIRE(decodes());
  // The header's elements, tag, planes and non_finite begin at these bytes. After the header come
  // fields (8 + 4 bytes, padded to 16) and, at byte 24, the lengths of the arrays.
  for (const std::size_t at : {0u, 4u, 6u, 7u}) {
    const std::byte before = std::exchange(message[at], std::byte(0xee));
    CHECK_FALSE(decodes());
    message[at] = before;
  }
  for (const std::int64_t length : {std::int64_t{-1}, std::int64_t{51}, INT64_MAX}) {
    std::int64_t before;
    std::memcpy(&before, message + 24, 8);
    CHECK(before == 50);
    std::memcpy(message + 24, &length, 8);
    CHECK_FALSE(decodes());
    std::memcpy(message + 24, &before, 8);
  }
  CHECK(decodes());
}

TEST_CASE("a quantiser compiled as a program of arrays gives the same bits") {
  // An unused state makes a program an array program: a different emitter, a different frame, and
  // plain loops instead of vectors. Both must decode to the same values.
  const auto read = [](const std::string& name) {
    return io::read_file(std::string(HIPRESS_SOURCE_DIR) + "/kernels/algorithms/" + name + ".pse");
  };
  for (const char* name : {"Onebit", "Tbq", "Terngrad"}) {
    const std::string encoder = read(std::string(name) + "Encode");
    const std::string decoder = read(std::string(name) + "Decode");
    const auto fused = compiled(std::string("fused_") + name, encoder + decoder);
    std::string general_encoder = encoder;
    general_encoder.insert(general_encoder.find(" {\n") + 3, "  state float* unused;\n");
    const auto general = compiled(std::string("general_") + name, general_encoder + decoder);
    CHECK(general->traits().state_arrays == fused->traits().state_arrays + 1);
    for (const std::int64_t elements : {1, 31, 33, 1025, 40001}) {
      INFO(name << ", " << elements);
      std::vector<float> inputs(static_cast<std::size_t>(elements));
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        inputs[i] = std::sin(static_cast<float>(i * i % 977)) * 0.9f;
      }
      std::vector<float> fused_state(inputs.size()), general_state(2 * inputs.size());
      for (std::uint32_t step = 0; step < 3; ++step) {
        const DrawKey key{.seed = 4, .step = step, .node = 1};
        const auto a = testing::round_trip(
            *fused, inputs, key,
            fused->traits().state_arrays > 0 ? State{fused_state.data(), elements} : State{});
        const auto b =
            testing::round_trip(*general, inputs, key, State{general_state.data(), elements});
        REQUIRE(a == b);
      }
      if (fused->traits().state_arrays > 0) {
        CHECK(std::equal(fused_state.begin(), fused_state.end(), general_state.begin()));
      }
    }
  }
}

TEST_CASE("dgc compiled as a program of arrays gives the same bits") {
  const auto read = [](const std::string& name) {
    return io::read_file(std::string(HIPRESS_SOURCE_DIR) + "/kernels/algorithms/" + name + ".pse");
  };
  std::string encoder = read("DgcEncode");
  // With a field in the message, the program is not a sparsifier any more.
  encoder.replace(encoder.find("concat(chosen"), 13, "concat(count, chosen");
  std::string decoder = read("DgcDecode");
  decoder.replace(decoder.find("extract(compressed, "), 20,
                  "int count;\n  extract(compressed, count, ");
  const auto general = compiled("general_dgc", encoder + decoder);
  const auto fused = make_codec("dgc");
  const std::int64_t elements = 30001;
  std::vector<float> a(2 * elements), b(2 * elements);
  for (int step = 0; step < 4; ++step) {
    std::vector<float> inputs(elements);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = std::sin(static_cast<float>((i + 3) * i % (977 + step)));
    }
    CHECK(testing::round_trip(*fused, inputs, {}, {a.data(), elements}) ==
          testing::round_trip(*general, inputs, {}, {b.data(), elements}));
    CHECK(a == b);
  }
}

TEST_CASE("a program's names never meet those of the code that is made of it") {
  const std::vector<float> inputs = {2, 3, 5, 7};
  CHECK(array("names_k",
              "float k = gradient[0];\n"
              "float* scaled = map(gradient, [&](float v) { return v * k; });\n"
              "float* out = filter(scaled, [](float v) { return v > 0; });",
              inputs) == std::vector<float>{4, 6, 10, 14});
  CHECK(array("names_first",
              "float first = gradient[0]; float second = 1;\n"
              "float r = reduce(gradient, 0, [&](float a, float b) { return a * first + b * "
              "second; });\n"
              "float* out = map(range(1), [&](int i) { return r; });",
              inputs)[0] == ((2 * 2 + 3) * 2 + 5) * 2 + 7);
  // A program's variables may be called like C++ keywords, macros, functions of kernels/frames/, or
  // identifiers of the generated code.
  std::string statements, sum = "0";
  int count = 0;
  for (const char* name : {"static_cast", "thread_local",  "co_await",  "errno",       "NULL",
                           "INT64_MAX",   "HIPRESS_LANES", "F",         "sorted",      "filtered",
                           "made",        "element_at",    "whole_sum", "length_1",    "origin_1",
                           "array_0",     "kept_1_0",      "marked_0",  "reduction_0", "state_0",
                           "draws_0",     "next_0",        "run",       "elements",    "gradient_2",
                           "wire",        "decoded",       "i",         "v30",         "v31",
                           "v32",         "s_k",           "kTag"}) {
    statements +=
        "float " + std::string(name) + " = gradient[0] + " + std::to_string(count++) + ";\n";
    sum += " + " + std::string(name);
  }
  CHECK(array("names_many",
              statements +
                  "float* some = filter(gradient, [&](float v) { return v > errno - 5; });\n" +
                  "float* out = map(some, [&](float v) { return v + " + sum + "; });",
              inputs)
            .empty() == false);
}

TEST_CASE("lengths are known wherever they are counted, and indices may be constants") {
  const std::vector<float> inputs = {2, -3, 5, 7, -1, 4};
  CHECK(array("counts",
              "lambda_func add = [](int a, int b) { return a + b; };\n"
              "float* some = filter(gradient, [](float v) { return v > 0; });\n"
              "int n = reduce(map(some, [](float v) { return 1; }), 0, add);\n"
              "int m = reduce(map(range(7), [](int i) { return 1; }), 0, add);\n"
              "int l = reduce(map(largest(gradient, 2), [](int i) { return 1; }), 0, add);\n"
              "float* cleared = clear(gradient, map(range(3), [](int i) { return 1; }));\n"
              "float* put = scatter(map(range(3), [](int i) { return 2; }),\n"
              "                     map(range(3), [](int i) { return 9.5; }), gradient.size);\n"
              "float* out = map(range(6), [&](int i) {\n"
              "  return i == 0 ? n : i == 1 ? m : i == 2 ? l : i == 3 ? cleared[1] : i == 4 ? "
              "cleared[2]\n"
              "       : put[2]; });",
              inputs) == std::vector<float>{4, 7, 2, 0, 5, 9.5f});
}

TEST_CASE("what a program makes infinite is seen by everybody and keeps no state") {
  const auto codec = compiled("infinite",
                              "void InverseEncode(float* gradient, uint8* compressed) {\n"
                              "  error_feedback gradient;\n  state float* seen;\n"
                              "  seen = map(seen, [](float n) { return n + 1; });\n"
                              "  float* out = map(sort(gradient), [](float v) { return 1 / v; });\n"
                              "  compressed = concat(out);\n}\n"
                              "void InverseDecode(uint8* compressed, float* gradient) {\n"
                              "  float* out;\n  extract(compressed, out);\n  gradient = out;\n}\n");
  std::vector<float> states(2 * 3);
  const State state{.data = states.data(), .stride = 3};
  for (const float v : testing::round_trip(*codec, {1, 0, 2}, {}, state)) CHECK(std::isnan(v));
  CHECK(states == std::vector<float>(6, 0.0f));
  CHECK(testing::round_trip(*codec, {4, 1, 2}, {}, state) == std::vector<float>{1, 0.5f, 0.25f});
  CHECK(states == std::vector<float>{3, 0.5f, 1.75f, 1, 1, 1});
  // This program's message is finite, but decodes to v / a with a = 0.
  const auto divides = compiled("infinite_decode",
                                "void RatioEncode(float* gradient, uint8* compressed) {\n"
                                "  error_feedback gradient;\n  float a = gradient[0];\n"
                                "  float* out = map(sort(gradient), [](float v) { return v; });\n"
                                "  compressed = concat(a, out);\n}\n"
                                "void RatioDecode(uint8* compressed, float* gradient) {\n"
                                "  float a;\n  float* out;\n  extract(compressed, a, out);\n"
                                "  gradient = map(out, [&](float v) { return v / a; });\n}\n");
  std::vector<float> residual(4);
  for (const float v : testing::round_trip(*divides, {0, 1, 2, 3}, {}, State{residual.data(), 4})) {
    CHECK(std::isnan(v));
  }
  CHECK(residual == std::vector<float>(4, 0.0f));
}

TEST_CASE("a quantiser's message of infinite numbers or levels is seen by everybody") {
  // One program sends 1 / s with a sum s = 0; in the other, a level is a / (a - 2) with a = 2.
  const auto program = [](const std::string& field, const std::string& level) {
    return "void QEncode(float* gradient, uint8* compressed) {\n"
           "  error_feedback gradient;\n"
           "  float s = reduce(gradient, 0, [](float a, float b) { return a + b; });\n"
           "  float a = " +
           field +
           ";\n  uint<1>* q = map(gradient, [](float v) { return v < 0 ? 1 : 0; });\n"
           "  compressed = concat(a, q);\n}\n"
           "void QDecode(uint8* compressed, float* gradient) {\n"
           "  float a;\n  uint<1>* q;\n  extract(compressed, a, q);\n"
           "  gradient = map(q, [&](int c) { return c == 1 ? -a : " +
           level + "; });\n}\n";
  };
  for (const auto& [name, field, level] :
       {std::tuple("field", "1 / s", "a"), std::tuple("level", "s + 2", "a / (a - 2)")}) {
    const auto codec = compiled(std::string("infinite_") + name, program(field, level));
    std::vector<float> residual(4);
    const State state{.data = residual.data(), .stride = 4};
    for (const float v : testing::round_trip(*codec, {1, -1, 2, -2}, {}, state)) {
      CHECK(std::isnan(v));
    }
    CHECK(residual == std::vector<float>(4, 0.0f));
    for (const float v : testing::round_trip(*codec, {1, 1, 2, -2}, {}, state)) {
      CHECK(std::isfinite(v));
    }
  }
}

TEST_CASE("a sparsifier of entries that may be no numbers sends the largest that are") {
  // Roots of negative numbers are NaN. The frame samples 100000 elements first, but not 1000.
  const auto codec = compiled("roots",
                              "void RootsEncode(float* gradient, uint8* compressed) {\n"
                              "  float* roots = map(gradient, [](float v) { return sqrt(v); });\n"
                              "  int k = ceil(0.01 * gradient.size);\n"
                              "  uint<32>* at = largest(roots, k);\n"
                              "  float* entries = gather(roots, at);\n"
                              "  compressed = concat(at, entries);\n}\n"
                              "void RootsDecode(uint8* compressed, float* gradient) {\n"
                              "  uint<32>* at;\n  float* entries;\n"
                              "  extract(compressed, at, entries);\n"
                              "  gradient = scatter(at, entries, gradient.size);\n}\n");
  for (const std::size_t elements : {1000u, 100000u}) {
    std::vector<float> inputs(elements);
    for (std::size_t i = 0; i < elements; ++i) {
      inputs[i] = static_cast<float>((i * 7919) % elements) * (i % 2 == 0 ? 1.0f : -1.0f);
    }
    std::vector<float> sorted = inputs;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    const float least = sorted[elements / 100 - 1];
    const std::vector<float> decoded = testing::round_trip(*codec, inputs);
    for (std::size_t i = 0; i < elements; ++i) {
      REQUIRE(decoded[i] == (inputs[i] >= least ? std::sqrt(inputs[i]) : 0.0f));
    }
  }
}

TEST_CASE("a helper that draws draws anew wherever it is called") {
  const auto drawn =
      array("helper_draws", "float* out = map(gradient, [](float v) { return once() - once(); });",
            std::vector<float>(1000, 1.0f));
  int zeros = 0;
  for (const float v : drawn) zeros += v == 0 ? 1 : 0;
  CHECK(zeros < 10);
}

}  // namespace
}  // namespace hipress::kernels
