#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "io/file.hpp"
#include "plans/plan_file.hpp"
#include "tests/plans/small_model.hpp"

using namespace hipress;
using namespace hipress::plans;
using namespace hipress::tests;

TEST_CASE("SeCoPa's published plans read, and write back byte for byte") {
  const models::Model model =
      models::read_model(HIPRESS_SOURCE_DIR "/examples/vgg19_gradients.txt");
  const TemporaryFolder folder;
  for (const char* topology : {"PS", "RING"}) {
    for (const std::uint32_t nodes : {4u, 8u, 16u}) {
      const std::string path = std::string(HIPRESS_SOURCE_DIR "/tests/data/secopa_vgg19_") +
                               topology + "_" + std::to_string(nodes) + ".txt";
      INFO(path);
      const ResolvedPlan resolved = resolve_plan(path, {model, topology, nodes});
      CHECK(resolved.plan.nodes == nodes);
      CHECK(resolved.plan.decisions.size() == 38);
      write_plan_text(folder.path("plan.txt"), model, resolved.plan);
      CHECK(io::read_file(folder.path("plan.txt")) == io::read_file(path));
    }
  }
}

TEST_CASE("a plan for the gradients in another order is matched by name") {
  // The built-in model vgg19 lists the gradients in backward order, the plan in forward order.
  const models::Model model = models::read_model("vgg19");
  const std::string path = HIPRESS_SOURCE_DIR "/tests/data/secopa_vgg19_PS_16.txt";
  const ResolvedPlan resolved = resolve_plan(path, {model, "ps", 16});
  // A line of the plan: vgg0_dense0_weight,102760448,y,K.
  for (const std::string& line : io::read_lines(path)) {
    const auto fields = io::split_fields(line);
    for (std::size_t g = 0; g < model.gradients.size(); ++g) {
      if (model.gradients[g].name != fields[0]) continue;
      CHECK(algorithm_of(resolved, g) == (fields[2] == "y" ? "onebit" : ""));
      CHECK(std::to_string(partitions_of(resolved, g)) == fields[3]);
    }
  }
}

TEST_CASE("every form of a line") {
  const models::Model model = small_model();
  const TemporaryFolder folder;
  SECTION("the seed's three fields, and four") {
    const auto resolved =
        resolve_plan(folder.file("p", "a,n,2\nb,300000,y,3\nc , 50 , y , 1 \n"), {model, "ps", 4});
    CHECK(algorithm_of(resolved, 0) == "");
    CHECK(partitions_of(resolved, 0) == 2);
    CHECK(algorithm_of(resolved, 1) == "onebit");
    CHECK(partitions_of(resolved, 1) == 3);
    CHECK(algorithm_of(resolved, 2) == "onebit");
    CHECK(resolved.codecs.size() == resolved.plan.algorithms.size());
  }
  SECTION("a fifth names the algorithm, a y without it means the context's") {
    const auto resolved =
        resolve_plan(folder.file("p", "a,100,y,1,fp16\nb,300000,y,1,tbq(tau=0.25)\nc,50,y,1\n"),
                     {model, "ring", 4, "terngrad"});
    CHECK(algorithm_of(resolved, 0) == "fp16");
    CHECK(algorithm_of(resolved, 1) == "tbq(tau=0.25)");
    CHECK(algorithm_of(resolved, 2) == "terngrad");
    REQUIRE(resolved.codecs.size() == 3);
    CHECK(resolved.plan.algorithms[0].half_precision);
    CHECK(resolved.plan.algorithms[0].encoded_bytes(1000) ==
          resolved.codecs[0]->encoded_bytes(1000));
  }
  SECTION("CRLF, blank lines and a missing final newline") {
    const auto resolved = resolve_plan(
        folder.file("p", "a,100,n,1\r\n\r\nb,300000,n,1\r\nc,50,n,2"), {model, "ps", 4});
    CHECK(partitions_of(resolved, 2) == 2);
  }
  SECTION("no lines for no gradients") {
    const models::Model empty;
    CHECK(resolve_plan(folder.file("p", ""), {empty, "ps", 4}).plan.decisions.empty());
  }
  SECTION("the largest K") {
    const auto resolved =
        resolve_plan(folder.file("p", "a,n,1048576\nb,n,1\nc,n,1\n"), {model, "ps", 4});
    CHECK(partitions_of(resolved, 0) == 1 << 20);
  }
}

TEST_CASE("bad plans are refused with file, line and gradient") {
  const models::Model model = small_model();
  const PlanContext context{model, "ps", 4};
  const auto about = [&](const std::string& content) {
    return complaint_about_plan("p.txt", content, context);
  };
  SECTION("too few fields") {
    CHECK(about("a,n\n") ==
          "p.txt:1: a line must be name,elements,y|n,K[,algorithm] or name,y|n,K, got 'a,n'");
  }
  SECTION("neither y nor n") {
    CHECK(about("a,100,n,1\nb,300000,yes,1\n") ==
          "p.txt:2: gradient 'b': compression must be y or n, got 'yes'; a line is "
          "name,elements,y|n,K[,algorithm] or name,y|n,K");
    CHECK(about("a,100,1\n") ==
          "p.txt:1: gradient 'a': compression must be y or n, got '100'; a line is "
          "name,elements,y|n,K[,algorithm] or name,y|n,K");
  }
  SECTION("K = 0") {
    CHECK(about("a,100,n,0\n") == "p.txt:1: gradient 'a': K must be a positive integer, got '0'");
  }
  SECTION("K below 0, too large or no number") {
    CHECK(about("a,n,-1\n") == "p.txt:1: gradient 'a': K must be a positive integer, got '-1'");
    CHECK(about("a,n,1048577\n") ==
          "p.txt:1: gradient 'a': K must be at most 1048576, got '1048577'");
    CHECK(about("a,n,two\n") == "p.txt:1: gradient 'a': K must be a positive integer, got 'two'");
  }
  SECTION("no name") {
    CHECK(about(",100,n,1\n") == "p.txt:1: a gradient's name must not be empty");
  }
  SECTION("no elements") {
    CHECK(about("a,-1,n,1\n") ==
          "p.txt:1: gradient 'a': elements must be a positive integer, got '-1'");
  }
  SECTION("a foreign gradient") {
    CHECK(
        about("a,100,n,1\nfc6.weight,5,n,1\n") ==
        "p.txt:2: gradient 'fc6.weight' is not in model 'small', so the plan was made for another "
        "input");
  }
  SECTION("other elements") {
    CHECK(about("a,101,n,1\n") ==
          "p.txt:1: gradient 'a' has 101 elements in the plan but 100 in model 'small'");
  }
  SECTION("a gradient twice") {
    CHECK(about("a,100,n,1\nb,300000,n,1\na,100,n,1\n") ==
          "p.txt:3: gradient 'a' is listed twice, first in line 1");
  }
  SECTION("gradients that are missing") {
    CHECK(about("a,100,n,1\n") ==
          "p.txt: gradient 'b' of model 'small' is missing (2 of 3 are); plan this model anew");
    CHECK(about("") ==
          "p.txt: gradient 'a' of model 'small' is missing (3 of 3 are); plan this model anew");
  }
  SECTION("an unknown algorithm") {
    CHECK_THAT(about("a,100,y,1,onebyte\n"),
               Catch::StartsWith("p.txt:1: gradient 'a' cannot be compressed: ") &&
                   Catch::Contains("onebyte") && Catch::Contains("onebit"));
  }
  SECTION("an algorithm for a raw gradient") {
    CHECK(
        about("a,100,n,1,onebit\n") ==
        "p.txt:1: gradient 'a': is not compressed (n) and takes no algorithm; drop it or write y");
  }
  SECTION("an empty fifth field") {
    CHECK(about("a,100,y,1,\n") ==
          "p.txt:1: gradient 'a': the fifth field, the algorithm, is empty");
  }
  SECTION("NUL bytes") {
    CHECK(about(std::string("a,100,n,1\n\0", 11)) ==
          "p.txt:2: byte 0x00 at column 1 is no text; give a UTF-8 text file");
  }
}

TEST_CASE("a context that makes no sense is refused") {
  const models::Model model = small_model();
  CHECK(complaint([&] {
          resolve_plan("none", {model, "ps", 0});
        }) == "the number of nodes must be at least 1, got 0");
  CHECK_THROWS_WITH(resolve_plan("none", {model, "star", 4}), Catch::Contains("star"));
  CHECK_THAT(complaint([&] {
               resolve_plan("all", {model, "ps", 4, "onebyte"});
             }),
             Catch::Contains("onebyte"));
}

TEST_CASE("a text plan names algorithms only if it mixes them") {
  const models::Model model = small_model();
  const TemporaryFolder folder;
  const auto rewritten = [&](const std::string& content) {
    const auto resolved = resolve_plan(folder.file("p", content), {model, "ps", 4});
    write_plan_text(folder.path("out"), model, resolved.plan);
    return io::read_file(folder.path("out"));
  };
  CHECK(rewritten("a,n,1\nb,y,4\nc,y,2\n") == "a,100,n,1\nb,300000,y,4\nc,50,y,2\n");
  CHECK(rewritten("a,100,y,1,fp16\nb,n,4\nc,50,y,2,fp16\n") ==
        "a,100,y,1\nb,300000,n,4\nc,50,y,2\n");
  CHECK(rewritten("a,100,y,1,fp16\nb,n,4\nc,y,2\n") ==
        "a,100,y,1,fp16\nb,300000,n,4\nc,50,y,2,onebit\n");
}

TEST_CASE("a name that a text plan cannot hold is refused, and no file left") {
  models::Model model = small_model();
  model.gradients[1].name = "b,c";
  const TemporaryFolder folder;
  const auto resolved = resolve_plan("none", {model, "ps", 4});
  CHECK(complaint([&] { write_plan_text(folder.path("out"), model, resolved.plan); }) ==
        "gradient 'b,c' has a comma, a line end, quotes at its beginning or an outer blank in its "
        "name, which a text plan cannot hold; write the plan to a .yaml file");
  CHECK(folder.count() == 0);
}
