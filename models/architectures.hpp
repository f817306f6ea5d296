#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "models/model.hpp"

namespace hipress::models {

/// Sizes that tell the models of a family apart; 0: the family has none.
struct Sizes {
  int layers = 0, width = 0, inner = 0;  ///< `inner` is that of the feed-forward part
  int heads = 0, key_heads = 0;          ///< key_heads: of keys and values, 0: as many as heads
  int words = 0, positions = 0;          ///< positions that have an embedding of their own
  int head_width = 0;                    ///< 0: width / heads
  int experts = 0, active = 0;           ///< of each feed-forward part, and those that a token uses
  int image = 0, patch = 0;              ///< pixels of a side
  bool tied = false;                     ///< the last matrix is the embedding
  bool bias = false;                     ///< of the matrices that the family leaves open
};

/// The gradients of an architecture in the order of backward, with shapes and Work, and no times.
/// io::InputError for sizes that no model of the family has.
Model llama(const Sizes& sizes);  ///< Llama, Qwen 2.5 (bias), Mistral, Mixtral (experts)
Model gpt2(const Sizes& sizes);
Model gpt_neox(const Sizes& sizes);
Model mpt(const Sizes& sizes);
Model bert(const Sizes& sizes);
Model t5(const Sizes& sizes);
Model vit(const Sizes& sizes);

/// The model of that name, computed from the table of architectures; none: not in it.
std::optional<Model> named_architecture(std::string_view name);

/// The names in the table, sorted.
std::vector<std::string_view> architecture_names();

}  // namespace hipress::models
