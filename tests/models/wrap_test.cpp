#include "models/wrap.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/io/temporary_folder.hpp"

using namespace hipress::models;
using Catch::Contains;
using hipress::tests::complaint;

namespace {

/// A transformer with 10 elements of embeddings, two blocks of 8 + 4, and a last matrix of 3.
Model transformer() {
  Model model;
  model.gradients = {{.name = "lm_head.weight", .elements = 3, .layer = "what a file said"}};
  for (const char* block : {"h.1", "h.0"}) {
    model.gradients.push_back({.name = std::string(block) + ".mlp.weight", .elements = 8});
    model.gradients.push_back({.name = std::string(block) + ".attn.c_attn.weight", .elements = 4});
  }
  model.gradients.push_back({.name = "wte.weight", .elements = 10});
  return model;
}

std::vector<std::string> layers(const std::string& rule) {
  Model model = transformer();
  wrap(rule, model);
  std::vector<std::string> names;
  for (const Gradient& gradient : model.gradients) names.push_back(gradient.layer);
  return names;
}

std::string refusal(const std::string& rule) {
  return complaint([&] { layers(rule); });
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("each module that a pattern matches is a layer, and the rest is the root's") {
  CHECK(layers("h.*") == Names{"(root)", "h.1", "h.1", "h.0", "h.0", "(root)"});
  CHECK(layers("h.1") == Names{"(root)", "h.1", "h.1", "(root)", "(root)", "(root)"});
  CHECK(layers("*") == Names{"lm_head", "h", "h", "h", "h", "wte"});
  CHECK(layers(" h.* , lm_* ") == Names{"lm_head", "h.1", "h.1", "h.0", "h.0", "(root)"});
}

TEST_CASE("a parameter is of the innermost module that a pattern matches") {
  const Names wanted = {"(root)", "h.1.mlp", "h.1", "h.0.mlp", "h.0", "(root)"};
  CHECK(layers("h.*, h.*.m*p") == wanted);
  CHECK(layers("h.*.m*p, h.*") == wanted);
}

TEST_CASE("patterns of many stars and names of many modules take no longer than others") {
  Model model;
  model.gradients = {{.name = "blocks." + std::string(5000, 'a') + ".weight", .elements = 1}};
  std::string stars = "blocks.*";
  for (int i = 0; i < 500; ++i) stars += "a*";
  wrap(stars + "a", model);
  CHECK(model.gradients[0].layer == "blocks." + std::string(5000, 'a'));
  CHECK_THROWS_WITH(wrap(stars + "b", model), Contains("no module is called"));
  model.gradients[0].name = "m";
  for (int i = 0; i < 100000; ++i) model.gradients[0].name += ".m";
  CHECK_THROWS_WITH(wrap("1", model), Contains("is in 100000 modules"));
}

TEST_CASE("a pattern is of modules, and names some") {
  for (const char* parameter : {"wte.weight", "h.*.mlp.*", "g.*", "H.*"}) {
    CHECK_THAT(refusal(parameter),
               Contains("`wrap`: no module is called '" + std::string(parameter) + "'") &&
                   Contains("such as 'lm_head.weight'"));
  }
  CHECK_THAT(refusal("h.*, g.*"), Contains("no module is called 'g.*'"));
  for (const char* wrong : {"", "h..*", "h.*,", ".", "h."}) {
    CHECK_THAT(refusal(wrong),
               Contains("must be patterns of module names, such as transformer.h.*"));
  }
}

TEST_CASE("a size wraps modules from the inside out, as FSDP1 does") {
  // mlp has 8 elements, enough for 5. attn has 4, too few, so a block has only these 4 besides mlp,
  // and is not wrapped either.
  CHECK(layers("5") == Names{"(root)", "h.1.mlp", "(root)", "h.0.mlp", "(root)", "wte"});
  // c_attn and mlp are wrapped. The block around them is not: nothing else is left in it.
  CHECK(layers("4") ==
        Names{"(root)", "h.1.mlp", "h.1.attn.c_attn", "h.0.mlp", "h.0.attn.c_attn", "wte"});
  // A block has 12 elements. The list of blocks has 24, but lists are never wrapped.
  CHECK(layers("12") == Names{"(root)", "h.1", "h.1", "h.0", "h.0", "(root)"});
  CHECK(layers("0.012k") == layers("12"));
  CHECK(layers("1e1") == Names{"(root)", "h.1", "h.1", "h.0", "h.0", "wte"});
}

TEST_CASE("a size that wraps nothing is refused, and so is one that is none") {
  CHECK_THAT(refusal("13"), Contains("`wrap` 13 elements: no module has that many, the largest "
                                     "that can be wrapped has 12; give fewer"));
  CHECK_THAT(refusal("0"), Contains("`wrap` must be at least one element"));
  CHECK_THAT(refusal("0, 2"), Contains("no module is called '0'"));
  CHECK_THAT(refusal("0.conv"), Contains("no module is called '0.conv'"));
  CHECK_THAT(refusal("1e30"), Contains("at most"));
  CHECK_THAT(refusal("10MB"), Contains("a number of elements such as 100M"));
  CHECK_THAT(refusal("5 layers"), Contains("a number of elements such as 100M"));
}
