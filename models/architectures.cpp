#include "models/architectures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "models/architecture_builder.hpp"
#include "models/shape.hpp"

namespace hipress::models {
namespace {

using Builder = ArchitectureBuilder;
using Shape = Builder::Shape;

int head_width(const Sizes& sizes) {
  return sizes.head_width > 0 ? sizes.head_width : sizes.width / std::max(1, sizes.heads);
}

int decoder_layers(const Sizes& sizes) {
  return sizes.decoder_layers > 0 ? sizes.decoder_layers : sizes.layers;
}

constexpr double kUsualPositions = 2048;

double usual_positions(const Sizes& sizes) {
  return sizes.positions > 0 ? sizes.positions : kUsualPositions;
}

}  // namespace

Model llama(const Sizes& sizes) {
  Builder all;
  const int width = sizes.width, queries = sizes.heads * head_width(sizes);
  const int keys = (sizes.key_heads > 0 ? sizes.key_heads : sizes.heads) * head_width(sizes);
  all.embedding("model.embed_tokens.weight", sizes.words, width, sizes.tied);
  for (int i = 0; i < sizes.layers; ++i) {
    const std::string name = fmt::format("model.layers.{}", i);
    all.norm(name + ".input_layernorm", width, false);
    all.linear(name + ".self_attn.q_proj", queries, width, sizes.bias);
    all.linear(name + ".self_attn.k_proj", keys, width, sizes.bias);
    all.linear(name + ".self_attn.v_proj", keys, width, sizes.bias);
    for (const char* part : {".self_attn.q_norm", ".self_attn.k_norm"}) {
      if (sizes.norms_heads) all.norm(name + part, head_width(sizes), false, sizes.heads);
    }
    all.linear(name + ".self_attn.o_proj", width, queries, false);
    all.attention(queries, true);
    all.values(2.0 * width + 2.0 * (queries + keys));  // the sum, and rotations
    all.norm(name + ".post_attention_layernorm", width, false);
    const bool mixture = sizes.experts > 0;
    if (mixture) all.linear(name + ".block_sparse_moe.gate", sizes.experts, width, false);
    const double uses = mixture ? static_cast<double>(sizes.active) / sizes.experts : 1;
    for (int expert = 0; expert < std::max(1, sizes.experts); ++expert) {
      const std::string part =
          mixture ? fmt::format("{}.block_sparse_moe.experts.{}", name, expert) : name + ".mlp";
      all.linear(part + (mixture ? ".w1" : ".gate_proj"), sizes.inner, width, false, uses);
      all.linear(part + (mixture ? ".w3" : ".up_proj"), sizes.inner, width, false, uses);
      all.linear(part + (mixture ? ".w2" : ".down_proj"), width, sizes.inner, false, uses);
      all.values(uses * (3.0 * sizes.inner + 2.0 * width));
    }
  }
  all.norm("model.norm", width, false);
  if (!sizes.tied) {
    all.linear("lm_head", sizes.words, width, false);
    all.values(3.0 * sizes.words);  // the loss
  }
  return all.take("tokens", kUsualPositions);
}

namespace {

/// Names of the tensors of a block like GPT-2's; `attention` names the matrix of queries, keys and
/// values.
struct BlockNames {
  std::string_view norm1, norm2, attention, output, up, down;
};

void block(Builder& all, const std::string& name, const BlockNames& names, const Sizes& sizes,
           bool bias, bool transposed) {
  const int width = sizes.width, inner = sizes.inner;
  const auto matrix = [&](std::string_view part, int out, int in) {
    // GPT-2's matrices are [in, out].
    const std::string called = fmt::format("{}.{}", name, part);
    all.linear(called, transposed ? in : out, transposed ? out : in, false);
    if (bias) all.tensor(called + ".bias", {out});
  };
  all.norm(fmt::format("{}.{}", name, names.norm1), width, bias);
  matrix(names.attention, 3 * width, width);
  matrix(names.output, width, width);
  all.attention(width, true);
  all.values(2.0 * width);
  all.norm(fmt::format("{}.{}", name, names.norm2), width, bias);
  matrix(names.up, inner, width);
  matrix(names.down, width, inner);
  all.values(2.0 * inner + 2.0 * width);
}

}  // namespace

Model gpt2(const Sizes& sizes) {
  Builder all;
  all.embedding("transformer.wte.weight", sizes.words, sizes.width, true);
  all.embedding("transformer.wpe.weight", sizes.positions, sizes.width);
  for (int i = 0; i < sizes.layers; ++i) {
    block(all, fmt::format("transformer.h.{}", i),
          {"ln_1", "ln_2", "attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"}, sizes, true,
          true);
  }
  all.norm("transformer.ln_f", sizes.width);
  return all.take("tokens", usual_positions(sizes));
}

Model gpt_neox(const Sizes& sizes) {
  Builder all;
  all.embedding("gpt_neox.embed_in.weight", sizes.words, sizes.width);
  for (int i = 0; i < sizes.layers; ++i) {
    block(all, fmt::format("gpt_neox.layers.{}", i),
          {"input_layernorm", "post_attention_layernorm", "attention.query_key_value",
           "attention.dense", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"},
          sizes, true, false);
  }
  all.norm("gpt_neox.final_layer_norm", sizes.width);
  all.linear("embed_out", sizes.words, sizes.width, false);
  all.values(3.0 * sizes.words);
  return all.take("tokens", kUsualPositions);
}

Model mpt(const Sizes& sizes) {
  Builder all;
  all.embedding("transformer.wte.weight", sizes.words, sizes.width, true);
  if (sizes.positions > 0) {
    all.embedding("transformer.wpe.weight", sizes.positions, sizes.width);
  }
  for (int i = 0; i < sizes.layers; ++i) {
    block(all, fmt::format("transformer.blocks.{}", i),
          {"norm_1", "norm_2", "attn.Wqkv", "attn.out_proj", "ffn.up_proj", "ffn.down_proj"}, sizes,
          sizes.bias, false);
  }
  all.norm("transformer.norm_f", sizes.width, sizes.bias);
  return all.take("tokens", kUsualPositions);
}

Model bert(const Sizes& sizes) {
  Builder all;
  const int width = sizes.width;
  // The head that predicts masked words multiplies by the embedding.
  all.embedding("embeddings.word_embeddings.weight", sizes.words, width);
  all.embedding("embeddings.position_embeddings.weight", sizes.positions, width);
  all.embedding("embeddings.token_type_embeddings.weight", 2, width);
  all.norm("embeddings.LayerNorm", width);
  for (int i = 0; i < sizes.layers; ++i) {
    const std::string name = fmt::format("encoder.layer.{}", i);
    for (const char* part : {"query", "key", "value"}) {
      all.linear(fmt::format("{}.attention.self.{}", name, part), width, width);
    }
    all.linear(name + ".attention.output.dense", width, width);
    all.attention(width, false);
    all.norm(name + ".attention.output.LayerNorm", width);
    all.values(4.0 * width);  // dropout and the sum
    all.linear(name + ".intermediate.dense", sizes.inner, width);
    all.values(2.0 * sizes.inner);
    all.linear(name + ".output.dense", width, sizes.inner);
    all.norm(name + ".output.LayerNorm", width);
    all.values(4.0 * width);
  }
  all.tensor("pooler.dense.weight", {width, width});  // used by one token of each sequence
  all.tensor("pooler.dense.bias", {width});
  return all.take("tokens", usual_positions(sizes));
}

Model t5(const Sizes& sizes) {
  Builder all;
  const int width = sizes.width, attended = sizes.heads * head_width(sizes);
  constexpr int kDistances = 32;
  all.embedding("shared.weight", sizes.words, width, true);
  for (const bool decodes : {false, true}) {
    for (int i = 0; i < (decodes ? decoder_layers(sizes) : sizes.layers); ++i) {
      const std::string name = fmt::format("{}.block.{}", decodes ? "decoder" : "encoder", i);
      int part = 0;
      const auto attends = [&](std::string_view what) {
        const std::string called = fmt::format("{}.layer.{}.{}", name, part, what);
        for (const char* matrix : {".q", ".k", ".v"}) {
          all.linear(called + matrix, attended, width, false);
        }
        all.linear(called + ".o", width, attended, false);
        all.attention(attended, decodes && part == 0);
        if (i == 0 && part == 0) {
          all.tensor(called + ".relative_attention_bias.weight", {kDistances, sizes.heads});
        }
        all.norm(fmt::format("{}.layer.{}.layer_norm", name, part++), width, false);
      };
      attends("SelfAttention");
      if (decodes) attends("EncDecAttention");
      const std::string feed = fmt::format("{}.layer.{}", name, part);
      all.linear(feed + ".DenseReluDense.wi", sizes.inner, width, false);
      all.linear(feed + ".DenseReluDense.wo", width, sizes.inner, false);
      all.values(2.0 * sizes.inner + 2.0 * width);
      all.norm(feed + ".layer_norm", width, false);
    }
    all.norm(decodes ? "decoder.final_layer_norm" : "encoder.final_layer_norm", width, false);
  }
  return all.take("tokens", kUsualPositions);
}

namespace {

/// Adds the blocks of a transformer with units other than tokens. Each has a matrix [3 width,
/// width] of queries, keys and values.
void blocks(Builder& all, const std::string& prefix, const BlockNames& names, int layers, int width,
            int inner, double positions) {
  for (int i = 0; i < layers; ++i) {
    const std::string name = fmt::format("{}{}", prefix, i);
    const auto called = [&](std::string_view part) { return fmt::format("{}.{}", name, part); };
    all.norm(called(names.norm1), width, true, positions);
    const bool plain = names.attention.ends_with("in_proj");
    all.linear(called(names.attention), 3 * width, width, false, positions,
               plain ? "_weight" : ".weight");
    all.tensor(called(names.attention) + (plain ? "_bias" : ".bias"), {3 * width});
    all.linear(called(names.output), width, width, true, positions);
    all.attention_among(width, positions);
    all.norm(called(names.norm2), width, true, positions);
    all.linear(called(names.up), inner, width, true, positions);
    all.linear(called(names.down), width, inner, true, positions);
    all.values(positions * (2.0 * inner + 4.0 * width));
  }
}

double patches(const Sizes& sizes) {
  const double side = sizes.image / std::max(1, sizes.patch);
  return side * side + 1;
}

}  // namespace

Model vit(const Sizes& sizes) {
  constexpr int kClasses = 1000;
  Builder all;
  const int width = sizes.width;
  const double positions = patches(sizes);
  all.tensor("class_token", {1, 1, width});
  const Shape patch{width, 3, sizes.patch, sizes.patch};
  all.tensor("conv_proj.weight", patch,
             {.flops = 2 * (positions - 1) * static_cast<double>(elements_of(patch)),
              .values = positions * 2 * width});
  all.tensor("conv_proj.bias", {width});
  all.tensor("encoder.pos_embedding", {1, static_cast<std::int64_t>(positions), width});
  blocks(all, "encoder.layers.encoder_layer_",
         {"ln_1", "ln_2", "self_attention.in_proj", "self_attention.out_proj", "mlp.0", "mlp.3"},
         sizes.layers, width, sizes.inner, positions);
  all.norm("encoder.ln", width, true, positions);
  all.linear("heads.head", kClasses, width);
  return all.take("images");
}

Model clip(const Sizes& vision) {
  constexpr int kTextLayers = 12, kTextPositions = 77, kWords = 49408;
  const int text_layers = vision.decoder_layers > 0 ? vision.decoder_layers : kTextLayers;
  const int text_width = vision.key_heads, words = vision.words > 0 ? vision.words : kWords;
  Builder all;
  const BlockNames names = {"ln_1",          "ln_2",     "attn.in_proj",
                            "attn.out_proj", "mlp.c_fc", "mlp.c_proj"};
  const int width = vision.width, shared = vision.inner;
  const double positions = patches(vision);
  all.tensor("visual.class_embedding", {width});
  all.tensor("visual.positional_embedding", {static_cast<std::int64_t>(positions), width});
  all.tensor("visual.proj", {width, shared});
  const Shape patch{width, 3, vision.patch, vision.patch};
  all.tensor("visual.conv1.weight", patch,
             {.flops = 2 * positions * static_cast<double>(elements_of(patch)),
              .values = 2 * positions * width});
  all.norm("visual.ln_pre", width, true, positions);
  blocks(all, "visual.transformer.resblocks.", names, vision.layers, width, 4 * width, positions);
  all.norm("visual.ln_post", width);
  all.embedding("token_embedding.weight", words, text_width);
  all.tensor("positional_embedding", {kTextPositions, text_width});
  blocks(all, "transformer.resblocks.", names, text_layers, text_width, 4 * text_width,
         kTextPositions);
  all.norm("ln_final", text_width, true, kTextPositions);
  all.tensor("text_projection", {text_width, shared});
  all.tensor("logit_scale", {1});
  return all.take("images");
}

Model whisper(const Sizes& sizes) {
  constexpr int kSound = 1500, kText = 448, kBands = 80;
  Builder all;
  const int width = sizes.width, inner = sizes.inner > 0 ? sizes.inner : 4 * width;
  const auto attends = [&](const std::string& name, double queries, double keys) {
    all.linear(name + ".k_proj", width, width, false, keys);
    all.linear(name + ".v_proj", width, width, true, keys);
    all.linear(name + ".q_proj", width, width, true, queries);
    all.linear(name + ".out_proj", width, width, true, queries);
    all.attention_among(width, std::sqrt(queries * keys));
    all.norm(name + "_layer_norm", width, true, queries);
  };
  const auto feeds = [&](const std::string& name, double positions) {
    all.linear(name + ".fc1", inner, width, true, positions);
    all.linear(name + ".fc2", width, inner, true, positions);
    all.values(10 * positions * width);
    all.norm(name + ".final_layer_norm", width, true, positions);
  };
  int in = sizes.bands > 0 ? sizes.bands : kBands;
  for (const char* name : {"model.encoder.conv1", "model.encoder.conv2"}) {
    const Shape shape{width, in, 3};
    all.tensor(fmt::format("{}.weight", name), shape,
               {.flops = 2.0 * kSound * static_cast<double>(elements_of(shape)),
                .values = 2.0 * kSound * width});
    all.tensor(fmt::format("{}.bias", name), {width});
    in = width;
  }
  all.tensor("model.encoder.embed_positions.weight", {kSound, width});
  for (int i = 0; i < sizes.layers; ++i) {
    const std::string name = fmt::format("model.encoder.layers.{}", i);
    attends(name + ".self_attn", kSound, kSound);
    feeds(name, kSound);
  }
  all.norm("model.encoder.layer_norm", width, true, kSound);
  all.tensor("model.decoder.embed_tokens.weight", {sizes.words, width},
             {.flops = 2.0 * kText * width * sizes.words, .values = 4.0 * kText * sizes.words});
  all.tensor("model.decoder.embed_positions.weight", {kText, width});
  for (int i = 0; i < decoder_layers(sizes); ++i) {
    const std::string name = fmt::format("model.decoder.layers.{}", i);
    attends(name + ".self_attn", kText, kText);
    attends(name + ".encoder_attn", kText, kSound);
    feeds(name, kText);
  }
  all.norm("model.decoder.layer_norm", width, true, kText);
  return all.take("samples");
}

namespace {

/// NVIDIA's Transformer-XL on WikiText-103, with adaptive embeddings shared with the softmax.
Model transformer_xl(const Sizes& sizes) {
  constexpr std::array<int, 4> kClusters = {19997, 20000, 160000, 67738};
  constexpr double kRareShare = 0.1;  // assumed share of tokens in the rarer clusters
  // Number of times that a score is read or written. These are kernels of their own: two products,
  // the shift of distances, sum, scale, mask, softmax, dropout, and the product with values.
  constexpr double kScoreAccesses = 16;
  // Frequent words have wide rows; those of each rarer cluster are narrower by a factor of
  // `key_heads`.
  Builder all;
  const int width = sizes.width, divide = std::max(1, sizes.key_heads);
  const bool one = divide == 1;
  if (one) {
    all.embedding("word_emb.emb_layers.0.weight", sizes.words, width);
    all.products(2.0 * width * (kClusters[0] + kRareShare * (sizes.words - kClusters[0])));
  }
  int rows_width = width;
  for (std::size_t i = 0; i < kClusters.size() && !one; ++i) {
    all.embedding(fmt::format("word_emb.emb_layers.{}.weight", i), kClusters[i], rows_width);
    all.products(2.0 * rows_width * kClusters[i] * (i == 0 ? 1 : kRareShare));
    all.linear(fmt::format("word_emb.emb_projs.{}", i), width, rows_width, false, 1, "");
    rows_width /= divide;
  }
  all.tensor("r_w_bias", {sizes.heads, head_width(sizes)});
  all.tensor("r_r_bias", {sizes.heads, head_width(sizes)});
  for (int i = 0; i < sizes.layers; ++i) {
    const std::string name = fmt::format("layers.{}", i);
    all.linear(name + ".dec_attn.qkv_net", 3 * width, width, false, 2);  // and its memory
    all.tensor(name + ".dec_attn.r_net.weight", {width, width});         // for distances, once
    all.linear(name + ".dec_attn.o_net", width, width, false);
    // Three products over the sequence and its memory: scores of contents, scores of distances, and
    // the weighted sum of values.
    for (int part = 0; part < 3; ++part) all.attention(width, false);
    all.values(kScoreAccesses * sizes.heads * 2 * sizes.positions);
    all.norm(name + ".dec_attn.layer_norm", width);
    all.linear(name + ".pos_ff.CoreNet.0", sizes.inner, width);
    all.linear(name + ".pos_ff.CoreNet.3", width, sizes.inner);
    all.values(2.0 * sizes.inner + 4.0 * width);
    all.norm(name + ".pos_ff.layer_norm", width);
  }
  all.tensor("crit.cluster_weight", {3, width});
  all.tensor("crit.cluster_bias", {3});
  all.tensor("crit.out_layers.bias", {sizes.words});
  return all.take("tokens", sizes.positions);
}

/// Facebook's DLRM on Criteo Kaggle; the embeddings' rows have 16 values.
Model dlrm(const Sizes& sizes) {
  constexpr std::array<int, 26> kRows = {1460,  583,     10131227, 2202608, 305,     24,   12517,
                                         633,   3,       93145,    5683,    8351593, 3194, 27,
                                         14992, 5461306, 10,       5652,    2173,    4,    7046547,
                                         18,    15,      286181,   105,     142572};
  Builder all;
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    all.embedding(fmt::format("emb_l.{}.weight", i), kRows[i], sizes.width);
  }
  const auto chain = [&](const std::string& name, std::vector<int> widths) {
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
      all.linear(fmt::format("{}.{}", name, 2 * i), widths[i + 1], widths[i]);
    }
  };
  chain("bot_l", {13, 512, 256, 64, sizes.width});
  const int pairs = static_cast<int>(kRows.size() + 1) * static_cast<int>(kRows.size()) / 2;
  chain("top_l", {pairs + sizes.width, 512, 256, 1});
  return all.take("samples");
}

/// MLPerf's NCF on MovieLens 20M.
Model ncf(const Sizes& sizes) {
  constexpr int kUsers = 138493, kItems = 26744;
  Builder all;
  const int width = sizes.width;
  for (const auto& [name, rows] : {std::pair("user", kUsers), {"item", kItems}}) {
    all.embedding(fmt::format("mf_{}_embed.weight", name), rows, width);
    all.embedding(fmt::format("mlp_{}_embed.weight", name), rows, 2 * width);
  }
  all.linear("mlp.0", 4 * width, 4 * width);
  all.linear("mlp.1", 2 * width, 4 * width);
  all.linear("mlp.2", width, 2 * width);
  all.linear("final", 1, 2 * width);
  return all.take("samples");
}

struct Row {
  std::string_view name;
  Model (*family)(const Sizes& sizes);
  Sizes sizes;
  std::string_view source;
};

constexpr std::string_view kLlama2 = "Llama 2 (arXiv 2307.09288), config.json",
                           kLlama3 = "Llama 3 (arXiv 2407.21783), table 3",
                           kQwen = "Qwen 2.5 (arXiv 2412.15115), config.json",
                           kGpt2 = "GPT-2, Hugging Face config.json",
                           kMpt = "MosaicML, llm-foundry, scripts/train/yamls/pretrain",
                           kBert = "BERT (arXiv 1810.04805), config.json",
                           kT5 = "T5 (arXiv 1910.10683), config.json",
                           kVit = "ViT (arXiv 2010.11929), torchvision",
                           kClip = "CLIP (arXiv 2103.00020), openai/CLIP",
                           kWhisper = "Whisper (arXiv 2212.04356), config.json",
                           kResnet = "torchvision, models/resnet.py",
                           kXl = "NVIDIA DeepLearningExamples, LanguageModeling/Transformer-XL";

Row gpt2_row(std::string_view name, int layers, int width, int heads) {
  return {name,
          gpt2,
          {.layers = layers,
           .width = width,
           .inner = 4 * width,
           .heads = heads,
           .words = 50257,
           .positions = 1024},
          kGpt2};
}
Row llama_row(std::string_view name, std::string_view source, int layers, int width, int inner,
              int heads, int key_heads, int words) {
  return {name,
          llama,
          {.layers = layers,
           .width = width,
           .inner = inner,
           .heads = heads,
           .key_heads = key_heads,
           .words = words},
          source};
}
Row qwen_row(std::string_view name, int layers, int width, int inner, int heads, int key_heads,
             int words, bool tied) {
  Row row = llama_row(name, kQwen, layers, width, inner, heads, key_heads, words);
  row.sizes.bias = true;
  row.sizes.tied = tied;
  return row;
}
/// Released MPTs have ALiBi and no biases; smaller ones have position embeddings and biases.
Row mpt_row(std::string_view name, int layers, int width, int heads, bool released) {
  return {name,
          mpt,
          {.layers = layers,
           .width = width,
           .inner = 4 * width,
           .heads = heads,
           .words = released ? 50432 : 50368,
           .positions = released ? 0 : 2048,
           .bias = !released},
          kMpt};
}
Row t5_row(std::string_view name, int layers, int width, int inner, int heads, int head) {
  return {name,
          t5,
          {.layers = layers,
           .width = width,
           .inner = inner,
           .heads = heads,
           .words = 32128,
           .head_width = head},
          kT5};
}
Row resnet_row(std::string_view name, int layers, int group_width, int groups = 1) {
  return {name, resnet, {.layers = layers, .inner = group_width, .heads = groups}, kResnet};
}
Row efficientnet_row(std::string_view name, int width, int depth, int image) {
  return {name,
          efficientnet,
          {.layers = depth, .width = width, .image = image},
          "EfficientNet (arXiv 1905.11946), torchvision"};
}

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      llama_row("llama2_7b", kLlama2, 32, 4096, 11008, 32, 32, 32000),
      llama_row("llama2_13b", kLlama2, 40, 5120, 13824, 40, 40, 32000),
      llama_row("llama2_70b", kLlama2, 80, 8192, 28672, 64, 8, 32000),
      llama_row("llama3_8b", kLlama3, 32, 4096, 14336, 32, 8, 128256),
      llama_row("llama3_70b", kLlama3, 80, 8192, 28672, 64, 8, 128256),
      llama_row("llama3_405b", kLlama3, 126, 16384, 53248, 128, 8, 128256),
      qwen_row("qwen2.5_0.5b", 24, 896, 4864, 14, 2, 151936, true),
      qwen_row("qwen2.5_1.5b", 28, 1536, 8960, 12, 2, 151936, true),
      qwen_row("qwen2.5_3b", 36, 2048, 11008, 16, 2, 151936, true),
      qwen_row("qwen2.5_7b", 28, 3584, 18944, 28, 4, 152064, false),
      qwen_row("qwen2.5_14b", 48, 5120, 13824, 40, 8, 152064, false),
      qwen_row("qwen2.5_32b", 64, 5120, 27648, 40, 8, 152064, false),
      qwen_row("qwen2.5_72b", 80, 8192, 29568, 64, 8, 152064, false),
      llama_row("mistral_7b", "Mistral 7B (arXiv 2310.06825)", 32, 4096, 14336, 32, 8, 32000),
      {"mixtral_8x7b",
       llama,
       {.layers = 32,
        .width = 4096,
        .inner = 14336,
        .heads = 32,
        .key_heads = 8,
        .words = 32000,
        .experts = 8,
        .active = 2},
       "Mixtral of experts (arXiv 2401.04088)"},
      gpt2_row("gpt2", 12, 768, 12),
      gpt2_row("gpt2_medium", 24, 1024, 16),
      gpt2_row("gpt2_large", 36, 1280, 20),
      gpt2_row("gpt2_xl", 48, 1600, 25),
      {"gpt_neox_20b",
       gpt_neox,
       {.layers = 44, .width = 6144, .inner = 24576, .heads = 64, .words = 50432},
       "GPT-NeoX-20B (arXiv 2204.06745)"},
      mpt_row("mpt_125m", 12, 768, 12, false),
      mpt_row("mpt_350m", 24, 1024, 16, false),
      mpt_row("mpt_760m", 24, 1536, 12, false),
      mpt_row("mpt_1b", 24, 2048, 16, false),
      mpt_row("mpt_3b", 32, 2560, 20, false),
      mpt_row("mpt_7b", 32, 4096, 32, true),
      mpt_row("mpt_13b", 40, 5120, 40, false),
      mpt_row("mpt_30b", 48, 7168, 64, true),
      mpt_row("mpt_70b", 80, 8192, 64, false),
      {"bert_base",
       bert,
       {.layers = 12, .width = 768, .inner = 3072, .heads = 12, .words = 30522, .positions = 512},
       kBert},
      {"bert_large",
       bert,
       {.layers = 24, .width = 1024, .inner = 4096, .heads = 16, .words = 30522, .positions = 512},
       kBert},
      t5_row("t5_small", 6, 512, 2048, 8, 64),
      t5_row("t5_base", 12, 768, 3072, 12, 64),
      t5_row("t5_large", 24, 1024, 4096, 16, 64),
      t5_row("t5_3b", 24, 1024, 16384, 32, 128),
      t5_row("t5_11b", 24, 1024, 65536, 128, 128),
      {"vit_b_16",
       vit,
       {.layers = 12, .width = 768, .inner = 3072, .heads = 12, .image = 224, .patch = 16},
       kVit},
      {"vit_l_16",
       vit,
       {.layers = 24, .width = 1024, .inner = 4096, .heads = 16, .image = 224, .patch = 16},
       kVit},
      {"vit_h_14",
       vit,
       {.layers = 32, .width = 1280, .inner = 5120, .heads = 16, .image = 224, .patch = 14},
       kVit},
      {"clip_vit_b_32",
       clip,
       {.layers = 12, .width = 768, .inner = 512, .key_heads = 512, .image = 224, .patch = 32},
       kClip},
      {"clip_vit_l_14",
       clip,
       {.layers = 24, .width = 1024, .inner = 768, .key_heads = 768, .image = 224, .patch = 14},
       kClip},
      {"whisper_tiny", whisper, {.layers = 4, .width = 384, .words = 51865}, kWhisper},
      {"whisper_base", whisper, {.layers = 6, .width = 512, .words = 51865}, kWhisper},
      {"whisper_small", whisper, {.layers = 12, .width = 768, .words = 51865}, kWhisper},
      {"whisper_medium", whisper, {.layers = 24, .width = 1024, .words = 51865}, kWhisper},
      {"whisper_large", whisper, {.layers = 32, .width = 1280, .words = 51865}, kWhisper},
      resnet_row("resnet18", 18, 0),
      resnet_row("resnet34", 34, 0),
      resnet_row("resnet50", 50, 64),
      resnet_row("resnet101", 101, 64),
      resnet_row("resnet152", 152, 64),
      resnet_row("resnext50_32x4d", 50, 4, 32),
      resnet_row("resnext101_32x8d", 101, 8, 32),
      resnet_row("resnext101_64x4d", 101, 4, 64),
      resnet_row("wide_resnet50_2", 50, 128),
      resnet_row("wide_resnet101_2", 101, 128),
      efficientnet_row("efficientnet_b0", 100, 100, 224),
      efficientnet_row("efficientnet_b1", 100, 110, 240),
      efficientnet_row("efficientnet_b2", 110, 120, 260),
      efficientnet_row("efficientnet_b3", 120, 140, 300),
      efficientnet_row("efficientnet_b4", 140, 180, 380),
      efficientnet_row("efficientnet_b5", 160, 220, 456),
      efficientnet_row("efficientnet_b6", 180, 260, 528),
      efficientnet_row("efficientnet_b7", 200, 310, 600),
      {"sd15_unet",
       diffusion_unet,
       {.width = 320, .heads = 8, .words = 768, .image = 64},
       "Stable Diffusion 1.5, diffusers' UNet2DConditionModel"},
      {"transformer_xl_base",
       transformer_xl,
       {.layers = 16, .width = 512, .inner = 2048, .heads = 8, .words = 267735, .positions = 192},
       kXl},
      {"transformer_xl_large",
       transformer_xl,
       {.layers = 18,
        .width = 1024,
        .inner = 4096,
        .heads = 16,
        .key_heads = 4,
        .words = 267735,
        .positions = 384},
       kXl},
      {"dlrm_kaggle", dlrm, {.width = 16}, "DLRM (arXiv 1906.00091), Criteo Kaggle"},
      {"ncf", ncf, {.width = 64}, "MLPerf training 0.5, NCF on MovieLens 20M"},
  };
  return table;
}

}  // namespace

std::optional<Model> named_architecture(std::string_view name) {
  const auto row = std::ranges::find(rows(), name, &Row::name);
  if (row == rows().end()) return std::nullopt;
  Model model = row->family(row->sizes);
  model.name = row->name;
  model.source = fmt::format("Shapes of {}; no times", row->source);
  return model;
}

std::vector<std::string_view> architecture_names() {
  std::vector<std::string_view> names;
  for (const Row& row : rows()) names.push_back(row.name);
  std::ranges::sort(names);
  return names;
}

}  // namespace hipress::models
