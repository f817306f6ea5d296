#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "models/model.hpp"

namespace hipress::models {

/// Sizes of a model of a family; 0: the family lacks this size.
struct Sizes {
  int layers = 0, width = 0, inner = 0;  ///< `inner`: width of the feed-forward part
  int heads = 0, key_heads = 0;          ///< key_heads: heads of keys and values; 0: `heads`
  int words = 0, positions = 0;          ///< number of embeddings of words, and of positions
  int head_width = 0;                    ///< 0: width / heads
  int experts = 0, active = 0;           ///< experts per feed-forward part, and per token
  int image = 0, patch = 0;              ///< side in pixels
  int decoder_layers = 0;                ///< 0: `layers`
  int bands = 0;                         ///< frequency bands of sound; 0: 80
  bool tied = false;                     ///< the last matrix is the embedding
  bool bias = false;                     ///< true: matrices with an optional bias have it
  bool norms_heads = false;              ///< true: queries and keys are normed per head
};

/// Gradients of an architecture in the order of backward, with shapes and Work, without times.
/// Throws io::InputError for sizes that no model of the family has.
Model llama(const Sizes& sizes);  ///< Llama, Qwen (bias, or norms), Mistral, Mixtral (experts)
Model gpt2(const Sizes& sizes);
Model gpt_neox(const Sizes& sizes);
Model mpt(const Sizes& sizes);
Model bert(const Sizes& sizes);
Model t5(const Sizes& sizes);
Model vit(const Sizes& sizes);
/// OpenAI's CLIP, on an image and a text of 77 tokens. `inner` is the width of the shared
/// embedding, `key_heads` the text's number of heads, `decoder_layers` its number of layers (0:
/// 12).
Model clip(const Sizes& sizes);
/// OpenAI's Whisper, on 30 s of sound: 1500 positions in the encoder, up to 448 in the decoder.
Model whisper(const Sizes& sizes);

/// torchvision's ResNets. `heads` is the number of groups; `inner` is the width of a group's
/// bottleneck (0: basic blocks of two 3x3); `layers` is 18, 34, 50, 101 or 152.
Model resnet(const Sizes& sizes);
/// EfficientNet on images of `image` pixels a side; `width` and `layers` are B0's in percent.
Model efficientnet(const Sizes& sizes);
/// The UNet of Stable Diffusion 1: `width` channels at first, latents of `image` values a side, and
/// texts of 77 tokens with `words` values each.
Model diffusion_unet(const Sizes& sizes);

/// Model computed from the table of architectures; nullopt for a name that is not in it.
std::optional<Model> named_architecture(std::string_view name);

/// Names in the table, sorted.
std::vector<std::string_view> architecture_names();

}  // namespace hipress::models
