#include "models/descriptions.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "tests/io/temporary_folder.hpp"

using namespace hipress::models;
using Catch::Contains;
using hipress::tests::complaint;
using hipress::tests::TemporaryFolder;

namespace {

const std::string kLlama =
    R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "vocab_size": 128256, "tie_word_embeddings": false})";

std::string safetensors(const std::string& header) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
  return bytes + header;
}

const std::string kHeader =
    R"({"__metadata__": {"format": "pt"}, "a.weight": {"dtype": "F32", "shape": [4, 3],)"
    R"( "data_offsets": [0, 48]}, "a.bias": {"dtype": "F32", "shape": [4], "data_offsets": [48, 64]}})";

}  // namespace

TEST_CASE("config.json makes the model of its sizes") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& text) {
    return read_description(folder.file("config.json", text)).value().model;
  };
  CHECK(total_elements(read(kLlama)) == 8'030'261'248);
  CHECK(total_elements(read(
            R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": null,
                "n_positions": 1024, "vocab_size": 50257})")) == 124'439'808);
  CHECK(total_elements(read(
            R"({"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864,
                "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
                "vocab_size": 151936, "tie_word_embeddings": true})")) == 494'032'768);
  CHECK(total_elements(read(
            R"({"model_type": "bert", "hidden_size": 768, "intermediate_size": 3072,
                "num_hidden_layers": 12, "num_attention_heads": 12, "vocab_size": 30522,
                "max_position_embeddings": 512})")) == 109'482'240);
  // Published numbers of parameters of Qwen3-8B, Whisper large-v3 and CLIP ViT-B/32.
  CHECK(total_elements(read(
            R"({"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288,
                "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
                "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": false})")) ==
        8'190'735'360);
  CHECK(total_elements(read(
            R"({"model_type": "whisper", "d_model": 1280, "encoder_layers": 32,
                "decoder_layers": 32, "encoder_attention_heads": 20, "encoder_ffn_dim": 5120,
                "num_mel_bins": 128, "vocab_size": 51866})")) == 1'543'490'560);
  CHECK(total_elements(read(
            R"({"model_type": "clip", "projection_dim": 512,
                "text_config": {"hidden_size": 512, "num_hidden_layers": 12, "vocab_size": 49408},
                "vision_config": {"hidden_size": 768, "num_hidden_layers": 12, "image_size": 224,
                                  "patch_size": 32}})")) == 151'277'313);
  // read_model() takes config.json, too.
  CHECK(total_elements(read_model(folder.file("llama.json", kLlama))) == 8'030'261'248);
}

TEST_CASE("safetensors tell shapes, and an index those of the files beside it") {
  const TemporaryFolder folder;
  const std::string file = folder.file("one.safetensors", safetensors(kHeader));
  const Model model = read_description(file).value().model;
  REQUIRE(model.gradients.size() == 2);
  CHECK(model.gradients[1].name == "a.weight");  // ready last in backward
  CHECK(model.gradients[1].shape == std::vector<std::int64_t>{4, 3});
  const std::string index =
      folder.file("model.safetensors.index.json",
                  R"({"metadata": {"total_size": 64}, "weight_map": {"a.weight": "one.safetensors",
                       "a.bias": "one.safetensors"}})");
  CHECK(total_elements(read_description(index).value().model) == 16);
  folder.file("config.json", kLlama);
  CHECK(total_elements(read_description(index).value().model) == 8'030'261'248);
}

TEST_CASE("listings of names and shapes are read as Python prints them") {
  const TemporaryFolder folder;
  for (const char* text :
       {"a.w torch.Size([4, 3])\nb torch.Size([])\n", "a.w (4, 3)\nb ()\n",
        "('a.w', torch.Size([4, 3]))\n('b', torch.Size([1]))\n", "a.w: [4, 3]\n\nb: [1]\n"}) {
    INFO(text);
    const Model model = read_description(folder.file("list.txt", text)).value().model;
    REQUIRE(model.gradients.size() == 2);
    CHECK(model.gradients[1].name == "a.w");
    CHECK(model.gradients[1].elements == 12);
    CHECK(model.gradients[0].elements == 1);
  }
  const Model table = read_description(folder.file("torchinfo.txt", R"(======
Layer (type:depth-idx)      Output Shape     Param #
======
Net                         [1, 10]          --
├─Linear: 1-1               [1, 20]          220
├─Sequential: 1-2           [1, 10]          --
│    └─Linear: 2-1          [1, 10]          1,210
======
Total params: 1,430
)"))
                          .value()
                          .model;
  CHECK(total_elements(table) == 1430);
}

TEST_CASE("damaged and unknown descriptions are refused with file, line and remedy") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& name, const std::string& text) {
    return complaint([&] { read_description(folder.file(name, text)); });
  };
  CHECK_THAT(refusal("config.json", R"({"model_type": "lama"})"),
             Contains("config.json: model_type 'lama'") && Contains("did you mean 'llama'?") &&
                 Contains("named_parameters()"));
  CHECK_THAT(refusal("config.json", R"({"model_type": "llama", "hidden_size": 4096})"),
             Contains("has no 'num_hidden_layers'"));
  CHECK_THAT(refusal("config.json", R"({"model_type": "llama", "num_hidden_layers": -2})"),
             Contains("must be a whole number from 1"));
  CHECK_THAT(refusal("config.json", "{\"model_type\": \"llama\",\n"), Contains("config.json:2"));
  CHECK_THAT(refusal("x.safetensors", safetensors(kHeader).substr(0, 60)),
             Contains("ends in its header"));
  CHECK_THAT(refusal("list.txt", "a.w (4, 3)\nhello\n"),
             Contains("list.txt:2: must be a name and a shape"));
  CHECK_THAT(refusal("list.txt", "a (4)\na (4)\n"),
             Contains("list.txt:2: tensor 'a' is there twice"));
  CHECK_THAT(refusal("list.txt", "a (0, 4)\n"),
             Contains("list.txt:1: tensor 'a' has a shape of none"));
  const TemporaryFolder alone;
  CHECK_THAT(
      complaint([&] {
        read_description(alone.file("index.json", R"({"weight_map": {"a": "gone.safetensors"}})"));
      }),
      Contains("names tensors without shapes") && Contains("config.json"));
  CHECK_FALSE(read_description(folder.file("input.txt", "fc6.bias,4096\n")).has_value());
  CHECK_FALSE(read_description(folder.file("x.txt", "print(1)\nimport torch\n")).has_value());
  CHECK_FALSE(read_description(folder.file("y.txt", "x = call (1)\n")).has_value());
  CHECK_FALSE(read_description(folder.file("trace.json", R"({"traceEvents": []})")).has_value());
  CHECK_FALSE(read_description("/nowhere/at/all").has_value());
}
