#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "models/shape.hpp"

using namespace hipress::models;

namespace {

constexpr double kMiB = 1024 * 1024;

/// Published and measured facts of a model, with which its file must agree.
struct Expected {
  std::string name;
  std::size_t gradients;
  double fp32_mib;     ///< size of all gradients together
  double largest_mib;  ///< size of the largest gradient
  double backward_us;  ///< as measured, or derived from measurements
};

const std::vector<Expected> kExpected = {
    {"bert_base", 199, 415.41, 89.44, 66335},  {"bert_large", 391, 1274.49, 119.25, 204171},
    {"gpt2", 148, 474.70, 147.24, 211329},     {"lstm", 10, 327.97, 190.42, 71450},
    {"resnet50", 161, 97.49, 9.00, 63533},     {"transformer", 185, 234.08, 65.84, 78506},
    {"ugatit", 148, 2558.75, 1024.00, 434241}, {"ugatit_light", 148, 511.25, 128.00, 412879},
    {"vgg16", 32, 527.79, 392.00, 85310},      {"vgg19", 38, 548.05, 392.00, 99687},
};

double mib(std::int64_t elements) { return static_cast<double>(elements) * 4 / kMiB; }

/// Time in microseconds between each gradient's ready time and the previous one's, by name.
std::map<std::string, double> intervals_us(const Model& model) {
  std::map<std::string, double> intervals;
  double before = 0;
  for (const Gradient& gradient : model.gradients) {
    intervals[gradient.name] = (gradient.ready_s - before) * 1e6;
    before = gradient.ready_s;
  }
  return intervals;
}

}  // namespace

TEST_CASE("the shipped models are those that are expected") {
  std::vector<std::string> names;
  for (const Expected& expected : kExpected) names.push_back(expected.name);
  CHECK(shipped_models() == names);
}

TEST_CASE(
    "shipped models have the published number and size of gradients, and the measured backward") {
  for (const Expected& expected : kExpected) {
    INFO(expected.name);
    const Model model = read_model(expected.name);
    std::int64_t largest = 0;
    for (const Gradient& gradient : model.gradients) {
      largest = std::max(largest, gradient.elements);
    }
    CHECK(model.name == expected.name);
    CHECK(model.gradients.size() == expected.gradients);
    // The published figures are rounded to two decimals.
    CHECK(mib(total_elements(model)) == Approx(expected.fp32_mib).margin(0.005).epsilon(0));
    CHECK(mib(largest) == Approx(expected.largest_mib).margin(0.005).epsilon(0));
    CHECK(backward_s(model) * 1e6 == Approx(expected.backward_us).margin(0.5).epsilon(0));
  }
}

TEST_CASE("shipped models list gradients in backward order and say where their times come from") {
  for (const std::string& name : shipped_models()) {
    INFO(name);
    const Model model = read_model(name);
    CHECK(
        std::is_sorted(model.gradients.begin(), model.gradients.end(),
                       [](const Gradient& a, const Gradient& b) { return a.ready_s < b.ready_s; }));
    CHECK(backward_s(model) > 0);
    // A forward pass has half of backward's FLOPs; the file has three decimals of a millisecond.
    CHECK(model.forward_s == Approx(backward_s(model) / 2).margin(1e-6).epsilon(0));
    const bool says_measured = model.source.find("times measured") != std::string::npos;
    const bool says_derived = model.source.find("derived, not measured") != std::string::npos;
    CHECK(says_measured != says_derived);
    CHECK_FALSE(model.unit.empty());
  }
}

TEST_CASE("shipped models have the shapes of their architectures") {
  for (const std::string& name : shipped_models()) {
    INFO(name);
    for (const Gradient& gradient : read_model(name).gradients) {
      INFO(gradient.name);
      CHECK_FALSE(gradient.shape.empty());
      CHECK(elements_of(shape_of(gradient)) == gradient.elements);
      const bool is_bias = gradient.name.ends_with("bias");
      CHECK((!is_bias || gradient.shape.size() == 1));
    }
  }
  using Shape = std::vector<std::int64_t>;
  const auto shape = [](const char* model, const std::string& gradient) -> Shape {
    for (const Gradient& one : read_model(model).gradients) {
      if (one.name == gradient) return one.shape;
    }
    return {};
  };
  CHECK(shape("resnet50", "conv1.weight") == Shape{64, 3, 7, 7});
  CHECK(shape("resnet50", "layer3.0.downsample.0.weight") == Shape{1024, 512, 1, 1});
  CHECK(shape("resnet50", "fc.weight") == Shape{1000, 2048});
  CHECK(shape("vgg16", "classifier.0.weight") == Shape{4096, 25088});
  CHECK(shape("vgg19", "vgg0_conv8_weight") == Shape{512, 256, 3, 3});
  CHECK(shape("bert_base", "bert.embeddings.word_embeddings.weight") == Shape{30528, 768});
  CHECK(shape("bert_large", "bert.encoder.layer.0.output.dense.weight") == Shape{1024, 4096});
  CHECK(shape("gpt2", "transformer.wte.weight") == Shape{50257, 768});
  CHECK(shape("gpt2", "transformer.h.0.attn.c_attn.weight") == Shape{768, 2304});  // [in, out]
  CHECK(shape("lstm", "rnns.0.weight_hh_l0") == Shape{6000, 1500});
  CHECK(shape("transformer", "encoder.layer.0.ffn.inner.weight") == Shape{2048, 512});
  CHECK(shape("ugatit", "genA2B.FC.0.weight") == Shape{256, 1048576});
  CHECK(shape("ugatit", "genA2B.UpBlock2.3.rho") == Shape{1, 128, 1, 1});
  CHECK(shape("ugatit_light", "genA2B.FC.0.weight") == Shape{256, 256});
}

TEST_CASE("VGG19 has SeCoPa's gradients, backwards") {
  const Model model = read_model("vgg19");
  const Model text = read_model(HIPRESS_SOURCE_DIR "/examples/vgg19_gradients.txt");
  std::map<std::string, std::int64_t> elements;
  for (const Gradient& gradient : text.gradients) elements[gradient.name] = gradient.elements;
  for (const Gradient& gradient : model.gradients) {
    INFO(gradient.name);
    REQUIRE(elements.count(gradient.name) == 1);
    CHECK(gradient.elements == elements[gradient.name]);
  }
  CHECK(model.gradients.front().name == "vgg0_dense2_bias");
  CHECK(model.gradients.back().name == "vgg0_conv0_weight");
}

TEST_CASE("VGG19's times are VGG16's and those of three convolutions more") {
  const Model vgg16 = read_model("vgg16");
  const Model vgg19 = read_model("vgg19");
  auto measured = intervals_us(vgg16);
  auto derived = intervals_us(vgg19);
  // VGG19 has one more inner convolution than VGG16 in each of stages 3, 4 and 5. It takes as long
  // as VGG16's inner one of the same stage: features.12, .19 and .26.
  double more_us = 0;
  for (const char* layer : {"features.12", "features.19", "features.26"}) {
    more_us += measured[std::string(layer) + ".bias"] + measured[std::string(layer) + ".weight"];
  }
  CHECK(backward_s(vgg19) * 1e6 ==
        Approx(backward_s(vgg16) * 1e6 + more_us).margin(0.1).epsilon(0));
  // The first dense layer is the same in both models. VGG19's conv10 is an inner layer of stage 4,
  // as features.19 of VGG16 is.
  CHECK(derived["vgg0_dense0_weight"] == Approx(measured["classifier.0.weight"]).margin(0.1));
  CHECK(derived["vgg0_conv10_weight"] == Approx(measured["features.19.weight"]).margin(0.1));
  CHECK(derived["vgg0_conv9_weight"] == Approx(measured["features.19.weight"]).margin(0.1));
}

TEST_CASE("the Transformer's times follow its FLOPs and the published speed") {
  const Model model = read_model("transformer");
  // The published speed is 139131 tokens/s on 8 V100. Forward and backward together take the time
  // of 2048 tokens on one of them.
  CHECK(model.forward_s + backward_s(model) == Approx(2048 / (139131.0 / 8)).epsilon(1e-4));
  // A feed-forward matrix (512 x 2048) has 4 times the FLOPs of an attention matrix (512 x 512).
  auto took = intervals_us(model);
  CHECK(
      took["encoder.layer.3.ffn.inner.weight"] ==
      Approx(4 * took["encoder.layer.3.self_attention.key.weight"]).margin(3));  // rounded to 1 us
}

TEST_CASE("UGATIT's light variant differs in two gradients") {
  const Model full = read_model("ugatit");
  const Model light = read_model("ugatit_light");
  std::vector<std::string> different;
  for (std::size_t g = 0; g < full.gradients.size(); ++g) {
    CHECK(full.gradients[g].name == light.gradients[g].name);
    if (full.gradients[g].elements != light.gradients[g].elements) {
      different.push_back(full.gradients[g].name);
      CHECK(light.gradients[g].elements == 256 * 256);
    }
  }
  CHECK(different == std::vector<std::string>{"genB2A.FC.0.weight", "genA2B.FC.0.weight"});
  CHECK(backward_s(light) < backward_s(full));
}
