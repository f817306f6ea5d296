// Programs of blocks: what they may be, and what the compiler says to those that may not.

#include <catch2/catch.hpp>

#include "tests/compll/check.hpp"

namespace hipress::compll {
namespace {

using Catch::Contains;

const std::string kLarger = "[](float a, float b) { return max(a, b); }";

/// An encoder of blocks, with other statements before the message, and other arrays in it.
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
  // A parameter without a range is held to one.
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
      {"a residual",
       "void XEncode(float* gradient, uint8* compressed) {\nerror_feedback gradient;\n"
       "float* most = reduce(gradient, 64, 0, " +
           kLarger +
           ");\nuint<4>* q = map(gradient,"
           " spread(most, 64), [](float v, float m) { return v < m ? 1 : 0; });\n"
           "compressed = concat(most, q);\n}\n",
       "keeps a residual"},
      {"spread of elements", encoder("float* s = spread(gradient, block);"), "one for every block"},
      {"a draw of a block",
       encoder("float* r = map(most, [](float m) { return m * random<float>(0, 1); });", "r, q"),
       "drawn per element"},
      {"codes of three bits",
       encoder("uint<3>* r = map(gradient, [](float v) { return v < 0 ? 1 : 0; });", "most, r"),
       "no uint<4> or uint<8>"},
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

}  // namespace
}  // namespace hipress::compll
