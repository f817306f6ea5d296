// Tests the meaning of programs: reductions, types, conversions, branches and passes.

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "io/environment.hpp"
#include "io/file.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "kernels/codec/codec.hpp"
#include "tests/compll/check.hpp"
#include "tests/compll/compiled.hpp"
#include "tests/kernels/round_trip.hpp"

namespace hipress::kernels {
namespace {

/// Encodes a gradient with a program, and returns the decoded values.
std::vector<float> run(const std::string& name, const std::string& text,
                       const std::string& parameters, const std::vector<float>& inputs) {
  return testing::round_trip(*testing::compiled(name, text, parameters), inputs);
}

/// A program that sends one number of the slice, `value`, to which all elements decode.
std::string sends(const std::string& type, const std::string& statements,
                  const std::string& value) {
  return "void NumberEncode(float* gradient, uint8* compressed) {\n"
         "  lambda_func add = [](float a, float b) { return a + b; };\n" +
         statements +
         "\n  uint<1>* none = map(gradient, [](float v) { return 0; });\n"
         "  compressed = concat(" +
         value +
         ", none);\n}\n"
         "void NumberDecode(uint8* compressed, float* gradient) {\n  " +
         type +
         " x;\n  uint<1>* none;\n  extract(compressed, x, none);\n"
         "  float y = x;\n"
         "  gradient = map(none, [&](int q) { return y; });\n}\n";
}

float number(const std::string& type, const std::string& statements, const std::string& value,
             const std::vector<float>& inputs) {
  const std::vector<float> decoded = run("number", sends(type, statements, value), "", inputs);
  for (const float x : decoded) REQUIRE(x == decoded[0]);
  return decoded[0];
}

TEST_CASE("a whole initial value does not make a sum of floats whole") {
  // The sum is 0.25 + 0.5 = 0.75; as a sum of ints it would be 0.
  CHECK(number("float", "float s = reduce(gradient, 0, add);", "s", {0.25f, 0.5f}) == 0.75f);
}

TEST_CASE("an initial value is added once, however the sum is cut up") {
  // 100000 · 0.5 + 7
  CHECK(number("float", "float s = reduce(gradient, 7, add);", "s",
               std::vector<float>(100000, 0.5f)) == 50007.0f);
}

TEST_CASE("an initial value does not hide the true minimum or maximum") {
  const std::string least =
      "float m = reduce(gradient, 5, [](float a, float b) { return min(a, b); });";
  CHECK(number("float", least, "m", {9, 8, 7}) == 7);
  const std::string most =
      "float m = reduce(gradient, 0, [](float a, float b) { return b >= a ? b : a; });";
  CHECK(number("float", most, "m", {-3, -2, -4}) == -2);
}

TEST_CASE("a reduction may depend on another: two passes") {
  // The variance of 1, 2, 3, 4, with mean 2.5, is (2.25 + 0.25 + 0.25 + 2.25) / 4 = 5/4.
  const std::string statements =
      "float mean = reduce(gradient, 0, add) / gradient.size;\n"
      "float variance = reduce(map(gradient, [&](float v) { return (v - mean) * (v - mean); }), 0, "
      "add)"
      " / gradient.size;";
  CHECK(number("float", statements, "variance", {1, 2, 3, 4}) == 1.25f);
}

TEST_CASE("counts are exact") {
  const std::string statements =
      "int n = reduce(map(gradient, [](float v) { return v > 0 ? 1 : v < 0 ? -1 : 0; }), 0, "
      "[](int a, int b) { return a + b; });";
  std::vector<float> inputs(70000, -1.0f);
  for (int i = 0; i < 30001; ++i) inputs[i] = 1;
  CHECK(number("int", statements, "n", inputs) == 30001 - 39999);
}

TEST_CASE("numbers of a slice: conversions clamp, divisions by 0 give 0") {
  const std::vector<float> one = {1};
  CHECK(number("uint8", "", "uint8(300)", one) == 255);
  CHECK(number("uint8", "", "uint8(-3.7)", one) == 0);
  CHECK(number("uint8", "", "uint8(3.7)", one) == 3);
  CHECK(number("int", "int n = 7 / (gradient.size - 1);", "n", one) == 0);
  CHECK(number("int", "int n = 7 % (gradient.size - 1);", "n", one) == 0);
  CHECK(number("int", "int n = (-7) / 2;", "n", one) == -3);
  CHECK(number("int", "int n = 1 << 70;", "n", one) == 0);
  CHECK(number("float",
               "float x = sqrt(gradient.size + 8.0) + floor(-1.5) + ceil(1.2) + abs(-2.5);", "x",
               one) == 3 - 2 + 2 + 2.5f);
}

TEST_CASE("branches outside lambdas choose values") {
  const std::string statements =
      "float x = 1;\nif (gradient.size > 2) { x = 5; } else if (gradient.size == 2) x += 2;\nelse "
      "{ x "
      "*= 10; }";
  CHECK(number("float", statements, "x", {0, 0, 0}) == 5);
  CHECK(number("float", statements, "x", {0, 0}) == 3);
  CHECK(number("float", statements, "x", {0}) == 10);
}

TEST_CASE("lambdas with branches, locals, early returns and helper functions") {
  // A ternary code with a dead zone, written with every control structure of the language.
  const std::string text =
      "float distance(float x, float y) { return abs(x - y); }\n"
      "float nearest(float v, float step) {\n"
      "  if (distance(v, step) < distance(v, 0) && v > 0) return 1;\n"
      "  if (!(distance(v, -step) >= distance(v, 0))) { return 2; }\n"
      "  return 0;\n"
      "}\n"
      "void DeadEncode(float* gradient, uint8* compressed, float step = 1 in [0.001, 1000]) {\n"
      "  uint<2>* q = map(gradient, [&](float v) {\n"
      "    float code = nearest(v, step);\n"
      "    float same;\n"
      "    if (code == 1) same = 1; else same = code;\n"
      "    return same;\n"
      "  });\n"
      "  compressed = concat(q);\n"
      "}\n"
      "void DeadDecode(uint8* compressed, float* gradient, float step = 1 in [0.001, 1000]) {\n"
      "  uint<2>* q;\n"
      "  extract(compressed, q);\n"
      "  gradient = map(q, [&](int c) { return c == 1 ? step : c == 2 ? -step : 0; });\n"
      "}\n";
  CHECK(run("dead", text, "", {0.4f, 0.6f, -0.4f, -0.6f, 3, 0}) ==
        std::vector<float>{0, 1, 0, -1, 1, 0});
  CHECK(run("dead", text, "(step=4)", {0.4f, 3, -3}) == std::vector<float>{0, 4, -4});
}

TEST_CASE("the fused form has as few passes as the algorithm allows") {
  using namespace compll;
  const auto code_of = [](const char* file) {
    const std::string folder = std::string(HIPRESS_SOURCE_DIR) + "/kernels/algorithms/";
    const Source encode{"e", io::read_file(folder + file + "Encode.pse")};
    const Source decode{"d", io::read_file(folder + file + "Decode.pse")};
    return emit(elaborate({&encode, &decode}).program, {});
  };
  // onebit computes three reductions and the codes in one pass.
  CHECK_THAT(code_of("Onebit"), Catch::Contains("kPasses = 1;") &&
                                    Catch::Contains("kCodesAfter = 0;") &&
                                    Catch::Contains("Partials<F, WholeSum, Sum, Sum>"));
  CHECK_THAT(code_of("Tbq"), Catch::Contains("kCodesAfter = 0;"));
  // terngrad computes minimum and maximum in one pass, the codes in a second one.
  CHECK_THAT(code_of("Terngrad"), Catch::Contains("kPasses = 1;") &&
                                      Catch::Contains("kCodesAfter = 1;") &&
                                      Catch::Contains("Partials<F, Minimum, Maximum>"));
}

/// Sets CXX to a different command while the object exists.
class OtherCompiler {
 public:
  explicit OtherCompiler(const std::string& command) {
    if (const char* value = std::getenv("CXX")) before_ = value;
    setenv("CXX", command.c_str(), 1);
  }
  ~OtherCompiler() { before_.empty() ? unsetenv("CXX") : setenv("CXX", before_.c_str(), 1); }

 private:
  std::string before_;
};

TEST_CASE("no text of a program but identifiers behind prefixes reaches the code") {
  using namespace compll;
  const std::string hostile =
      "/* \"); std::system(\"id\"); // ?\?/\n #define x \\\n */\n"
      "void errnoEncode(float* linux, uint8* c, float NULL = 1 in [0, 2], int unix = 1 in [1, 2]) "
      "{\n"
      "  float assert = NULL * 2; float static_cast = assert + unix;\n"
      "  uint<1>* template = map(linux, [&](float stdin) { return stdin < static_cast ? 1 : 0; "
      "});\n"
      "  c = concat(assert, template);\n}\n"
      "void errnoDecode(uint8* c, float* g) {\n"
      "  float INT_MAX; uint<1>* errno; extract(c, INT_MAX, errno);\n"
      "  g = map(errno, [&](int broadcast) { return broadcast < 1 ? INT_MAX : 0; });\n}\n";
  const Source source{"\n#error \"a name\".pse", hostile};
  const std::string code = emit(elaborate({&source}).program, {});
  for (const char* text : {"system", "#error", "?\?/", "a name", "\\"}) {
    CHECK_THAT(code, !Catch::Contains(text));
  }
  CHECK_THAT(code, Catch::Contains("struct Program_0000000000000000 {"));
  CHECK_THAT(code, Catch::Contains("(hipress_errno, \"errno\","));
  // Programs may use macros and keywords of C++ as names.
  const auto codec = testing::compiled("hostile", hostile, "(unix=2)");
  CHECK(testing::round_trip(*codec, {-1, 5}) == std::vector<float>{0, 2});
}

TEST_CASE("headers of the folder that a tool is started in are not compiled", "[slow]") {
  const std::string cache = std::string(HIPRESS_TEST_CACHE) + "/elsewhere";
  const std::string folder = cache + "/kernels/frames";
  std::filesystem::remove_all(cache);
  std::filesystem::create_directories(folder);
  for (const char* header : {"quantizer.hpp", "sparsifier.hpp", "array_program.hpp"}) {
    io::write_file(folder + "/" + header, [](std::ostream& out) { out << "#error not ours\n"; });
  }
  const std::string path = testing::program_file("elsewhere", sends("float", "", "2.5"));
  setenv("HIPRESS_CACHE", cache.c_str(), 1);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(cache);
  const auto codec = make_codec(path);
  std::filesystem::current_path(before);
  CHECK(testing::round_trip(*codec, {5}) == std::vector<float>{2.5f});
}

TEST_CASE("a program's path may have brackets") {
  CHECK(name_of_algorithm("a (1)/b.pse") == "a (1)/b.pse");
  CHECK(name_of_algorithm("a (1)/b.pse(tau=0.5)") == "a (1)/b.pse");
  CHECK(name_of_algorithm("b(2).pse") == "b(2).pse");
  CHECK(name_of_algorithm(" tbq(tau=0.5) ") == "tbq");
  CHECK(parameter_of("a(1)/b(x=3).pse(x=4)", "x") == "4");
  CHECK(parameters_at("b(2).pse") == std::string_view::npos);
  const std::string folder = std::string(HIPRESS_TEST_CACHE) + "/programs/of (1)";
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/mine(x=9).pse";
  io::write_file(path, [](std::ostream& out) { out << sends("float", "", "3.5"); });
  CHECK(testing::round_trip(*make_codec(path), {5}) == std::vector<float>{3.5f});
}

TEST_CASE("the compiler may be a command of several words", "[slow]") {
  const std::string path = testing::program_file("words", sends("float", "", "1.5"));
  const std::string cache = std::string(HIPRESS_TEST_CACHE) + "/words";
  std::filesystem::remove_all(cache);
  setenv("HIPRESS_CACHE", cache.c_str(), 1);
  {
    const OtherCompiler command("env " + io::cxx_compiler() + " -DHIPRESS_TEST");
    CHECK(testing::round_trip(*make_codec(path), {5, 7}) == std::vector<float>{1.5f, 1.5f});
  }
  const OtherCompiler blank("  ");
  CHECK_THROWS_WITH(make_codec(path), Catch::Contains("CXX"));
}

}  // namespace
}  // namespace hipress::kernels
