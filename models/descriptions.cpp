#include "models/descriptions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <span>

#include "io/document.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/input_file.hpp"
#include "io/quantity.hpp"
#include "io/suggestion.hpp"
#include "io/utf8.hpp"
#include "models/architectures.hpp"
#include "models/shape.hpp"

namespace hipress::models {
namespace {
namespace fs = std::filesystem;

using io::Document;
using Shape = std::vector<std::int64_t>;

constexpr std::size_t kLooked = 1 << 16;
constexpr std::int64_t kMostHeader = 100 << 20;  // safetensors' own limit is 100 MB
constexpr std::size_t kLengthBytes = 8;

std::string first_bytes(const std::string& path, std::size_t most) {
  io::InputFile file(path, {.most_bytes = INT64_MAX});
  std::string bytes(most, '\0');
  std::size_t count = 0;
  while (count < most) {
    const std::size_t more = file.read(bytes.data() + count, most - count);
    if (more == 0) break;
    count += more;
  }
  bytes.resize(count);
  return bytes;
}

/// Tensors in the order of forward, which become gradients in that of backward.
class Tensors {
 public:
  explicit Tensors(std::string file) : file_(std::move(file)) {}

  void add(const std::string& name, Shape shape, std::int64_t elements, int line) {
    if (const std::string found = io::unfit_for_name(name); !found.empty()) {
      throw io::InputError(file_, line, fmt::format("a tensor's name holds {}; rename it", found));
    }
    if (elements < 1 || elements > kMaxElements - total_) {
      throw io::InputError(file_, line,
                           fmt::format("tensor {} has {} elements; all together have 1 to 2^48",
                                       io::quote(name), elements));
    }
    if (!names_.insert(name).second) {
      throw io::InputError(file_, line, fmt::format("tensor {} is there twice", io::quote(name)));
    }
    total_ += elements;
    Gradient gradient;
    gradient.name = name;
    gradient.elements = elements;
    gradient.shape = std::move(shape);
    tensors_.push_back(std::move(gradient));
  }

  void add(const std::string& name, Shape shape, int line) {
    double product = 1;
    for (const std::int64_t one : shape) product *= static_cast<double>(one);
    const bool fits = std::ranges::all_of(shape, [](std::int64_t one) { return one > 0; }) &&
                      product <= static_cast<double>(kMaxElements);
    if (!fits) {
      throw io::InputError(
          file_, line,
          fmt::format("tensor {} has a shape of none or of too many elements", io::quote(name)));
    }
    add(name, std::move(shape), static_cast<std::int64_t>(product), line);
  }

  Model take() {
    Model model;
    std::ranges::reverse(tensors_);
    model.gradients = std::move(tensors_);
    return model;
  }

 private:
  std::string file_;
  std::vector<Gradient> tensors_;
  std::set<std::string> names_;
  std::int64_t total_ = 0;
};

// config.json.

/// Keys of sizes in a config.json; empty: the family has none.
struct Keys {
  std::string_view layers = "num_hidden_layers", width = "hidden_size", inner = "intermediate_size",
                   heads = "num_attention_heads", words = "vocab_size", positions = {},
                   head_width = {}, key_heads = {}, experts = {}, active = {}, bias = {},
                   image = {}, patch = {};
  bool ties = false;    ///< tie_word_embeddings counts
  bool biases = false;  ///< whatever the file says
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
constexpr std::array<ConfigRow, 9> kConfigs = {{
    {"bert", bert, {.positions = "max_position_embeddings"}},
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
    {"t5",
     t5,
     {.layers = "num_layers",
      .width = "d_model",
      .inner = "d_ff",
      .heads = "num_heads",
      .head_width = "d_kv"}},
    {"vit", vit, {.words = {}, .image = "image_size", .patch = "patch_size"}},
}};

int number_of(const Document& config, const std::string& file, std::string_view key,
              int otherwise) {
  if (key.empty()) return 0;
  const Document* const found = config.find(key);
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

/// Refuses what would take forever to list, or that no such model has.
void check(const Sizes& sizes, const std::string& file) {
  constexpr double kMostTensors = 1e6;
  const double tensors = 16.0 * sizes.layers * std::max(1, sizes.experts);
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

Model of_config(const Document& config, const std::string& file) {
  const Document* const type = config.find("model_type");
  const std::string name = type != nullptr && type->text() != nullptr ? *type->text() : "";
  const auto* const row = std::ranges::find(kConfigs, name, &ConfigRow::type);
  if (row == kConfigs.end()) {
    std::vector<std::string_view> known;
    for (const ConfigRow& one : kConfigs) known.push_back(one.type);
    throw io::InputError(file, 0,
                         fmt::format("model_type {}{}; of others, {}", io::quote(name),
                                     io::suggestion(name, known), description_remedy()));
  }
  if (const Document* const gated = config.find("is_gated_act");
      gated != nullptr && is_set(config, "is_gated_act")) {
    throw io::InputError(file, 0,
                         fmt::format("its feed-forward parts are gated, which {} has not: "
                                     "{}",
                                     name, description_remedy()));
  }
  const Keys& keys = row->keys;
  const auto number = [&](std::string_view key, int otherwise = -1) {
    return number_of(config, file, key, otherwise);
  };
  Sizes sizes = {.layers = number(keys.layers), .width = number(keys.width)};
  sizes.inner = number(keys.inner, 4 * sizes.width);
  sizes.heads = number(keys.heads);
  sizes.key_heads = number(keys.key_heads, sizes.heads);
  sizes.words = number(keys.words);
  sizes.positions = number(keys.positions);
  sizes.head_width = number(keys.head_width, 0);
  sizes.experts = number(keys.experts);
  sizes.active = number(keys.active);
  sizes.image = number(keys.image);
  sizes.patch = number(keys.patch);
  sizes.tied = keys.ties && is_set(config, "tie_word_embeddings");
  sizes.bias = keys.biases || is_set(config, keys.bias);
  check(sizes, file);
  return row->family(sizes);
}

// safetensors.

void add_header(const std::string& path, Tensors& tensors) {
  const std::string start = first_bytes(path, kLengthBytes);
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < start.size(); ++i) {
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(start[i])) << (8 * i);
  }
  if (length > static_cast<std::uint64_t>(kMostHeader)) {
    throw io::InputError(path, 0, "its header is longer than safetensors allows, 100 MB");
  }
  const std::string bytes = first_bytes(path, kLengthBytes + length);
  if (bytes.size() < kLengthBytes + length) {
    throw io::InputError(path, 0, "ends in its header; fetch the file again");
  }
  const Document header = Document::parse(bytes.substr(kLengthBytes), path);
  if (header.members() == nullptr) throw io::InputError(path, 0, "its header is no object");
  for (const auto& [name, value] : *header.members()) {
    if (name == "__metadata__") continue;
    const Document* const dimensions = value.find("shape");
    if (dimensions == nullptr || dimensions->items() == nullptr) {
      throw io::InputError(path, 0, fmt::format("tensor {} has no shape", io::quote(name)));
    }
    Shape shape;
    for (const Document& one : *dimensions->items()) shape.push_back(one.integer().value_or(0));
    tensors.add(name, std::move(shape), 0);
  }
}

Described of_safetensors(const std::string& path) {
  Tensors tensors(path);
  add_header(path, tensors);
  return {tensors.take(),
          "header of a safetensors file",
          {"tensors are taken in the file's order, which need not be that of forward"}};
}

Described of_index(const Document& index, const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  if (const fs::path config = folder / "config.json"; fs::is_regular_file(config)) {
    return {of_config(Document::parse(io::read_file(config.string()), config.string()),
                      config.string()),
            "safetensors index, with the config.json beside it"};
  }
  std::set<std::string> files;
  for (const auto& [name, file] : *index.find("weight_map")->members()) {
    if (file.text() != nullptr) files.insert(*file.text());
  }
  Tensors tensors(path);
  for (const std::string& file : files) {
    const fs::path shard = folder / fs::path(file).filename();
    if (!fs::is_regular_file(shard)) {
      throw io::InputError(
          path, 0,
          fmt::format("names tensors without shapes, and neither config.json nor {} is beside it: "
                      "put the model's config.json there, or {}",
                      io::quote(file), description_remedy()));
    }
    add_header(shard.string(), tensors);
  }
  return {tensors.take(),
          "safetensors index, with the files beside it",
          {"tensors are taken in the files' order, which need not be that of forward"}};
}

// Listings.

struct ListedTensor {
  std::string name;
  Shape shape;
};

constexpr std::string_view kSize = "torch.Size";

/// "layers.0.weight torch.Size([4096, 4096])", with whatever between name and brackets.
std::optional<ListedTensor> tensor_in(std::string_view line) {
  const auto in_name = [](char one) {
    return std::isalnum(static_cast<unsigned char>(one)) != 0 || one == '_' || one == '.' ||
           one == '/' || one == '-';
  };
  const std::size_t close = line.find_last_of(")]");
  if (close == std::string_view::npos) return std::nullopt;
  const std::size_t end = line.find_last_not_of(")]", close);
  std::size_t open = line.find_last_of("([", close);
  if (end == std::string_view::npos || open == std::string_view::npos) return std::nullopt;
  ListedTensor found;
  std::string digits;
  const std::string_view inside = open < end ? line.substr(open + 1, end - open) : "";
  for (const char one : std::string(inside) + ",") {
    if (std::isdigit(static_cast<unsigned char>(one)) != 0) {
      digits += one;
    } else if (one == ',' || one == ' ') {
      if (digits.size() > 15) return std::nullopt;
      if (!digits.empty()) found.shape.push_back(std::stoll(digits));
      digits.clear();
    } else {
      return std::nullopt;
    }
  }
  const auto start = std::ranges::find_if(line, in_name);
  const auto stop = std::find_if_not(start, line.end(), in_name);
  if (start == line.end() || stop - line.begin() > static_cast<std::ptrdiff_t>(open)) {
    return std::nullopt;
  }
  // Something stands between a name and its shape; of words, torch.Size alone.
  const std::size_t behind = static_cast<std::size_t>(stop - line.begin());
  std::string between(line.substr(behind, open - behind));
  if (const std::size_t word = between.find(kSize); word != std::string::npos) {
    between.erase(word, kSize.size());
  }
  constexpr std::string_view kSeparators = " \t:,|='\"";
  const bool separated = !between.empty() && kSeparators.find(between[0]) != std::string::npos;
  if (!separated || between.find_first_not_of(" \t:,|='\"(") != std::string::npos) {
    return std::nullopt;
  }
  found.name = std::string(start, stop);
  return found;
}

std::string_view blanks_off(std::string_view line) {
  const std::size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos) return {};
  return line.substr(start, line.find_last_not_of(" \t") - start + 1);
}

Described of_listing(const std::string& path) {
  Tensors tensors(path);
  int number = 0;
  for (const std::string& line : io::read_lines(path)) {
    ++number;
    if (blanks_off(line).empty()) continue;
    const auto found = tensor_in(line);
    if (!found) {
      throw io::InputError(path, number,
                           fmt::format("must be a name and a shape, layers.0.weight (4096, 1024), "
                                       "got {}",
                                       io::quote(line)));
    }
    tensors.add(found->name, found->shape, number);
  }
  return {tensors.take(), "listing of names and shapes"};
}

/// "│    └─Linear: 2-1    [1, 10]    1,234": the layer and its parameters; containers have "--".
Described of_torchinfo(const std::string& path) {
  Tensors tensors(path);
  int number = 0;
  for (const std::string& line : io::read_lines(path)) {
    ++number;
    const std::string_view text = blanks_off(line);
    const std::size_t colon = text.find(": ");
    const std::size_t last = text.find_last_of(" \t");
    if (text.starts_with("Total") || colon == std::string_view::npos ||
        last == std::string_view::npos) {
      continue;
    }
    std::string count;
    for (const char one : text.substr(last + 1)) {
      if (one != ',') count += one;
    }
    const bool counts = !count.empty() && count.size() < 16 &&
                        std::ranges::all_of(count, [](unsigned char c) { return std::isdigit(c); });
    if (!counts) continue;
    const auto first = std::ranges::find_if(
        text, [](char one) { return std::isalpha(static_cast<unsigned char>(one)) != 0; });
    const std::size_t start = static_cast<std::size_t>(first - text.begin());
    if (start > colon) continue;
    const std::size_t end = std::min(text.find(' ', colon + 2), text.size());
    const std::string name = fmt::format("{}.{}", text.substr(colon + 2, end - colon - 2),
                                         text.substr(start, colon - start));
    tensors.add(name, {}, std::stoll(count), number);
  }
  return {tensors.take(),
          "table of torchinfo",
          {"torchinfo tells no shapes: codecs that need them, and arithmetic, take a listing of "
           "named_parameters()"}};
}

// The forms.

bool holds(std::string_view first, std::string_view text) {
  return first.find(text) != std::string_view::npos;
}

bool is_object(std::string_view first) { return blanks_off(first).starts_with('{'); }

Document json_of(const std::string& path) { return Document::parse(io::read_file(path), path); }

/// A form by what a file's first bytes hold.
struct FormRow {
  std::string_view name;
  bool (*is)(std::string_view first);
  Described (*read)(const std::string& path);
};
constexpr FormRow kForms[] = {
    {"model.safetensors.index.json",
     [](std::string_view first) { return is_object(first) && holds(first, "\"weight_map\""); },
     [](const std::string& path) {
       const Document index = json_of(path);
       const Document* const map = index.find("weight_map");
       if (map == nullptr || map->members() == nullptr) {
         throw io::InputError(path, 0, "its weight_map is no object");
       }
       return of_index(index, path);
     }},
    {"config.json",
     [](std::string_view first) {
       return is_object(first) && !holds(first, "\"traceEvents\"") &&
              (holds(first, "\"model_type\"") || holds(first, "\"architectures\""));
     },
     [](const std::string& path) {
       return Described{of_config(json_of(path), path), "config.json of Hugging Face"};
     }},
    {"*.safetensors",
     [](std::string_view first) {
       return first.size() > kLengthBytes && first[kLengthBytes] == '{' && first[7] == '\0' &&
              (holds(first, "\"dtype\"") || holds(first, "\"__metadata__\""));
     },
     of_safetensors},
    {"torchinfo's table", [](std::string_view first) { return holds(first, "Param #"); },
     of_torchinfo},
    {"a listing of names and shapes",
     [](std::string_view first) {
       const std::size_t start = first.find_first_not_of(" \t\r\n");
       if (start == std::string_view::npos || first.find('\0') != std::string_view::npos) {
         return false;
       }
       const std::size_t end = std::min(first.find('\n', start), first.size());
       const bool is_json = first[start] == '{' || first[start] == '[';
       return !is_json && tensor_in(first.substr(start, end - start)).has_value();
     },
     of_listing},
};

}  // namespace

std::string description_remedy() {
  std::string names;
  for (const FormRow& row : kForms) {
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return fmt::format(
      "give one of {}; python3 -c 'for n, p in MODEL.named_parameters(): print(n, tuple(p.shape))' "
      "> listing.txt lists those of any PyTorch model",
      names);
}

std::optional<Described> read_description(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  const std::string first = first_bytes(path, kLooked);
  for (const FormRow& row : kForms) {
    if (!row.is(first)) continue;
    Described found = row.read(path);
    if (found.model.gradients.empty()) throw io::InputError(path, 0, "lists no tensor");
    const fs::path file = fs::path(path);
    const bool plain = file.stem() == "config" || file.stem() == "model";
    const fs::path folder = fs::absolute(file).parent_path().filename();
    found.model.name = io::printable((plain && !folder.empty() ? folder : file.stem()).string());
    found.model.source = fmt::format("{} {}", found.form, io::printable(file.filename().string()));
    return found;
  }
  return std::nullopt;
}

}  // namespace hipress::models
