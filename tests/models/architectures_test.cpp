#include "models/architectures.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.hpp"
#include "models/shape.hpp"

using namespace hipress::models;

namespace {

struct Published {
  const char* name;
  std::int64_t parameters;
};

/// Numbers of parameters from Hugging Face's and torchvision's model pages, and from the papers'
/// code. The next table has numbers that are published in millions only: NVIDIA's of
/// Transformer-XL, and MosaicML's of the smaller MPTs.
constexpr Published kPublished[] = {
    {"llama2_7b", 6'738'415'616},     {"llama2_13b", 13'015'864'320},
    {"llama2_70b", 68'976'648'192},   {"llama3_8b", 8'030'261'248},
    {"llama3_70b", 70'553'706'496},   {"llama3_405b", 405'853'388'800},
    {"qwen2.5_0.5b", 494'032'768},    {"qwen2.5_1.5b", 1'543'714'304},
    {"qwen2.5_3b", 3'085'938'688},    {"qwen2.5_7b", 7'615'616'512},
    {"qwen2.5_14b", 14'770'033'664},  {"qwen2.5_32b", 32'763'876'352},
    {"qwen2.5_72b", 72'706'203'648},  {"mistral_7b", 7'241'732'096},
    {"mixtral_8x7b", 46'702'792'704}, {"gpt2_medium", 354'823'168},
    {"gpt2_large", 774'030'080},      {"gpt2_xl", 1'557'611'200},
    {"gpt_neox_20b", 20'554'567'680}, {"mpt_7b", 6'649'286'656},
    {"t5_small", 60'506'624},         {"t5_base", 222'903'552},
    {"t5_large", 737'668'096},        {"t5_3b", 2'851'598'336},
    {"t5_11b", 11'307'321'344},       {"vit_b_16", 86'567'656},
    {"vit_l_16", 304'326'632},        {"vit_h_14", 632'045'800},
    {"clip_vit_b_32", 151'277'313},   {"clip_vit_l_14", 427'616'513},
    {"whisper_tiny", 37'760'640},     {"whisper_base", 72'593'920},
    {"whisper_small", 241'734'912},   {"whisper_medium", 763'857'920},
    {"whisper_large", 1'543'304'960}, {"resnet18", 11'689'512},
    {"resnet34", 21'797'672},         {"resnet101", 44'549'160},
    {"resnet152", 60'192'808},        {"resnext50_32x4d", 25'028'904},
    {"resnext101_32x8d", 88'791'336}, {"resnext101_64x4d", 83'455'272},
    {"wide_resnet50_2", 68'883'240},  {"wide_resnet101_2", 126'886'696},
    {"efficientnet_b0", 5'288'548},   {"efficientnet_b1", 7'794'184},
    {"efficientnet_b2", 9'109'994},   {"efficientnet_b3", 12'233'232},
    {"efficientnet_b4", 19'341'616},  {"efficientnet_b5", 30'389'784},
    {"efficientnet_b6", 43'040'704},  {"efficientnet_b7", 66'347'960},
    {"sd15_unet", 859'520'964},       {"dlrm_kaggle", 540'201'232 + 475'985},
};

/// Architectures with the name of a shipped file, which read_model() reads instead.
constexpr Published kBesideFiles[] = {{"gpt2", 124'439'808},
                                      {"resnet50", 25'557'032},
                                      {"bert_base", 109'482'240},
                                      {"bert_large", 335'141'888}};

struct Rounded {
  const char* name;
  double millions;
};
constexpr Rounded kRounded[] = {{"transformer_xl_base", 192},
                                {"transformer_xl_large", 285},
                                {"mpt_125m", 125},
                                {"mpt_350m", 355},
                                {"mpt_760m", 760},
                                {"mpt_1b", 1315},
                                {"mpt_3b", 2650},
                                {"mpt_13b", 12850},
                                {"mpt_30b", 29957},
                                {"mpt_70b", 64900},
                                {"ncf", 31.8}};

double forward_flops(const Model& model) {
  double flops = 0;
  for (const Gradient& gradient : model.gradients) flops += gradient.work.flops;
  return flops;
}

}  // namespace

TEST_CASE("named architectures have the published numbers of parameters") {
  for (const Published& row : kPublished) {
    INFO(row.name);
    const Model model = read_model(row.name);
    CHECK(total_elements(model) == row.parameters);
    CHECK(model.name == row.name);
  }
  for (const Published& row : kBesideFiles) {
    INFO(row.name);
    CHECK(total_elements(named_architecture(row.name).value()) == row.parameters);
  }
  for (const Rounded& row : kRounded) {
    INFO(row.name);
    CHECK(static_cast<double>(total_elements(read_model(row.name))) / 1e6 ==
          Approx(row.millions).epsilon(0.011));
  }
  CHECK(architecture_names().size() ==
        std::size(kPublished) + std::size(kBesideFiles) + std::size(kRounded));
}

TEST_CASE("an architecture's gradients have unique names, shapes and an order") {
  for (const std::string_view name : architecture_names()) {
    INFO(name);
    const Model model = named_architecture(name).value();
    std::vector<std::string> names;
    for (const Gradient& gradient : model.gradients) {
      names.push_back(gradient.name);
      CHECK(elements_of(gradient.shape) == gradient.elements);
    }
    std::ranges::sort(names);
    CHECK(std::ranges::adjacent_find(names) == names.end());
    CHECK(forward_flops(model) > 0);
    CHECK(backward_s(model) == 0);
  }
  // Gradients are in the order of backward: the tensor that forward uses last is first.
  CHECK(read_model("llama3_8b").gradients.front().name == "lm_head.weight");
  CHECK(read_model("llama3_8b").gradients.back().name == "model.embed_tokens.weight");
}

TEST_CASE("work is that of the published multiplications") {
  // Published numbers of multiplications per image, in thousand millions: those of EfficientNet B0
  // from its paper, all others from torchvision's pages.
  const auto giga_macs = [](const char* name) {
    return forward_flops(named_architecture(name).value()) / 2e9;
  };
  CHECK(giga_macs("resnet50") == Approx(4.09).epsilon(0.01));
  CHECK(giga_macs("resnet101") == Approx(7.80).epsilon(0.01));
  CHECK(giga_macs("wide_resnet101_2") == Approx(22.75).epsilon(0.01));
  CHECK(giga_macs("efficientnet_b0") == Approx(0.386).epsilon(0.02));
  CHECK(giga_macs("efficientnet_b7") == Approx(37.75).epsilon(0.02));
  CHECK(giga_macs("vit_b_16") == Approx(17.56).epsilon(0.02));
  CHECK(giga_macs("vit_l_16") == Approx(61.55).epsilon(0.02));
  // A token is multiplied by every parameter except the embedding's. In Mixtral, 2 of 8 experts are
  // active, which makes 12.9 thousand million active parameters.
  CHECK(giga_macs("llama3_8b") == Approx(8.03 - 0.525).epsilon(0.001));
  CHECK(giga_macs("mixtral_8x7b") == Approx(12.9 - 0.131).epsilon(0.01));
}

TEST_CASE("hyphens stand for underscores in names, and shipped models go before architectures") {
  CHECK(read_model("llama3-8b").name == "llama3_8b");
  CHECK(backward_s(read_model("resnet50")) > 0);
}

TEST_CASE("an unknown model is refused with names of architectures near it") {
  CHECK_THROWS_WITH(read_model("lama3_8b"), Catch::Contains("did you mean 'llama3_8b'?"));
}
