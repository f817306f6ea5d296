#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "models/shape.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace hipress::models;
using hipress::tests::complaint;
using hipress::tests::TemporaryFolder;

namespace {

/// The complaint about a file with this content, without the folder's name in front.
std::string complaint_about(const std::string& name, const std::string& content) {
  const TemporaryFolder folder;
  const std::string path = folder.file(name, content);
  const std::string message = complaint([&] { read_model(path); });
  const std::string prefix = folder.path("");
  return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

using Shape = std::vector<std::int64_t>;

Model read_content(const std::string& name, const std::string& content) {
  const TemporaryFolder folder;
  return read_model(folder.file(name, content));
}

}  // namespace

TEST_CASE("name,elements lines") {
  const Model model = read_content("input.txt", "fc6.weight,102760448\nfc6.bias,4096\n");
  CHECK(model.name == "input");
  REQUIRE(model.gradients.size() == 2);
  CHECK(model.gradients[0].name == "fc6.weight");
  CHECK(model.gradients[0].elements == 102760448);
  CHECK(model.gradients[0].ready_s == 0);
  CHECK(model.gradients[0].dtype == Dtype::kFloat32);
  CHECK(model.gradients[1].name == "fc6.bias");
  CHECK(total_elements(model) == 102764544);
  CHECK(backward_s(model) == 0);
  CHECK(model.forward_s == 0);
}

TEST_CASE("SeCoPa's own input, which ends without a newline") {
  const Model model = read_model(HIPRESS_SOURCE_DIR "/examples/vgg19_gradients.txt");
  REQUIRE(model.gradients.size() == 38);
  CHECK(model.gradients.front().name == "vgg0_conv0_weight");
  CHECK(model.gradients.front().elements == 3 * 3 * 3 * 64);  // a kernel of 3 x 3, 3 to 64 channels
  CHECK(model.gradients.back().name == "vgg0_dense2_bias");
  CHECK(model.gradients.back().elements == 1000);
}

TEST_CASE("a CSV names its columns, in any order") {
  SECTION("with ready times") {
    const Model model = read_content("x.csv", "name,elements,ready_us\nb,2,0\na,1,3228.5\n");
    REQUIRE(model.gradients.size() == 2);
    CHECK(model.gradients[1].name == "a");
    CHECK(model.gradients[1].ready_s == 3228.5e-6);
    CHECK(backward_s(model) == 3228.5e-6);
  }
  SECTION("in another order, with blanks") {
    const Model model = read_content("x.csv", "ready_us, elements ,name\n 7 , 2 , b \n");
    REQUIRE(model.gradients.size() == 1);
    CHECK(model.gradients[0].name == "b");
    CHECK(model.gradients[0].elements == 2);
    CHECK(model.gradients[0].ready_s == 7e-6);
  }
  SECTION("with shapes") {
    const Model model =
        read_content("x.csv", "shape,name,elements,ready_us\n64x3x7x7,a,9408,5\n,b,7,6\n9,c,9,7\n");
    REQUIRE(model.gradients.size() == 3);
    CHECK(model.gradients[0].shape == Shape{64, 3, 7, 7});
    CHECK(model.gradients[0].ready_s == 5e-6);
    CHECK(model.gradients[1].shape.empty());  // not known
    CHECK(shape_of(model.gradients[1]) == Shape{7});
    CHECK(model.gradients[2].shape == Shape{9});
    CHECK(read_content("x.csv", "name,elements,shape\na,6,2x3\n").gradients.at(0).shape ==
          Shape{2, 3});
  }
  SECTION("without ready times") {
    CHECK(read_content("x.csv", "name,elements\na,1\n").gradients.at(0).ready_s == 0);
  }
  SECTION("a gradient may be called like a column") {
    const Model model = read_content("x.txt", "name,1000\nelements,5\n");
    REQUIRE(model.gradients.size() == 2);
    CHECK(model.gradients[0].name == "name");
  }
}

TEST_CASE("line ends, blank lines and a missing final newline do not matter") {
  for (const char* content : {"a,1\r\nb,2\r\n", "a,1\n\nb,2", "\n  \na,1\nb,2\n\n",
                              "\xef\xbb\xbf"
                              "a,1\nb,2\n"}) {
    const Model model = read_content("x.txt", content);
    REQUIRE(model.gradients.size() == 2);
    CHECK(model.gradients[0].name == "a");
    CHECK(model.gradients[1].elements == 2);
  }
}

TEST_CASE("a model without gradients is refused by the file's name") {
  for (const auto& [file, content] : {std::pair("x.txt", ""),
                                      {"x.txt", "\n\n"},
                                      {"x.csv", "name,elements,ready_us\n"},
                                      {"x.yaml", "name: x\ngradients: []\n"}}) {
    CAPTURE(file, content);
    CHECK_THAT(complaint_about(file, content),
               Catch::StartsWith(std::string(file) + ": nothing to synchronise: ") &&
                   Catch::Contains("give at least one"));
  }
}

TEST_CASE("a model may have no gradients where it does not come from a file") {
  CHECK(backward_s({}) == 0);
  CHECK(total_elements({}) == 0);
}

TEST_CASE("the largest size is accepted") {
  // 2^48
  CHECK(read_content("x.txt", "a,281474976710656\n").gradients.at(0).elements == kMaxElements);
}

TEST_CASE("bad lines are refused with file, line and gradient") {
  SECTION("no comma") {
    CHECK(complaint_about("x.txt", "a,1\nfc6.weight\n") ==
          "x.txt:2: a line must have 2 fields, name,elements, got 'fc6.weight'");
  }
  SECTION("a plan instead of a model") {
    CHECK(complaint_about("x.txt", "a,1,y,4\n") ==
          "x.txt:1: a line must have 2 fields, name,elements, got 'a,1,y,4'");
  }
  SECTION("too few fields in a CSV") {
    CHECK(complaint_about("x.csv", "name,elements,ready_us\na,1\n") ==
          "x.csv:2: a line must have 3 fields, name,elements,ready_us, got 'a,1'");
  }
  SECTION("a negative size") {
    CHECK(complaint_about("x.txt", "a,1\nfc6.weight,-3\n") ==
          "x.txt:2: gradient 'fc6.weight': elements must be a positive integer, got '-3'");
  }
  SECTION("no elements") {
    CHECK(complaint_about("x.txt", "a,0\n") ==
          "x.txt:1: gradient 'a': elements must be a positive integer, got '0'");
  }
  SECTION("half an element") {
    CHECK(complaint_about("x.txt", "a,1.5\n") ==
          "x.txt:1: gradient 'a': elements must be a positive integer, got '1.5'");
  }
  SECTION("no number") {
    CHECK(complaint_about("x.txt", "a,many\n") ==
          "x.txt:1: gradient 'a': elements must be a positive integer, got 'many'");
    CHECK(complaint_about("x.txt", "a,\n") ==
          "x.txt:1: gradient 'a': elements must be a positive integer, got ''");
  }
  SECTION("a huge size") {
    CHECK(complaint_about("x.txt", "a,281474976710657\n") ==  // 2^48 + 1
          "x.txt:1: gradient 'a': elements must be at most 281474976710656, got '281474976710657'");
    CHECK(complaint_about("x.txt", "a,99999999999999999999999\n") ==
          "x.txt:1: gradient 'a': elements must be at most 281474976710656, got "
          "'99999999999999999999999'");
  }
  SECTION("a huge sum") {
    CHECK(complaint_about("x.txt", "a,281474976710656\nb,1\n") ==
          "x.txt:2: gradient 'b': all gradients together must have at most 2^48 elements");
  }
  SECTION("no name") {
    CHECK(complaint_about("x.txt", "a,1\n ,5\n") == "x.txt:2: a gradient's name must not be empty");
  }
  SECTION("a name twice") {
    CHECK(complaint_about("x.txt", "a,1\nb,2\na,1\n") ==
          "x.txt:3: gradient 'a' is listed twice, first in line 1; names must be unique");
  }
  SECTION("a negative ready time") {
    CHECK(complaint_about("x.csv", "name,elements,ready_us\na,1,-5\n") ==
          "x.csv:2: gradient 'a': ready_us must be 0 to 1e+12 (microseconds), got '-5'");
  }
  SECTION("a ready time that no clock of ours holds") {
    CHECK(complaint_about("x.csv", "name,elements,ready_us\na,1,1e13\n") ==
          "x.csv:2: gradient 'a': ready_us must be 0 to 1e+12 (microseconds), got '1e13'");
  }
  SECTION("a ready time that is no number") {
    CHECK(complaint_about("x.csv", "name,elements,ready_us\na,1,nan\n") ==
          "x.csv:2: gradient 'a': ready_us must be a finite number without unit, such as 0.5, got "
          "'nan'");
  }
  SECTION("NUL bytes") {
    CHECK(complaint_about("x.txt", std::string("a\0,1\n", 5)) ==
          "x.txt:1: byte 0x00 at column 2 is no text; give a UTF-8 text file");
  }
}

TEST_CASE("bad headers are refused with what a header looks like") {
  SECTION("a missing column") {
    CHECK(complaint_about("x.csv", "name,ready_us\na,1\n") ==
          "x.csv:1: missing column 'elements'; the header is name,elements[,ready_us][,shape]");
    CHECK(complaint_about("x.csv", "elements,ready_us\n1,1\n") ==
          "x.csv:1: missing column 'name'; the header is name,elements[,ready_us][,shape]");
  }
  SECTION("an unknown column") {
    CHECK(complaint_about("x.csv", "name,elements,ready\na,1,1\n") ==
          "x.csv:1: unknown column 'ready'; did you mean 'ready_us'? (known: name, elements, "
          "ready_us, shape)");
  }
  SECTION("a column twice") {
    CHECK(complaint_about("x.csv", "name,elements,name\na,1,1\n") ==
          "x.csv:1: column 'name' is there twice");
  }
}

TEST_CASE("a model YAML") {
  const Model model = read_content("x.yaml",
                                   "name: tiny\n"
                                   "source: made up\n"
                                   "batch: 32\n"
                                   "unit: images\n"
                                   "dtype: bfloat16\n"
                                   "forward: 1.25ms\n"
                                   "optimizer: 0.25ms\n"
                                   "gradients:\n"
                                   "- {name: b, elements: 2, ready: 3228us}\n"
                                   "- {name: a, elements: 1, dtype: float32}\n");
  CHECK(model.name == "tiny");
  CHECK(model.source == "made up");
  CHECK(model.batch == 32);
  CHECK(model.unit == "images");
  CHECK(model.forward_s == 1.25e-3);
  CHECK(model.optimizer_s == 0.25e-3);
  CHECK(model.micro_steps == 1);
  CHECK(before_backward_s(model) == 1.5e-3);
  REQUIRE(model.gradients.size() == 2);
  CHECK(model.gradients[0].name == "b");
  CHECK(model.gradients[0].elements == 2);
  CHECK(model.gradients[0].ready_s == 3228e-6);
  CHECK(model.gradients[0].dtype == Dtype::kBfloat16);
  CHECK(model.gradients[1].ready_s == 0);
  CHECK(model.gradients[1].dtype == Dtype::kFloat32);
}

TEST_CASE("a step of several micro-steps computes all of them before its last backward") {
  const Model model = read_content("x.yaml",
                                   "name: x\n"
                                   "forward: 1ms\n"
                                   "optimizer: 0.5ms\n"
                                   "micro_steps: 4\n"
                                   "gradients:\n"
                                   "- {name: b, elements: 2, ready: 1ms, bucket: 0}\n"
                                   "- {name: a, elements: 1, ready: 3ms, bucket: 0}\n");
  CHECK(model.micro_steps == 4);
  CHECK(backward_s(model) == 3e-3);
  CHECK(before_backward_s(model) == Approx(0.5e-3 + 4 * 1e-3 + 3 * 3e-3));
}

TEST_CASE("a model YAML with shapes") {
  const Model model = read_content("x.yaml",
                                   "name: tiny\n"
                                   "gradients:\n"
                                   "- {name: fc, elements: 1048576, shape: [512, 2048]}\n"
                                   "- {name: conv, shape: [64, 3, 7, 7], ready: 5us}\n"
                                   "- {name: bias, elements: 7}\n"
                                   "- name: long\n"
                                   "  shape:\n"
                                   "  - 2\n"
                                   "  - 3\n");
  REQUIRE(model.gradients.size() == 4);
  CHECK(model.gradients[0].shape == Shape{512, 2048});
  CHECK(model.gradients[1].shape == Shape{64, 3, 7, 7});
  CHECK(model.gradients[1].elements == 9408);  // 64 * 3 * 7 * 7
  CHECK(model.gradients[2].shape.empty());
  CHECK(shape_of(model.gradients[2]) == Shape{7});
  CHECK(model.gradients[3].elements == 6);
}

TEST_CASE("gradients of a bucket are ready with the last of them") {
  const Model model = read_content("x.yaml",
                                   "name: tiny\n"
                                   "gradients:\n"
                                   "- {name: a, elements: 1, ready: 5us, bucket: 0}\n"
                                   "- {name: b, elements: 1, ready: 6us, bucket: 7}\n"
                                   "- {name: c, elements: 1, ready: 9us, bucket: 0}\n"
                                   "- {name: d, elements: 1, ready: 2us}\n");
  REQUIRE(model.gradients.size() == 4);
  CHECK(model.gradients[0].bucket == 0);
  CHECK(model.gradients[0].ready_s == 9e-6);
  CHECK(model.gradients[1].ready_s == 6e-6);
  CHECK(model.gradients[2].ready_s == 9e-6);
  CHECK_FALSE(model.gradients[3].bucket.has_value());
  CHECK(model.gradients[3].ready_s == 2e-6);
}

TEST_CASE("bad shapes in a CSV are refused with file, line and gradient") {
  const auto refusal = [](const std::string& elements, const std::string& shape) {
    return complaint_about("x.csv", "name,elements,shape\nfc," + elements + "," + shape + "\n");
  };
  const std::string dimension =
      "x.csv:2: gradient 'fc': each dimension of a shape, such as 64x3x7x7, must be ";
  for (const char* part : {"0", "-2", "1.5", "", " ", "many"}) {
    CAPTURE(part);
    const std::string expected =
        dimension + "a positive integer, got '" + (part == std::string(" ") ? " " : part) + "'";
    CHECK(refusal("4", "4x" + std::string(part) + "x1") == expected);
  }
  CHECK(refusal("4", "2*2") == dimension + "a positive integer, got '2*2'");
  CHECK(refusal("4", "[2 2]") == dimension + "a positive integer, got '[2 2]'");
  CHECK(refusal("4", "4x") == dimension + "a positive integer, got ''");
  CHECK(refusal("4", "281474976710657") ==  // 2^48 + 1
        dimension + "at most 281474976710656, got '281474976710657'");
  // 2^32 * 2^32 = 2^64 is 0 in 64 bits.
  CHECK(refusal("4", "4294967296x4294967296") ==
        "x.csv:2: gradient 'fc': shape 4294967296x4294967296 has more than 2^48 elements; give "
        "smaller dimensions");
  CHECK(refusal("13", "3x4") ==
        "x.csv:2: gradient 'fc': shape 3x4 has 12 elements, but elements says 13; correct one of "
        "them, or leave the shape out");
  CHECK(refusal("1", "1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1") ==
        "x.csv:2: gradient 'fc': shape has 17 dimensions; give at most 16");
  CHECK(complaint_about("x.csv", "name,elements,shape\na,1\n") ==
        "x.csv:2: a line must have 3 fields, name,elements,shape, got 'a,1'");
}

TEST_CASE("bad shapes in a YAML are refused with file, line and gradient") {
  const auto refusal = [](const std::string& fields) {
    return complaint_about("x.yaml", "name: x\ngradients:\n- {name: fc, " + fields + "}\n");
  };
  CHECK(refusal("elements: 4, shape: [4, 0]") ==
        "x.yaml:3: gradient 'fc': shape[1] must be a positive integer, got '0'");
  CHECK(refusal("shape: [-4]") ==
        "x.yaml:3: gradient 'fc': shape[0] must be a positive integer, got '-4'");
  CHECK(refusal("shape: [4, two]") ==
        "x.yaml:3: gradient 'fc': shape[1] must be a positive integer, got 'two'");
  CHECK(refusal("shape: [[2, 2], 1]") ==
        "x.yaml:3: gradient 'fc': shape[0]: must be a single value, got a list");
  for (const char* text : {"512x2048", "512", "[]", "{rows: 2}", ""}) {
    CAPTURE(text);
    CHECK(refusal("elements: 512, shape: " + std::string(text)) ==
          "x.yaml:3: gradient 'fc': shape: must be a list of dimensions, such as [512, 2048]; "
          "without one, leave it out");
  }
  CHECK(refusal("shape: [4294967296, 4294967296]") ==
        "x.yaml:3: gradient 'fc': shape 4294967296x4294967296 has more than 2^48 elements; give "
        "smaller dimensions");
  CHECK(refusal("shape: [281474976710657]") ==
        "x.yaml:3: gradient 'fc': shape[0] must be at most 281474976710656, got '281474976710657'");
  CHECK(refusal("elements: 13, shape: [3, 4]") ==
        "x.yaml:3: gradient 'fc': shape 3x4 has 12 elements, but elements says 13; correct one of "
        "them, or leave the shape out");
  CHECK(refusal("shape: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]") ==
        "x.yaml:3: gradient 'fc': shape has 17 dimensions; give at most 16");
  CHECK(complaint_about("x.yaml",
                        "name: x\ngradients:\n- name: fc\n  elements: 5\n  shape: [2, 3]\n") ==
        "x.yaml:5: gradient 'fc': shape 2x3 has 6 elements, but elements says 5; correct one of "
        "them, or leave the shape out");
}

TEST_CASE("shapes are written as they are read") {
  CHECK(format_shape(Shape{64, 3, 7, 7}) == "64x3x7x7");
  CHECK(parse_shape("64x3x7x7") == Shape{64, 3, 7, 7});
  CHECK(parse_shape(format_shape(Shape{5})) == Shape{5});
  CHECK(elements_of(Shape{64, 3, 7, 7}) == 9408);
  CHECK(elements_of(Shape{1 << 24, 1 << 24}) == kMaxElements);  // 2^48
  CHECK(complaint([] {
          elements_of(Shape{4, -1});
        }) == "shape 4x-1: each dimension must be at least 1, got -1");
}

TEST_CASE("what only name and gradients say") {
  const Model model = read_content("x.yml", "name: x\ngradients: [{name: a, elements: 1}]\n");
  CHECK(model.batch == 0);
  CHECK(model.forward_s == 0);
  CHECK(model.gradients.at(0).dtype == Dtype::kFloat32);
}

TEST_CASE("bad model YAML is refused with file, line and gradient") {
  const std::string head = "name: x\ngradients:\n";
  SECTION("an unknown key, before a missing one") {
    CHECK(
        complaint_about("x.yaml", "gradiants: []\n") ==
        "x.yaml:1: unknown key 'gradiants'; did you mean 'gradients'? (known: name, source, batch, "
        "unit, dtype, forward, optimizer, threads, forward_core_time, optimizer_core_time, "
        "memory_traffic, activations, hook, micro_steps, positions, mix, traced, gradients, "
        "schema)");
    CHECK(complaint_about("x.yaml", head + "- {name: a, element: 5}\n") ==
          "x.yaml:3: unknown key 'gradients[0].element'; did you mean 'elements'? (known: name, "
          "elements, shape, ready, dtype, flops, bucket, layer, core_time, work)");
  }
  SECTION("a missing key") {
    CHECK(complaint_about("x.yaml", "gradients: []\n") == "x.yaml:1: missing key 'name'");
    CHECK(complaint_about("x.yaml", "name: x\n") == "x.yaml:1: missing key 'gradients'");
    CHECK(complaint_about("x.yaml", head + "- {name: a}\n") ==
          "x.yaml:3: gradient 'a': missing key 'elements'");
  }
  SECTION("a bad size") {
    CHECK(complaint_about("x.yaml", head + "- {name: fc6.weight, elements: -3}\n") ==
          "x.yaml:3: gradient 'fc6.weight': elements must be a positive integer, got '-3'");
    CHECK(complaint_about("x.yaml", head + "- {name: a, elements: 281474976710657}\n") ==
          "x.yaml:3: gradient 'a': elements must be at most 281474976710656, got "
          "'281474976710657'");
  }
  SECTION("a missing unit") {
    CHECK(complaint_about("x.yaml", head + "- {name: a, elements: 1, ready: 3228}\n") ==
          "x.yaml:3: gradient 'a': ready must be a duration with unit, such as 5us (units: ps, ns, "
          "us, ms, s, min), got '3228'");
    CHECK(complaint_about("x.yaml", "name: x\nforward: 5\ngradients: []\n") ==
          "x.yaml:2: forward must be a duration with unit, such as 5us (units: ps, ns, us, ms, s, "
          "min), got '5'");
  }
  SECTION("a bad time") {
    CHECK(complaint_about("x.yaml", head + "- {name: a, elements: 1, ready: -1us}\n") ==
          "x.yaml:3: gradient 'a': ready must be zero or positive, got '-1us'");
    CHECK(complaint_about("x.yaml", "name: x\nforward: 1e7s\ngradients: []\n") ==
          "x.yaml:2: forward: must be 0s to 1e+06s, got '1e7s'");
    CHECK(complaint_about("x.yaml",
                          "name: x\nforward: 600000s\noptimizer: 600000s\ngradients: []\n") ==
          "x.yaml:3: optimizer: must be 0s to 400000s, got '600000s'");
  }
  SECTION("bad micro-steps") {
    const auto complaint_of = [](const std::string& value) {
      return complaint_about("x.yaml", "name: x\nforward: 1ms\nmicro_steps: " + value +
                                           "\ngradients: [{name: a, elements: 1, ready: 2ms}]\n");
    };
    for (const char* bad : {"0", "-2", "1.5", "many", "[2]", "2147483648"}) {
      CAPTURE(bad);
      CHECK_THAT(complaint_of(bad), Catch::StartsWith("x.yaml:3: micro_steps"));
    }
    // Each micro-step takes 1 ms + 2 ms, without the last backward; 10^6 s are allowed.
    CHECK_THAT(complaint_of("333333335"),
               Catch::StartsWith("x.yaml:3: micro_steps: with 333333335, a step computes for ") &&
                   Catch::EndsWith("before its last backward, and at most 1e+06s are possible"));
  }
  SECTION("a bad bucket") {
    CHECK(complaint_about("x.yaml", head + "- {name: a, elements: 1, bucket: -1}\n") ==
          "x.yaml:3: gradient 'a': bucket must be a non-negative integer, got '-1'");
    CHECK(complaint_about("x.yaml", head + "- {name: a, elements: 1, bucket: b}\n") ==
          "x.yaml:3: gradient 'a': bucket must be a non-negative integer, got 'b'");
  }
  SECTION("a name twice or empty") {
    CHECK(
        complaint_about("x.yaml", head + "- {name: a, elements: 1}\n- {name: a, elements: 1}\n") ==
        "x.yaml:4: gradient 'a' is listed twice, first in line 3; names must be unique");
    CHECK(complaint_about("x.yaml", head + "- {name: '', elements: 1}\n") ==
          "x.yaml:3: a gradient's name must not be empty");
  }
  SECTION("an unknown dtype") {
    CHECK(complaint_about("x.yaml", head + "- {name: a, elements: 1, dtype: float15}\n") ==
          "x.yaml:3: gradient 'a': dtype: unknown dtype 'float15'; did you mean 'float16'? (known: "
          "float32, float16, bfloat16)");
  }
  SECTION("a truncated file") {
    CHECK_THAT(complaint_about("x.yaml", head + "- {name: a, elem"),
               Catch::StartsWith("x.yaml:3: not valid YAML: "));
  }
  SECTION("an empty file") {
    CHECK(complaint_about("x.yaml", "") == "x.yaml: is empty, a YAML document was expected");
  }
}

TEST_CASE("a model that is not there is refused with what there is") {
  CHECK_THAT(
      complaint([] { read_model("vgg18"); }),
      Catch::StartsWith("vgg18: neither a file nor a shipped model; did you mean 'vgg16'? (known: "
                        "bert_base, bert_large, "));
  CHECK(complaint([] { read_model("none/input.txt"); }) ==
        "none/input.txt: cannot be read: No such file or directory");
  CHECK_THAT(complaint([] { read_model(""); }), Catch::Contains("name of a file to read is empty"));
}

TEST_CASE("what computation keeps busy of its host's cores") {
  const std::string gradients =
      "gradients:\n"
      "- {name: c, elements: 4, ready: 1s, core_time: 2s, bucket: 0}\n"
      "- {name: b, elements: 4, ready: 2s, core_time: 1s, bucket: 0}\n"
      "- {name: a, elements: 8, ready: 4s, core_time: 9s, bucket: 1}\n";
  SECTION("core time over time, of what is handed over together, and at most all threads") {
    const Model model =
        read_content("m.yaml",
                     "name: m\nthreads: 4\nforward: 2s\nforward_core_time: 3s\noptimizer: 1s\n"
                     "optimizer_core_time: 1s\nmemory_traffic: 3GB/s\n" +
                         gradients);
    CHECK(model.threads == 4);
    CHECK(model.forward_cores == 1.5);
    CHECK(model.optimizer_cores == 1);
    CHECK(model.memory_traffic == 3e9);
    CHECK(model.gradients[0].cores == 1.5);  // 3 core-seconds in the 2 s until the bucket is full
    CHECK(model.gradients[1].cores == 1.5);
    CHECK(model.gradients[2].cores == 4);  // 9 core-seconds in 2 s, limited to 4 threads
    CHECK(before_backward_cores(model) == (2 * 1.5 + 1) / 3);
    CHECK(backward_cores(model) == (2 * 1.5 + 2 * 4) / 4);
  }
  SECTION("threads alone: none of them ever waits") {
    const Model model = read_content(
        "m.yaml",
        "name: m\nthreads: 3\nforward: 1s\ngradients:\n- {name: a, elements: 1, ready: 1s}\n");
    CHECK(before_backward_cores(model) == 3);
    CHECK(backward_cores(model) == 3);
  }
  SECTION("without threads nothing is kept busy, and core times mean nothing") {
    CHECK(read_content("m.yaml", "name: m\nforward: 1s\ngradients:\n- {name: a, elements: 1}\n")
              .forward_cores == 0);
    CHECK(complaint_about("m.yaml", "name: m\n" + gradients) ==
          "m.yaml:3: gradients[0].core_time: needs threads; give their number per rank, as "
          "threads: 8");
    CHECK_THAT(complaint_about("m.yaml",
                               "name: m\nforward_core_time: 1s\ngradients:\n"
                               "- {name: a, elements: 1}\n"),
               Catch::Matchers::StartsWith("m.yaml:2: forward_core_time: needs threads"));
  }
  SECTION("what DDP and the hook do themselves delays gradients by their bytes") {
    const Model model = read_content(
        "m.yaml",
        "name: m\nthreads: 2\noptimizer: 1s\nhook: {backward: 4s, after: 1s}\n" + gradients);
    CHECK(model.gradients[0].ready_s == 4);  // 2 s, and half of 4 s for half of the bytes
    CHECK(model.gradients[1].ready_s == 4);
    CHECK(model.gradients[2].ready_s == 8);
    CHECK(model.gradients[0].cores == (3 + 2) / 4.0);  // one thread copies for 2 s
    CHECK(model.gradients[2].cores == (2 * 2 + 2) / 4.0);
    CHECK(model.optimizer_s == 2);
    CHECK(model.optimizer_cores == 1.5);
  }
  SECTION("impossible") {
    CHECK_THAT(complaint_about("m.yaml", "name: m\nthreads: 0\n" + gradients),
               Catch::Matchers::StartsWith("m.yaml:2: threads must be a positive integer"));
    CHECK_THAT(complaint_about("m.yaml", "name: m\nthreads: 1\nhook: {backward: 1s}\n" + gradients),
               Catch::Matchers::Contains("after"));
    CHECK_THAT(complaint_about("m.yaml",
                               "name: m\nthreads: 1\nhook: {backward: 1s, after: "
                               "1e6s}\noptimizer: 1s\n" +
                                   gradients),
               Catch::Matchers::StartsWith("m.yaml:3: hook: a step computes for"));
  }
}
