// Tests that a program gives the same results on lanes of 32 bits as for one element at a time in
// 64 bits. A program that lanes cannot compute becomes an array program.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "io/file.hpp"
#include "tests/compll/check.hpp"
#include "tests/compll/compiled.hpp"
#include "tests/kernels/round_trip.hpp"

namespace hipress::kernels {
namespace {

using testing::compiled;

/// Checks the decoded values of a program, as it is and as an array program. An unused state makes
/// it an array program.
void check_both_ways(const std::string& name, const std::string& text,
                     const std::string& parameters, const std::vector<float>& inputs,
                     const std::vector<float>& expected) {
  INFO(name);
  CHECK(testing::round_trip(*compiled(name, text, parameters), inputs) == expected);
  std::string general = text;
  general.insert(general.find(" {\n") + 3, "  state float* unused;\n");
  CHECK(testing::round_trip(*compiled(name + "_arrays", general, parameters), inputs) == expected);
}

/// A program that sends a code of `bits` bits for every element v, and decodes to it. The code is
/// the value of a lambda with the body `body`, after `statements`.
std::string sends_code(const std::string& bits, const std::string& statements,
                       const std::string& body, const std::string& parameters = "") {
  return "void CodeEncode(float* gradient, uint8* compressed" + parameters + ") {\n" + statements +
         "  uint<" + bits + ">* codes = map(gradient, [&](float v) {" + body +
         "});\n  compressed = concat(codes);\n}\n"
         "void CodeDecode(uint8* compressed, float* gradient" +
         parameters + ") {\n  uint<" + bits +
         ">* codes;\n  extract(compressed, codes);\n"
         "  gradient = map(codes, [](int code) { return code; });\n}\n";
}

TEST_CASE("negative whole numbers of an element are clamped and compared as what they are") {
  const std::vector<float> inputs = {-2, 3, -0.5f, 0};
  check_both_ways("negative_code", sends_code("1", "", "return v < 0 ? -1 : 1;"), "", inputs,
                  {0, 1, 0, 1});
  check_both_ways("negative_sign",
                  sends_code("1", "", "int s = v < 0 ? -1 : 1; return s < 0 ? 1 : 0;"), "", inputs,
                  {1, 0, 1, 0});
}

TEST_CASE("elements are compared with numbers of the slice of any sign and size") {
  // Adds 1 if q > n = -3, 2 if q > count = -2, and 4 if q < 2^32. All three are always true.
  const std::string above =
      sends_code("3",
                 "  int count = reduce(map(gradient, [](float v) { return v < 0 ? -1 : 0; }), 0,\n"
                 "                     [](int a, int b) { return a + b; });\n",
                 "uint<4> q = v;\n"
                 "    return (q > n ? 1 : 0) + (q > count ? 2 : 0) + (q < 4294967296 ? 4 : 0);",
                 ", int n = 0 in [-8, 8]");
  check_both_ways("negative_bound", above, "(n=-3)", {-2, 3, -0.5f, 0, 20}, {7, 7, 7, 7, 7});
  // With n = 4, q > n only for the last of q = 0, 3, 0, 0, 15.
  check_both_ways("negative_bound", above, "(n=4)", {-2, 3, -0.5f, 0, 20}, {6, 6, 6, 6, 7});
}

TEST_CASE("whole numbers of floats have all the bits that the program says") {
  const std::vector<float> inputs = {3e7f, 1e7f, -1, 3e9f};
  // fp32 is not exact above 2^24, so these become array programs, which take 64 bits.
  check_both_ways("wide", sends_code("1", "", "uint<30> w = v; return w > 20000000 ? 1 : 0;"), "",
                  inputs, {1, 0, 0, 1});
  const std::string by_parameter = sends_code(
      "1", "", "uint<k> w = v; return w > 20000000 ? 1 : 0;", ", uint8 k = 8 in [1, 32]");
  check_both_ways("wide_parameter", by_parameter, "(k=30)", inputs, {1, 0, 0, 1});
  check_both_ways("wide_parameter", by_parameter, "(k=24)", inputs, {0, 0, 0, 0});
}

TEST_CASE("a shift by a number of the element's own") {
  // The result is 2^k, where k is clamped to 0 … 7: 100 becomes 7, and -1 becomes 0.
  check_both_ways("shift", sends_code("8", "", "uint<3> k = v; return 1 << k;"), "",
                  {0, 1, 5, 7, 100, -1}, {1, 2, 32, 128, 128, 1});
  check_both_ways("shift_right", sends_code("8", "", "uint<3> k = v; return 200 >> k;"), "",
                  {0, 1, 5}, {200, 100, 6});
  // A shift by the same number for all elements remains on lanes.
  check_both_ways("shift_all",
                  sends_code("8", "", "uint<3> k = v; return k << n;", ", int n = 1 in [0, 4]"),
                  "(n=3)", {0, 1, 5}, {0, 8, 40});
}

TEST_CASE("a decoder compares codes with negative numbers") {
  const std::string text =
      "void BoundEncode(float* gradient, uint8* compressed, int n = 0 in [-8, 8]) {\n"
      "  uint<2>* codes = map(gradient, [](float v) { return v; });\n"
      "  compressed = concat(codes);\n}\n"
      "void BoundDecode(uint8* compressed, float* gradient, int n = 0 in [-8, 8]) {\n"
      "  uint<2>* codes;\n  extract(compressed, codes);\n"
      "  gradient = map(codes, [&](int code) { return code > n ? 3 : 5; });\n}\n";
  check_both_ways("negative_level", text, "(n=-1)", {0, 1, 2, 7}, {3, 3, 3, 3});
  check_both_ways("negative_level", text, "(n=1)", {0, 1, 2, 7}, {5, 5, 3, 3});
}

// ---- programs that run on lanes ----

compll::Program program_of(const std::vector<std::string>& texts) {
  std::vector<compll::Source> sources;
  std::vector<const compll::Source*> pointers;
  for (const std::string& text : texts) sources.push_back({"t.pse", text});
  for (const compll::Source& source : sources) pointers.push_back(&source);
  return compll::elaborate(pointers).program;
}

compll::Program program_in(const std::string& encoder, const std::string& decoder) {
  const std::string root = std::string(HIPRESS_SOURCE_DIR) + "/";
  return program_of({io::read_file(root + encoder), io::read_file(root + decoder)});
}

TEST_CASE("what lanes can do remains theirs") {
  for (const char* name : {"Onebit", "Tbq", "Terngrad", "Dgc", "Graddrop"}) {
    INFO(name);
    const std::string path = std::string("kernels/algorithms/") + name;
    const compll::Program program = program_in(path + "Encode.pse", path + "Decode.pse");
    CHECK(compll::runs_on_gpus(program));
    CHECK(program.quantizer == (program.encoder->parts.size() == 1));
  }
  CHECK(program_in("tests/compll/data/TernGradEncode.pse", "tests/compll/data/TernGradDecode.pse")
            .quantizer);
  CHECK(program_of({io::read_file(HIPRESS_SOURCE_DIR "/tests/kernels/data/Spread.pse")}).quantizer);
  // Negative numbers may be summed or converted to floats; a parameter may set the number of bits.
  CHECK(program_of({"void SignEncode(float* gradient, uint8* compressed, uint8 b) {\n"
                    "  int n = reduce(map(gradient, [](float v) { return v < 0 ? -1 : 1; }), 0,\n"
                    "                 [](int a, int b) { return a + b; });\n"
                    "  uint<b>* codes = map(gradient, [](float v) { return v < 0 ? 0 : 1; });\n"
                    "  compressed = concat(n, codes);\n}\n"
                    "void SignDecode(uint8* compressed, float* gradient, uint8 b) {\n"
                    "  int n;\n  uint<b>* codes;\n  extract(compressed, n, codes);\n"
                    "  int top = (1 << b) - 1;\n"
                    "  gradient = map(codes, [&](int code) {\n"
                    "    return code == 0 ? -1 : code == top ? 2 : 1; });\n}\n"})
            .quantizer);
}

}  // namespace
}  // namespace hipress::kernels
