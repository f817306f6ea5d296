// Tests of the compiler's errors and notes: each names the place, the mistake and the remedy.

#include <catch2/catch.hpp>

#include "io/utf8.hpp"
#include "tests/compll/check.hpp"

namespace hipress::compll {
namespace {

using Catch::Contains;
using Catch::StartsWith;

/// An encoder with `statements`, the first of them on line 2.
std::string encoder(const std::string& statements) {
  return "void XEncode(float* gradient, uint8* compressed, uint8 b = 2 in [1, 8], float t = 1) "
         "{\n" +
         statements + "\n}\n";
}

const std::string kEnd =
    "\nuint<2>* q = map(gradient, [&](float v) { return v < 0 ? 1 : 0; });"
    "\ncompressed = concat(q);";

TEST_CASE("a message has file, line, column, the source line and a caret under the place") {
  CHECK(complaint(encoder("  float x = 1 + missing;" + kEnd)) ==
        "t.pse:2:17: there is nothing called 'missing' here\n"
        "  float x = 1 + missing;\n"
        "                ^~~~~~~");
}

TEST_CASE("the caret stands right after tabs and letters of several bytes") {
  CHECK(complaint(encoder("\t/* \u00e9\u00e9 */ float x = y;" + kEnd)) ==
        "t.pse:2:23: there is nothing called 'y' here\n"
        "\t/* \u00e9\u00e9 */ float x = y;\n"
        "\t                   ^");
}

struct Wrong {
  const char* what;
  const char* statements;
  const char* place;    ///< beginning of the message
  const char* message;  ///< part of the message
};

TEST_CASE("every kind of mistake in an encoder has its message") {
  const Wrong wrongs[] = {
      // names
      {"unknown name", "float x = gap;", "t.pse:2:11:", "nothing called 'gap'"},
      {"misspelt name", "float least = 1; float y = leest;",
       "t.pse:2:28:", "did you mean 'least'?"},
      {"misspelt function", "float x = flor(1.5);", "t.pse:2:11:", "did you mean 'floor'?"},
      {"declared twice", "float x = 1; float x = 2;", "t.pse:2:20:", "'x' is declared already"},
      {"read before set", "float x; float y = x;",
       "t.pse:2:20:", "'x' is read before it has a value"},
      {"set on one path only", "float x; if (t > 0) x = 1; float y = x;",
       "t.pse:2:38:", "on every path"},
      {"lambda's function name", "lambda_func map = [](float a) { return a; };",
       "t.pse:2:13:", "'map' is a function"},
      // types
      {"array for one value", "float x = gradient;", "t.pse:2:11:", "an array of float"},
      {"one value for an array", "float* a = 1;", "t.pse:2:12:", "this is one value"},
      {"number as condition", "float x = 1; if (x) x = 2;", "t.pse:2:18:", "a condition is needed"},
      {"condition as number", "float x = t < 1;", "t.pse:2:11:", "write c ? 1 : 0"},
      {"remainder of floats", "float x = 1.5 % 2;", "t.pse:2:11:", "'%' takes whole numbers"},
      {"void variable", "void x;", "t.pse:2:1:", "void is no type"},
      {"lambda as a number", "lambda_func f = [](float a) { return a; }; float x = f;",
       "t.pse:2:54:", "a lambda, one float is declared"},
      {"bits that are no number", "uint<1.5> x = 1;", "t.pse:2:6:", "a whole number"},
      {"too many bits", "uint<33> x = 1;", "t.pse:2:6:", "uint has 1 to 32 bits"},
      // functions and lambdas
      {"missing return", "lambda_func f = [](float a) { float c = a; };",
       "t.pse:2:17:", "without a return"},
      {"missing return on a path", "lambda_func f = [](float a) { if (a > 0) return a; };",
       "t.pse:2:17:", "on some path"},
      {"arguments", "lambda_func f = [](float a) { return a; }; float x = f(1, 2);",
       "t.pse:2:54:", "2 arguments given, 1 taken"},
      {"assignment from a lambda",
       "float x = 1; lambda_func f = [&](float a) { x = a; return a; };",
       "t.pse:2:45:", "a lambda cannot change 'x'"},
      {"captures nothing", "float x = 1; lambda_func f = [](float a) { return x; };",
       "t.pse:2:51:", "write [&] to use 'x'"},
      {"changed after capture",
       "float x = 1; float* a = map(gradient, [&](float v) { return v * x; }); x = 2;",
       "t.pse:2:72:", "has been used by a lambda"},
      {"array inside a lambda", "lambda_func f = [&](int i) { return gradient; };",
       "t.pse:2:37:", "gradient[i]"},
      {"return from an encoder", "return;", "t.pse:2:1:", "runs to its end"},
      {"call without use", "floor(1.5);", "t.pse:2:1:", "the returned value is lost"},
      // arrays
      {"array size unknown", "float* a; int n = a.size;",
       "t.pse:2:19:", "array size unknown: 'a' has no value yet"},
      {"array size unknown in a message",
       "int n = reduce(map(gradient, [](float v) { return v < 0 ? 1 : 0; }), 0, [](int a, int b) { "
       "return a + b; });\n"
       "float* a = map(range(n), [](int i) { return i; });\ncompressed = concat(a);",
       "t.pse:4:21:", "array size unknown: in a message it must follow from gradient.size"},
      {"index that is no whole number", "float x = gradient[0.5];",
       "t.pse:2:20:", "an index is a whole number"},
      {"element of no array", "float x = t[0];", "t.pse:2:11:", "'t' is one float, not an array"},
      {"length of every element",
       "lambda_func f = [](float v) { return v; }; float* a = map(range(gradient), f);",
       "t.pse:2:65:", "an array of float, one value is needed"},
      {"arrays of different lengths",
       "float* a = map(range(10), gradient, [](int i, float v) { return v; });",
       "t.pse:2:27:", "another length or order"},
      {"filter by a number", "float* a = filter(gradient, [](float v) { return v; });",
       "t.pse:2:29:", "a condition is needed"},
      {"order that is none",
       "float* a = sort(gradient, [](float x, float y) { return x < 2 * y; });",
       "t.pse:2:27:", "x < y or x > y"},
      {"sort of conditions",
       "bool* c = map(gradient, [](float v) { return v < 0; }); bool* a = sort(c);",
       "t.pse:2:72:", "this is a condition"},
      {"largest of how many", "int* a = largest(gradient);", "t.pse:2:10:", "largest(a, n)"},
      {"gather by floats", "float* a = gather(gradient, gradient);",
       "t.pse:2:29:", "indices are whole numbers"},
      {"scatter of another length",
       "int* at = largest(gradient, 3); float* a = scatter(at, gradient, gradient.size);",
       "t.pse:2:56:", "every index has its value"},
      {"lambda of reduce that draws",
       "float s = reduce(gradient, 0, [](float a, float b) { return a + random<float>(0, 1); });",
       "t.pse:2:31:", "makes one value of two"},
      {"state of another type", "state int* s;", "t.pse:2:7:", "is a float* array"},
      {"state under a condition", "if (t > 0) { state float* s; }",
       "t.pse:2:27:", "outside branches"},
      {"state of another length", "state float* s; s = filter(s, [](float v) { return v > 0; });",
       "t.pse:2:21:", "'s' is as long as the gradient"},
      {"assignment to an element", "gradient[0] = 1;", "t.pse:2:1:", "only a variable"},
      {"array under a condition",
       "float* a; if (t > 0) a = map(gradient, [](float v) { return v; });",
       "t.pse:2:22:", "outside branches"},
      {"array operator in a lambda",
       "lambda_func f = [&](float v) { return reduce(gradient, 0, v); };",
       "t.pse:2:39:", "stands outside lambdas"},
      {"random number for the slice", "float x = random<float>(0, 1);",
       "t.pse:2:11:", "drawn per element"},
      {"random condition", "float* a = map(gradient, [](float v) { return random<bool>(0, 1); });",
       "t.pse:2:47:", "floats or ints"},
      // messages
      {"no array in the message", "compressed = concat(t);",
       "t.pse:2:14:", "a message without an array"},
      {"lambda in the message",
       "lambda_func f = [](float v) { return v; }; compressed = concat(f);",
       "t.pse:2:64:", "a message holds scalars and arrays, this is a lambda"},
      {"message from elsewhere", "compressed = t;", "t.pse:2:14:", "a message is made by concat"},
      {"bits that depend on the slice",
       "int n = gradient.size; uint<n>* q = map(gradient, [](float v) { return v; }); compressed = "
       "concat(q);",
       "t.pse:2:99:", "parameters only"},
      {"more bits than a number has",
       "int n = 40; uint<8>* q = map(gradient, [](float v) { return v; }); uint<b * 8>* r = "
       "map(gradient, [](float v) { return v; }); compressed = concat(q, r);",
       "t.pse:2:150:", "1 to 32 bits"},
      {"length of the message", "int n = compressed.size;", "t.pse:2:9:", "the runtime's"},
      {"concat elsewhere", "float x = concat(t);", "t.pse:2:11:", "compressed = concat"},
      {"extract in an encoder", "extract(compressed, t);", "t.pse:2:1:", "stands in a decoder"},
      {"feedback of another", "error_feedback compressed;", "t.pse:2:16:", "names its gradient"},
      {"feedback too late", "float x = gradient[0]; error_feedback gradient;",
       "t.pse:2:39:", "put error_feedback first"},
      {"feedback behind a lambda",
       "lambda_func f = [&](int i) { return gradient[i]; }; error_feedback gradient;",
       "t.pse:2:68:", "put error_feedback first"},
      // text
      {"no semicolon", "float x = 1", "t.pse:3:1:", "';' after the declaration"},
      {"no value", "float x = ;", "t.pse:2:11:", "';' stands where a value is expected"},
      {"strange character", "float x = $;", "t.pse:2:11:", "no part of the language"},
      {"comment without end", "/* and so on", "t.pse:2:1:", "close it with */"},
      {"malformed number", "float x = 1.2.3;", "t.pse:2:11:", "'1.2.3' is no number"},
      {"number of letters", "float x = 12abc;", "t.pse:2:11:", "'12abc' is no number"},
      {"huge whole number", "int x = 9223372036854775808;", "t.pse:2:9:", "does not fit its type"},
      {"huge real number", "float x = 1e39;", "t.pse:2:11:", "does not fit its type"},
  };
  for (const Wrong& wrong : wrongs) {
    INFO(wrong.what);
    const std::string said = complaint(encoder(wrong.statements));
    CHECK_THAT(said, StartsWith(wrong.place));
    CHECK_THAT(said, Contains(wrong.message));
    CHECK_THAT(said, Contains("\n") && Contains("^"));
  }
}

TEST_CASE("the gradient's size may be known before its error feedback is asked for") {
  CHECK(complaint(encoder("int n = gradient.size; error_feedback gradient;" + kEnd)) == "");
}

TEST_CASE("mistakes outside an encoder have their message") {
  const std::string decoder_end =
      "extract(compressed, q); gradient = map(q, [](int c) { return c; }); }";
  const Wrong wrongs[] = {
      {"nothing at all", "", "t.pse:1:1:", "there is no encoder"},
      {"no entry", "float f(float x) { return x; }", "t.pse:1:7:", "there is no encoder"},
      {"direct recursion", "float f(float x) { return f(x); } ", "t.pse:1:27:", "'f' calls itself"},
      {"mutual recursion", "float f(float x) { return g(x); } float g(float x) { return f(x); }",
       "t.pse:1:61:", "calls itself"},
      {"helper without a return", "float f(float x) { x = 1; }", "t.pse:1:7:", "without a return"},
      {"helper of arrays", "float f(float* x) { return 1; }", "t.pse:1:16:", "takes scalars"},
      {"helper that sees others", "float f(float x) { return gradient; }",
       "t.pse:1:27:", "nothing called 'gradient'"},
      {"two encoders", "void AEncode(float* g, uint8* c) {} void BEncode(float* g, uint8* c) {}",
       "t.pse:1:42:", "there is an encoder already"},
      {"two functions", "float f(float x) { return x; } float f(float x) { return x; }",
       "t.pse:1:38:", "two functions 'f'"},
      {"encoder without a message", "void AEncode(float* g, uint8* c) {}",
       "t.pse:1:6:", "'c' is never given a value"},
      {"decoder without its message", "void ADecode(uint8* c, float* g) { }",
       "t.pse:1:6:", "never given a value"},
      {"default outside its range", "void AEncode(float* g, uint8* c, uint8 b = 9 in [1, 8]) {}",
       "t.pse:1:40:", "must lie in its range"},
      {"own parameter without 0", "void AEncode(float* g, uint8* c, own float m = 1 in [1, 2]) {}",
       "t.pse:1:44:", "its range holds 0"},
      {"own parameter of a decoder", "void ADecode(uint8* c, float* g, own float m = 0) {}",
       "t.pse:1:44:", "belongs to an encoder"},
      {"own parameter of a helper", "float f(own float x) { return x; }",
       "t.pse:1:19:", "takes scalars, without defaults"},
      {"encoder that returns", "int AEncode(float* g, uint8* c) {}", "t.pse:1:1:", "returns void"},
  };
  for (const Wrong& wrong : wrongs) {
    INFO(wrong.what);
    const std::string said = complaint(wrong.statements);
    CHECK_THAT(said, StartsWith(wrong.place));
    CHECK_THAT(said, Contains(wrong.message));
  }
}

/// The compiler's notes on a program that compiles.
std::string notes(const std::string& text) {
  const Source source{"t.pse", text};
  const Elaborated elaborated = elaborate({&source});
  std::string all;
  for (const std::string& note : elaborated.notes) all += note + "\n";
  return all;
}

TEST_CASE("the compiler notes what keeps a program from being a quantiser of few passes") {
  const auto noted = [](const std::string& statements) {
    return notes(encoder(statements + kEnd));
  };
  CHECK_THAT(noted(""), !Contains("quantiser"));
  const std::pair<const char*, const char*> programs[] = {
      {"float* a = map(range(10), [](int i) { return 1.0; });", "arrays of other lengths"},
      {"float* a = map(range(gradient.size), [&](int i) { return gradient[i + 1]; });",
       "reads elements elsewhere"},
      {"float s = reduce(map(range(gradient.size), [](int i) { return float(i); }), 0, [](float a, "
       "float b) { return a + b; });",
       "depends on its index"},
      {"float p = reduce(gradient, 1, [](float a, float b) { return a * b; });",
       "neither a sum (a + b) nor a minimum nor a maximum"},
      {"int s = reduce(map(gradient, [](float v) { return int(v); }), 0, [](int a, int b) { return "
       "a + b; });",
       "a signed int of a float"},
      {"state float* s;", "keeps arrays of its own"},
      {"int* at = largest(gradient, 1);", "selects elements"},
      {"float* a = sort(gradient);", "it sorts"},
      {"float* a = sample(gradient, 3);", "it samples"},
  };
  for (const auto& [statements, message] : programs)
    CHECK_THAT(noted(statements), Contains(message));
  CHECK_THAT(notes(encoder("compressed = concat(gradient);")), Contains("no array of uint<bits>"));
  CHECK_THAT(notes(encoder("uint<16>* q = map(gradient, [](float v) { return v; });\n"
                           "compressed = concat(q);")),
             Contains("more than 8 bits"));
}

TEST_CASE("a decoder must read what its encoder writes") {
  const std::string encoder =
      "void AEncode(float* g, uint8* c) {\n"
      "uint<1>* q = map(g, [](float v) { return v < 0 ? 1 : 0; });\n"
      "c = concat(float(g.size), q); }\n";
  const auto with = [&](const std::string& decoder) { return complaint(encoder + decoder); };
  CHECK(with("void ADecode(uint8* c, float* g) { float n; uint<1>* q; extract(c, n, q);\n"
             "g = map(q, [](int s) { return s; }); }")
            .empty());
  CHECK_THAT(with("void ADecode(uint8* c, float* g) { int n; uint<1>* q; extract(c, n, q);\n"
                  "g = map(q, [](int s) { return s; }); }"),
             StartsWith("t.pse:4:6:") && Contains("does not read what 'AEncode' writes"));
  CHECK_THAT(with("void ADecode(uint8* c, float* g) { float n; float* q; extract(c, n, q);\n"
                  "g = q; }"),
             Contains("does not read what 'AEncode' writes"));
  CHECK_THAT(with("void ADecode(uint8* c, float* g) { float n; uint<1>* q; extract(c, n, q);\n"
                  "g = sort(q); }"),
             StartsWith("t.pse:5:5:") && Contains("sort belongs in an encoder"));
  CHECK_THAT(with("void ADecode(uint8* c, float* g) { float n; uint<1>* q; extract(c, n, q);\n"
                  "g = map(range(3), [](int i) { return i; }); }"),
             StartsWith("t.pse:5:5:") && Contains("'g' is as long as the gradient"));
  CHECK_THAT(with("void ADecode(uint8* c, float* g) { float n; uint<1>* q; extract(c, n, q);\n"
                  "int* z = map(range(int(n)), [](int i) { return i; });\n"
                  "g = scatter(z, z, g.size); }"),
             StartsWith("t.pse:5:20:") && Contains("a message is not trusted with it"));
  CHECK_THAT(with("void BDecode(uint8* c, float* g) { }"), Contains("does not belong to encoder"));
  CHECK_THAT(with("void ADecode(uint8* c, float* g) { float n; uint<1>* q; extract(c, n, q);\n"
                  "g = map(q, [](int s) { return s + random<float>(0, 1); }); }"),
             Contains("draws no random numbers"));
}

TEST_CASE("an algorithm has at most 32 parameters") {
  std::string parameters;
  for (int i = 0; i < 33; ++i) parameters += ", int p" + std::to_string(i) + " = 1";
  CHECK_THAT(complaint("void AEncode(float* g, uint8* c" + parameters + ") {}"),
             Contains("at most 32 parameters"));
}

TEST_CASE("a program whose loops come to too much code is refused") {
  // Forty sums have loops of about 900 operations each, in total more than the allowed 20000 lines.
  std::string program = "float f0(float a) { return a + 1; }\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "f" + std::to_string(i - 1);
    program += "float f" + std::to_string(i) + "(float a) { return " + before + "(a) * 1.5 + " +
               before + "(a + " + std::to_string(i) + "); }\n";
  }
  program += "void AEncode(float* g, uint8* c) { state float* s;\n";
  std::string fields;
  for (int i = 0; i < 40; ++i) {
    const std::string n = std::to_string(i);
    program += "float r" + n + " = reduce(map(g, [](float v) { return f8(v * " + n +
               "); }), 0, [](float a, float b) { return a + b; });\n";
    fields += "r" + n + ", ";
  }
  program += "float* x = map(g, [](float v) { return v; }); c = concat(" + fields + "x); }\n";
  const Source source{"t.pse", program};
  const Elaborated elaborated = elaborate({&source});
  CHECK_THROWS_WITH(emit(elaborated.program, {}), Contains("too large"));
}

TEST_CASE("of a long line the part around the caret is shown") {
  const std::string left = "float a" + std::string(500, ' '), right = std::string(500, ' ') + ";";
  const std::string said = complaint(encoder(left + "= missing" + right + kEnd));
  CHECK(said == "t.pse:2:510: there is nothing called 'missing' here\n…" + std::string(58, ' ') +
                    "= missing" + std::string(33, ' ') + "…\n" + std::string(61, ' ') + "^~~~~~~");
}

TEST_CASE("a long line is cut between characters, not inside of them") {
  std::string letters;
  for (int i = 0; i < 200; ++i) letters += "\u00e9";
  const std::string said = complaint("/* " + letters + " */ void /* " + letters + " */");
  REQUIRE(said.find("…\u00e9") != std::string::npos);
  for (std::size_t i = 0; i < said.size();) {
    const std::size_t length = io::utf8_length(std::string_view(said).substr(i));
    REQUIRE(length > 0);
    i += length;
  }
}

TEST_CASE("a program of one line of 1 MB makes a short message") {
  const std::string megabyte(1000000, '1');
  CHECK(complaint(megabyte).size() < 500);
  CHECK(complaint("void XEncode(float* g, uint8* c) { float x = " + megabyte + "; }").size() < 500);
  CHECK(complaint("void " + std::string(1000000, 'a') + "() {}").size() < 500);
  CHECK_THAT(complaint("void " + std::string(81, 'a') + "() {}"), Contains("more than 80 letters"));
  CHECK(complaint(encoder("float x = " + std::string(1000000, ' ') + "y;")).size() < 500);
}

TEST_CASE("the name of a file is printed without its control characters") {
  const Source source{"a\x1b[31m\nb.pse", "x"};
  CHECK_THAT(describe({&source, 0, 1}, "", "wrong"),
             StartsWith("a\\x1b[31m\\x0ab.pse:1:1: wrong\n"));
}

TEST_CASE("a file whose name has control characters is not read") {
  for (const char* name : {"/no-such/a\nb.pse", "/no-such/\x1b[31m.pse", "/no-such/\xff.pse"}) {
    CHECK_THROWS_WITH(read_source(name),
                      Contains("control characters") && !Contains("\n") && !Contains("\x1b"));
  }
}

TEST_CASE("branches over shared values are compiled in linear time") {
  // Each of 60 steps chooses between two values of the step before, so there are 2^60 paths.
  std::string statements =
      "float s = t;\nuint<2>* q = map(gradient, [&](float v) {\n"
      "  int x0 = v < 0 ? 1 : 0; int y0 = v < 1 ? 1 : 0;\n";
  for (int i = 1; i <= 60; ++i) {
    const std::string n = std::to_string(i), m = std::to_string(i - 1);
    statements += "  int x" + n + " = v < " + n + " ? x" + m + " : y" + m + "; int y" + n +
                  " = v > " + n + " ? x" + m + " : y" + m + ";\n";
  }
  statements += "  return x60; });\ncompressed = concat(q);";
  CHECK(complaint(encoder(statements)).empty());
}

TEST_CASE("deep and huge programs are refused, not followed") {
  const auto repeated = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  CHECK_THAT(
      complaint(encoder("float x = " + repeated("(", 5000) + "1" + repeated(")", 5000) + ";")),
      Contains("nested more than 200 deep"));
  CHECK_THAT(complaint(encoder("float x = 1" + repeated(" + 1", 5000) + ";")),
             Contains("1000 operators one upon the other"));
  CHECK_THAT(complaint(encoder(repeated("{", 5000) + repeated("}", 5000))),
             Contains("nested more than 200 deep"));
  // Each of forty functions calls the one before twice. Inlining all would give 2^40 calls.
  std::string doubling = "float f0(float x) { return x + 1; }\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "f" + std::to_string(i - 1);
    doubling += "float f" + std::to_string(i) + "(float x) { return " + before + "(x) + " + before +
                "(x + 1); }\n";
  }
  CHECK_THAT(complaint(doubling), Contains("too large once its functions are inlined"));
}

}  // namespace
}  // namespace hipress::compll
