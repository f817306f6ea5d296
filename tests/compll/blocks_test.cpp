// Tests that programs of blocks compute the right values, and that invalid ones get their errors.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "io/file.hpp"
#include "tests/compll/check.hpp"
#include "tests/compll/compiled.hpp"
#include "tests/kernels/round_trip.hpp"

namespace hipress::compll {
namespace {

using Catch::Contains;

const std::string kLarger = "[](float a, float b) { return max(a, b); }";

/// An encoder of blocks that executes `statements`, and then sends the arrays `message`.
std::string encoder(const std::string& statements, const std::string& message = "most, q",
                    const std::string& block = "int block = 64 in [32, 2048]") {
  return "void XEncode(float* gradient, uint8* compressed, " + block + ") {\n" +
         "float* most = reduce(gradient, block, 0, " + kLarger + ");\n" +
         "uint<4>* q = map(gradient, spread(most, block), [](float v, float m) {"
         " return v < m ? 1 : 0; });\n" +
         statements + "\ncompressed = concat(" + message + ");\n}\n";
}

std::string with_decoder(const std::string& statements, const std::string& level = "v") {
  return encoder("") +
         "void XDecode(uint8* compressed, float* gradient, int block = 64 in [32, 2048]) {\n"
         "float* most; uint<4>* q;\nextract(compressed, most, q);\n"
         "float* v = map(q, spread(most, block), [](int c, float m) { return c * m; });\n" +
         statements + "\ngradient = " + level + ";\n}\n";
}

TEST_CASE("a program of blocks compiles, and is one for CPUs and GPUs") {
  CHECK(complaint(encoder("")).empty());
  CHECK(complaint(with_decoder("")).empty());
  const Source source{"t.pse", with_decoder("")};
  const Elaborated elaborated = elaborate({&source});
  CHECK(elaborated.program.block >= 0);
  CHECK(runs_on_gpus(elaborated.program));
  const ProgramParameter& block = elaborated.program.parameters.at(0);
  CHECK(block.multiple == 32);
  // A parameter without a range gets the range of block sizes.
  const Source wide{"t.pse", encoder("", "most, q", "int block = 64")};
  CHECK(elaborate({&wide}).program.parameters.at(0).most == 2048);
}

TEST_CASE("a block is a number or a parameter, a multiple of 32 up to 2048") {
  const char* const kSizes = "a block has 32 to 2048 elements, a multiple of 32";
  CHECK_THAT(complaint(encoder("", "most, q", "int block = 100 in [32, 2048]")), Contains(kSizes));
  CHECK_THAT(complaint(encoder("", "most, q", "int block = 4096 in [32, 8192]")), Contains(kSizes));
  CHECK_THAT(complaint(encoder("", "most, q", "int block = 64 in [4000, 8192]")),
             Contains("default of 'block'"));
  CHECK_THAT(complaint(encoder("float* l = reduce(gradient, 16, 0, " + kLarger + ");")),
             Contains(kSizes));
  CHECK_THAT(complaint(encoder("float* l = reduce(gradient, gradient.size, 0, " + kLarger + ");")),
             Contains(kSizes));
  CHECK_THAT(complaint(encoder("float* l = reduce(gradient, 128, 0, " + kLarger + ");")),
             Contains("one size"));
}

struct Wrong {
  const char* what;
  std::string text;
  const char* message;
};

TEST_CASE("what a program of blocks cannot be has its message") {
  const Wrong wrongs[] = {
      {"a fold",
       encoder("float* f = reduce(gradient, block, 0, [](float a, float b) { return a * b; });"),
       "sums, minima and maxima of floats"},
      {"an initial value", encoder("float* f = reduce(gradient, block, 1, " + kLarger + ");"),
       "initial value of blocks is 0"},
      {"two levels",
       encoder("float* f = reduce(map(gradient, spread(most, block), [](float v, float m) {"
               " return v / m; }), block, 0, " +
               kLarger + ");"),
       "a block is measured once"},
      {"a reduction of the slice", encoder("float f = reduce(gradient, 0, " + kLarger + ");"),
       "reduces the whole gradient"},
      {"an index",
       encoder("uint<4>* r = map(gradient, range(gradient.size), [](float v, int i) {"
               " return i; });",
               "most, r"),
       "depends on its index"},
      {"a filter", encoder("float* f = filter(gradient, [](float v) { return v > 0; });"),
       "selects elements"},
      {"a state", encoder("state float* s;"), "keeps arrays of its own"},
      {"spread of elements", encoder("float* s = spread(gradient, block);"), "one for every block"},
      {"a draw of a block",
       encoder("float* r = map(most, [](float m) { return m * random<float>(0, 1); });", "r, q"),
       "drawn per element"},
      {"codes of nine bits",
       encoder("uint<9>* r = map(gradient, [](float v) { return v < 0 ? 1 : 0; });", "most, r"),
       "an array of uint<1> to uint<8>"},
      {"a scalar in the message", encoder("float one = 1;", "one, most, q"), "has a scalar"},
      {"no floats of blocks", encoder("", "q"), "1 to 4 arrays for the blocks"},
      {"elements in the place of blocks", encoder("", "gradient, q"), "no float for every block"},
      {"a rotation of something else",
       encoder("float* h = hadamard(map(gradient, [](float v) { return v * 2; }), block, true);"),
       "an encoder rotates its gradient"},
      {"a gradient read beside its rotation",
       encoder("float* h = hadamard(gradient, block, true);"), "read in no other way"},
      {"a decoder that rotates alone", with_decoder("", "hadamard(v, block, true)"),
       "rotates back what its encoder rotated"},
  };
  for (const Wrong& wrong : wrongs) {
    INFO(wrong.what);
    CHECK_THAT(complaint(wrong.text), Contains(wrong.message));
  }
}

TEST_CASE("a decoder of blocks stands beside its encoder, and reads its bits") {
  std::string other = with_decoder("");
  other.replace(other.rfind("uint<4>"), 7, "uint<8>");
  CHECK_THAT(complaint(other), Contains("have other bits"));
}

TEST_CASE("what lanes cannot compute is named where it stands, with what they would take") {
  const auto coded = [](const std::string& code) {
    return complaint(
        encoder("uint<4>* r = map(gradient, [](float v) {\n" + code + "\n});", "most, r"));
  };
  // Line 5 of the program is `code`; the column is the expression's.
  CHECK_THAT(coded("int k = v > 0 ? 3 : 1; return uint<4>((k - 2) * 5);"),
             Contains("t.pse:5:40: ") && Contains("a whole number of -1 to 1") &&
                 Contains("float(a) - b"));
  CHECK_THAT(coded("return int(v * 3) & 15;"),
             Contains("t.pse:5:8: ") && Contains("a signed int of a float") && Contains("uint<8>"));
  CHECK_THAT(coded("uint<4> k = v; return k / 3;"),
             Contains("t.pse:5:23: ") && Contains("divide whole numbers"));
  CHECK_THAT(coded("uint<4> k = v; return 1 << k;"),
             Contains("t.pse:5:23: ") && Contains("shift by a constant"));
}

TEST_CASE("what keeps a program from being one of blocks is named, also if it comes first") {
  const std::string program =
      "void XEncode(float* gradient, uint8* compressed) {\n"
      "float* sorted = sort(gradient);\n"
      "float* most = reduce(gradient, 64, 0, " +
      kLarger + ");\ncompressed = concat(most, sorted);\n}\n";
  CHECK_THAT(complaint(program), Contains("t.pse:2:17: ") && Contains("it sorts"));
}

/// Results of tests/kernels/data/Logblock.pse by its definition. An element becomes
/// m 2^(k - steps + 1) with its sign, where m is the block's largest magnitude and steps = 2^(b-1).
/// k is the exponent of 1.5 |v| / m plus steps - 1, and at least 0.
std::vector<float> logarithmic(const std::vector<float>& values, int b, std::size_t block) {
  const int steps = 1 << (b - 1);
  std::vector<float> result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t first = i / block * block, end = std::min(first + block, values.size());
    float most = 0;
    for (std::size_t k = first; k < end; ++k) most = std::max(most, std::fabs(values[k]));
    int exponent = -127;
    if (most > 0 && values[i] != 0) exponent = std::ilogb(std::fabs(values[i]) / most * 1.5f);
    const float magnitude = std::ldexp(most, std::max(exponent, 1 - steps));
    result.push_back(values[i] < 0 ? -magnitude : magnitude);
  }
  return result;
}

TEST_CASE("programs of blocks have codes of 1 to 8 bits, and keep a residual") {
  const std::string text = io::read_file(HIPRESS_SOURCE_DIR "/tests/kernels/data/Logblock.pse");
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> inputs(333);
  for (float& value : inputs) value = normal(random);
  for (const int b : {1, 2, 3, 4, 5, 6, 7, 8}) {
    INFO(b << " bits");
    const auto codec =
        kernels::testing::compiled("logblock", text, "(b=" + std::to_string(b) + ",block=64)");
    // 333 elements have 6 blocks, which send 4 bytes each. Codes begin at 16 + 24, rounded up to
    // 48, and take 4 b bytes for each of 11 words of 32 elements.
    CHECK(codec->encoded_bytes(333) == 48 + 11 * 4 * b);
    const std::vector<float> decoded = kernels::testing::round_trip(*codec, inputs);
    REQUIRE(decoded == logarithmic(inputs, b, 64));
    // Two steps with a residual e: v = x + e is sent, and e becomes v minus the decoded values.
    std::vector<float> residual(inputs.size(), 0), expected = residual;
    for (int step = 0; step < 2; ++step) {
      std::vector<float> v = inputs;
      for (std::size_t i = 0; i < v.size(); ++i) v[i] += expected[i];
      const std::vector<float> sent = logarithmic(v, b, 64);
      for (std::size_t i = 0; i < v.size(); ++i) expected[i] = v[i] - sent[i];
      const kernels::State state{residual.data(), static_cast<std::int64_t>(residual.size())};
      REQUIRE(kernels::testing::round_trip(*codec, inputs, {}, state) == sent);
      REQUIRE(residual == expected);
    }
    // A NaN in the last block makes the whole slice NaN, and leaves the whole residual unchanged.
    std::vector<float> spoilt = inputs;
    spoilt.back() = std::nanf("");
    const kernels::State state{residual.data(), static_cast<std::int64_t>(residual.size())};
    const std::vector<float> nothing = kernels::testing::round_trip(*codec, spoilt, {}, state);
    CHECK(std::all_of(nothing.begin(), nothing.end(), [](float x) { return std::isnan(x); }));
    CHECK(residual == expected);
  }
}

}  // namespace
}  // namespace hipress::compll
