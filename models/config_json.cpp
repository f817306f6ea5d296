#include "models/config_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "io/error.hpp"
#include "io/quantity.hpp"
#include "io/suggestion.hpp"
#include "models/architectures.hpp"

namespace hipress::models {
namespace {

using io::Document;

/// Keys of sizes in a config.json ("object.key" if nested); empty: the family lacks the size.
struct Keys {
  std::string_view layers = "num_hidden_layers", width = "hidden_size", inner = "intermediate_size",
                   heads = "num_attention_heads", words = "vocab_size", positions = {},
                   head_width = {}, key_heads = {}, experts = {}, active = {}, bias = {},
                   image = {}, patch = {}, decoder_layers = {}, bands = {};
  bool ties = false;    ///< the family reads tie_word_embeddings
  bool biases = false;  ///< true: biases even without the key
  bool norms_heads = false;
};

struct ConfigRow {
  std::string_view type;  ///< model_type
  Model (*family)(const Sizes& sizes);
  Keys keys;
};

constexpr Keys kLlamaKeys = {.head_width = "head_dim",
                             .key_heads = "num_key_value_heads",
                             .bias = "attention_bias",
                             .ties = true};
constexpr Keys with_bias(Keys keys) {
  keys.biases = true;
  return keys;
}
constexpr Keys with_experts(Keys keys) {
  keys.experts = "num_local_experts";
  keys.active = "num_experts_per_tok";
  return keys;
}
constexpr Keys with_head_norms(Keys keys) {
  keys.norms_heads = true;
  return keys;
}
constexpr std::array<ConfigRow, 12> kConfigs = {{
    {"bert", bert, {.positions = "max_position_embeddings"}},
    {"clip",
     clip,
     {.layers = "vision_config.num_hidden_layers",
      .width = "vision_config.hidden_size",
      .inner = "projection_dim",
      .heads = {},
      .words = "text_config.vocab_size",
      .key_heads = "text_config.hidden_size",
      .image = "vision_config.image_size",
      .patch = "vision_config.patch_size",
      .decoder_layers = "text_config.num_hidden_layers"}},
    {"gpt2",
     gpt2,
     {.layers = "n_layer",
      .width = "n_embd",
      .inner = "n_inner",
      .heads = "n_head",
      .positions = "n_positions"}},
    {"gpt_neox", gpt_neox, {}},
    {"llama", llama, kLlamaKeys},
    {"mistral", llama, kLlamaKeys},
    {"mixtral", llama, with_experts(kLlamaKeys)},
    {"qwen2", llama, with_bias(kLlamaKeys)},
    {"qwen3", llama, with_head_norms(kLlamaKeys)},
    {"t5",
     t5,
     {.layers = "num_layers",
      .width = "d_model",
      .inner = "d_ff",
      .heads = "num_heads",
      .head_width = "d_kv",
      .decoder_layers = "num_decoder_layers"}},
    {"vit", vit, {.words = {}, .image = "image_size", .patch = "patch_size"}},
    {"whisper",
     whisper,
     {.layers = "encoder_layers",
      .width = "d_model",
      .inner = "encoder_ffn_dim",
      .heads = "encoder_attention_heads",
      .decoder_layers = "decoder_layers",
      .bands = "num_mel_bins"}},
}};

int number_of(const Document& config, const std::string& file, std::string_view key,
              int otherwise) {
  if (key.empty()) return 0;
  const std::size_t dot = key.find('.');
  const Document* found = config.find(key.substr(0, dot));
  if (found != nullptr && dot != std::string_view::npos) found = found->find(key.substr(dot + 1));
  if (found == nullptr || found->is_null()) {
    if (otherwise >= 0) return otherwise;
    throw io::InputError(
        file, 0,
        fmt::format("has no {}; give the model's whole config.json", io::quote(std::string(key))));
  }
  constexpr std::int64_t kMost = 1 << 22;
  const auto number = found->integer();
  if (number && *number >= 1 && *number <= kMost) return static_cast<int>(*number);
  throw io::InputError(file, 0,
                       fmt::format("{} must be a whole number from 1 to {}, got {}",
                                   io::quote(std::string(key)), kMost, found->describe()));
}

bool is_set(const Document& config, std::string_view key) {
  const Document* const found = key.empty() ? nullptr : config.find(key);
  return found != nullptr && found->boolean() != nullptr && *found->boolean();
}

/// Throws io::InputError for sizes that no such model has, or that make too many gradients.
void check(const Sizes& sizes, const std::string& file) {
  constexpr double kMostTensors = 1e6;
  const double tensors =
      16.0 * std::max(sizes.layers, sizes.decoder_layers) * std::max(1, sizes.experts);
  const double elements =
      8.0 * sizes.layers * sizes.width *
          (sizes.width + static_cast<double>(sizes.inner) * std::max(1, sizes.experts)) +
      static_cast<double>(sizes.words) * sizes.width;
  if (tensors > kMostTensors || elements > static_cast<double>(kMaxElements)) {
    throw io::InputError(file, 0, "makes a model of more than 2^48 elements or 10^6 tensors");
  }
  if (sizes.heads > 0 && sizes.head_width == 0 && sizes.width % sizes.heads != 0) {
    throw io::InputError(
        file, 0, fmt::format("{} heads do not divide a width of {}", sizes.heads, sizes.width));
  }
  if (sizes.patch > 0 && sizes.image < sizes.patch) {
    throw io::InputError(file, 0, "has patches that are larger than its images");
  }
}

/// True for variants of T5 with gates; older files have a different key for them.
bool is_gated(const Document& config) {
  const Document* const said = config.find("feed_forward_proj");
  const std::string* const text = said != nullptr ? said->text() : nullptr;
  return is_set(config, "is_gated_act") || (text != nullptr && text->starts_with("gated"));
}

const ConfigRow& row_of(const Document& config, const std::string& file,
                        const std::string& remedy) {
  const Document* const type = config.find("model_type");
  const std::string name = type != nullptr && type->text() != nullptr ? *type->text() : "";
  const auto* const row = std::ranges::find(kConfigs, name, &ConfigRow::type);
  if (row == kConfigs.end()) {
    std::vector<std::string_view> known;
    for (const ConfigRow& one : kConfigs) known.push_back(one.type);
    throw io::InputError(file, 0,
                         fmt::format("model_type {}{}; of others, {}", io::quote(name),
                                     io::suggestion(name, known), remedy));
  }
  if (is_gated(config)) {
    throw io::InputError(file, 0,
                         fmt::format("its feed-forward parts are gated, and those of {} here are "
                                     "not: {}",
                                     name, remedy));
  }
  return *row;
}

}  // namespace

Model model_of_config(const Document& config, const std::string& file, const std::string& remedy) {
  const ConfigRow& row = row_of(config, file, remedy);
  const Keys& keys = row.keys;
  const auto number = [&](std::string_view key, int otherwise = -1) {
    return number_of(config, file, key, otherwise);
  };
  Sizes sizes = {.layers = number(keys.layers), .width = number(keys.width)};
  sizes.inner = number(keys.inner, 4 * sizes.width);
  sizes.heads = number(keys.heads);
  sizes.key_heads = number(keys.key_heads, keys.heads.empty() ? -1 : sizes.heads);
  sizes.words = number(keys.words);
  sizes.positions = number(keys.positions);
  sizes.head_width = number(keys.head_width, 0);
  sizes.experts = number(keys.experts);
  sizes.active = number(keys.active);
  sizes.image = number(keys.image);
  sizes.patch = number(keys.patch);
  sizes.decoder_layers = number(keys.decoder_layers, sizes.layers);
  sizes.bands = number(keys.bands);
  sizes.norms_heads = keys.norms_heads;
  sizes.tied = keys.ties && is_set(config, "tie_word_embeddings");
  sizes.bias = keys.biases || is_set(config, keys.bias);
  check(sizes, file);
  return row.family(sizes);
}

}  // namespace hipress::models
