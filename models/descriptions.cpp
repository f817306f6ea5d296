#include "models/descriptions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "io/document.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "io/input_file.hpp"
#include "io/quantity.hpp"
#include "io/utf8.hpp"
#include "models/config_json.hpp"
#include "models/listings.hpp"
#include "models/model_file.hpp"
#include "models/onnx.hpp"
#include "models/tensor_list.hpp"

namespace hipress::models {
namespace {
namespace fs = std::filesystem;

using io::Document;

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

Described described(TensorList& tensors, std::string_view form, std::vector<std::string> said) {
  if (std::string rest = tensors.left_out(); !rest.empty()) said.push_back(std::move(rest));
  return {tensors.take(), form, std::move(said)};
}

Model of_config(const std::string& file) {
  return model_of_config(Document::parse(io::read_file(file), file), file, description_remedy());
}

void add_header(const std::string& path, TensorList& tensors) {
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
    TensorList::Shape shape;
    for (const Document& one : *dimensions->items()) shape.push_back(one.integer().value_or(0));
    tensors.add(name, std::move(shape), 0);
  }
}

Described of_safetensors(const std::string& path) {
  TensorList tensors(path);
  add_header(path, tensors);
  return described(tensors, "header of a safetensors file",
                   {"tensors are taken in the file's order, which need not be that of forward"});
}

Described of_index(const Document& index, const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  if (const fs::path config = folder / "config.json"; fs::is_regular_file(config)) {
    return {of_config(config.string()), "index of weights, with the config.json beside it"};
  }
  std::set<std::string> files;
  for (const auto& [name, file] : *index.find("weight_map")->members()) {
    if (file.text() != nullptr) files.insert(*file.text());
  }
  TensorList tensors(path);
  for (const std::string& file : files) {
    const fs::path shard = folder / fs::path(file).filename();
    if (!fs::is_regular_file(shard) || shard.extension() != ".safetensors") {
      throw io::InputError(
          path, 0,
          fmt::format("names tensors without shapes, and neither config.json nor a safetensors "
                      "file {} is beside it: put the model's config.json there, or {}",
                      io::quote(file), description_remedy()));
    }
    add_header(shard.string(), tensors);
  }
  return described(tensors, "index of weights, with the files beside it",
                   {"tensors are taken in the files' order, which need not be that of forward"});
}

Described of_onnx(const std::string& path) {
  TensorList tensors(path);
  const OnnxRest rest = add_onnx(path, tensors);
  std::vector<std::string> said = {
      "initializers are taken in the file's order, and constants that export folded are among "
      "them"};
  if (rest.constants > 0) {
    said.push_back(fmt::format("{} initializers of whole numbers are left out", rest.constants));
  }
  return described(tensors, "ONNX model", std::move(said));
}

Described of_listing(const std::string& path) {
  TensorList tensors(path);
  add_listing(path, tensors);
  return described(tensors, "listing of names and shapes", {});
}

Described of_table(const std::string& path) {
  TensorList tensors(path);
  const std::string sum = add_table(path, tensors);
  std::vector<std::string> said = {
      "the table tells no shapes: codecs that need them, and arithmetic, take a listing of "
      "named_parameters()"};
  if (!sum.empty()) said.push_back(sum);
  return described(tensors, "table of layers", std::move(said));
}

/// File or folder at a path, with a file's first bytes.
struct Looked {
  std::string path;
  std::string_view first;  ///< first bytes of a file
  bool is_file = false, is_folder = false;
  bool is_there = false;  ///< also true of pipes, which are read once and not looked at

  bool holds(std::string_view text) const { return first.find(text) != std::string_view::npos; }
  bool begins(std::string_view text) const { return is_file && first.starts_with(text); }
  bool ends(std::string_view text) const { return is_file && path.ends_with(text); }
  bool has(const char* file) const {
    std::error_code error;
    return is_folder && fs::exists(fs::path(path) / file, error);
  }
  bool is_object() const {
    const std::size_t start = first.find_first_not_of(" \t\r\n");
    return start != std::string_view::npos && first[start] == '{';
  }
};

/// Readable form.
struct FormRow {
  std::string_view name;
  bool (*is)(const Looked& at);
  Described (*read)(const std::string& path);
};
constexpr FormRow kForms[] = {
    {"model.safetensors.index.json or pytorch_model.bin.index.json",
     [](const Looked& at) { return at.is_object() && at.holds("\"weight_map\""); },
     [](const std::string& path) {
       const Document index = Document::parse(io::read_file(path), path);
       const Document* const map = index.find("weight_map");
       if (map == nullptr || map->members() == nullptr) {
         throw io::InputError(path, 0, "its weight_map is no object");
       }
       return of_index(index, path);
     }},
    {"config.json",
     [](const Looked& at) {
       return at.is_object() && !at.holds("\"traceEvents\"") &&
              (at.holds("\"model_type\"") || at.holds("\"architectures\""));
     },
     [](const std::string& path) {
       return Described{of_config(path), "config.json of Hugging Face"};
     }},
    {"*.safetensors",
     [](const Looked& at) {
       return at.first.size() > kLengthBytes && at.first[kLengthBytes] == '{' &&
              at.first[7] == '\0' && (at.holds("\"dtype\"") || at.holds("\"__metadata__\""));
     },
     of_safetensors},
    {"*.onnx", [](const Looked& at) { return at.ends(".onnx"); }, of_onnx},
    {"the table of torchinfo, torchsummary or Keras",
     [](const Looked& at) { return at.holds("Param #"); }, of_table},
    {"a listing of names and shapes",
     [](const Looked& at) { return at.is_file && begins_listing(at.first); }, of_listing},
};

/// Known but unreadable form, with the command that converts it; FILE stands for the path.
struct OtherRow {
  std::string_view name;
  bool (*is)(const Looked& at);
  std::string_view command;
};

/// True for a text of 1 to 200 letters, digits and characters of `also`.
bool is_word(std::string_view text, std::string_view also) {
  constexpr std::size_t kLongest = 200;
  return !text.empty() && text.size() <= kLongest &&
         std::ranges::all_of(text, [&](unsigned char one) {
           return std::isalnum(one) != 0 ||
                  also.find(static_cast<char>(one)) != std::string_view::npos;
         });
}

/// True for names such as "meta-llama/Meta-Llama-3-8B", which are not local folders and have no
/// file's ending.
bool is_repository(const Looked& at) {
  if (at.is_there) return false;
  const std::size_t slash = at.path.find('/');
  std::error_code error;
  if (slash == std::string::npos || fs::exists(at.path.substr(0, slash), error)) return false;
  const std::string ending = fs::path(at.path).extension().string();
  const bool is_ending = ending.size() > 1 && std::ranges::all_of(ending.substr(1), [](char one) {
                           return std::isalpha(static_cast<unsigned char>(one)) != 0;
                         });
  return !is_ending && is_word(at.path.substr(0, slash), "-_") &&
         is_word(at.path.substr(slash + 1), "-_.");
}

constexpr OtherRow kOthers[] = {
    {"TorchScript's archive",
     [](const Looked& at) { return at.begins("PK") && at.holds("/code/__torch__"); },
     "python3 -c \"import torch; [print(n, tuple(p.shape)) for n, p in "
     "torch.jit.load('FILE', 'cpu').named_parameters()]\" > listing.txt"},
    {"NumPy's archive", [](const Looked& at) { return at.begins("PK") && at.ends(".npz"); },
     "python3 -c \"import numpy; f = numpy.load('FILE'); [print(n, f[n].shape) for n in f.files]\" "
     "> listing.txt"},
    {"Keras' archive", [](const Looked& at) { return at.begins("PK") && at.ends(".keras"); },
     "python3 -c \"import keras; [print(w.path, tuple(w.shape)) for w in "
     "keras.models.load_model('FILE').trainable_weights]\" > listing.txt"},
    {"PyTorch's pickle",
     [](const Looked& at) {
       return at.begins("\x80\x02") || (at.begins("PK") && at.holds("data.pkl"));
     },
     "python3 -c \"import torch; s = torch.load('FILE', map_location='cpu'); s = "
     "s.get('state_dict', "
     "s) if isinstance(s, dict) else s.state_dict(); [print(n, tuple(t.shape)) for n, t in "
     "s.items() if torch.is_tensor(t)]\" > listing.txt"},
    {"an HDF5 file", [](const Looked& at) { return at.begins("\x89HDF"); },
     "python3 -c \"import h5py; h5py.File('FILE').visititems(lambda n, d: print(n, d.shape) if "
     "hasattr(d, 'shape') else None)\" > listing.txt"},
    {"a GGUF file, quantised for inference,", [](const Looked& at) { return at.begins("GGUF"); },
     "python3 -c \"from gguf import GGUFReader; [print(t.name, tuple(map(int, t.shape[::-1]))) for "
     "t in GGUFReader('FILE').tensors]\" > listing.txt"},
    {"Flax' msgpack", [](const Looked& at) { return at.ends(".msgpack"); },
     "python3 -c \"from flax.serialization import msgpack_restore as r; from flax.traverse_util "
     "import flatten_dict as f; [print('.'.join(k), v.shape) for k, v in "
     "f(r(open('FILE', 'rb').read())).items()]\" > listing.txt"},
    {"TensorFlow's frozen graph", [](const Looked& at) { return at.ends(".pb"); },
     "python3 -c \"import tensorflow as tf; g = tf.compat.v1.GraphDef(); "
     "g.ParseFromString(open('FILE', 'rb').read()); [print(n.name, "
     "tuple(tf.make_ndarray(n.attr['value'].tensor).shape)) for n in g.node if n.op == 'Const']\" "
     "> listing.txt"},
    {"TensorFlow's SavedModel", [](const Looked& at) { return at.has("saved_model.pb"); },
     "python3 -c \"import tensorflow as tf; [print(v.name, tuple(v.shape)) for v in "
     "tf.saved_model.load('FILE').trainable_variables]\" > listing.txt"},
    {"a folder of PyTorch's distributed checkpoints",
     [](const Looked& at) { return at.has(".metadata"); },
     "python3 -c \"from torch.distributed.checkpoint import FileSystemReader as R; [print(n, "
     "tuple(m.size)) for n, m in R('FILE').read_metadata().state_dict_metadata.items() if "
     "hasattr(m, 'size')]\" > listing.txt"},
    {"a folder of Hugging Face's", [](const Looked& at) { return at.has("config.json"); },
     "cp 'FILE/config.json' config.json"},
    {"a configuration of diffusers",
     [](const Looked& at) { return at.is_object() && at.holds("\"_diffusers_version\""); },
     "python3 -c \"import diffusers as d, json; c = json.load(open('FILE')); m = getattr(d, "
     "c['_class_name']).from_config(c); [print(n, tuple(p.shape)) for n, p in "
     "m.named_parameters()]\" > listing.txt"},
    {"DeepSpeed's configuration, which says how a model is trained and not which,",
     [](const Looked& at) {
       return at.is_object() &&
              (at.holds("\"zero_optimization\"") ||
               at.holds("\"train_micro_batch_size_per_gpu\"") || at.holds("\"train_batch_size\""));
     },
     "curl -LO https://huggingface.co/OWNER/NAME/resolve/main/config.json"},
    {"a list of Megatron's arguments",
     [](const Looked& at) { return at.holds("-num-layers ") && at.holds("-hidden-size "); },
     "echo '{\"model_type\": \"gpt2\", \"n_layer\": NUM_LAYERS, \"n_embd\": HIDDEN_SIZE, "
     "\"n_head\": NUM_ATTENTION_HEADS, \"n_positions\": MAX_POSITION_EMBEDDINGS, "
     "\"vocab_size\": 50304}' > config.json"},
    {"a PyTorch model as print() shows it",
     [](const Looked& at) {
       const std::string_view line = at.first.substr(0, at.first.find('\n'));
       return line.ends_with('(') && at.first.substr(line.size()).starts_with("\n  (");
     },
     "python3 -c 'for n, p in MODEL.named_parameters(): print(n, tuple(p.shape))' > listing.txt"},
    {"a program", [](const Looked& at) { return at.ends(".py") || at.ends(".ipynb"); },
     "python3 -c 'from MODULE import MODEL; [print(n, tuple(p.shape)) for n, p in "
     "MODEL.named_parameters()]' > listing.txt"},
    {"a repository of Hugging Face", is_repository,
     "curl -L https://huggingface.co/FILE/resolve/main/config.json -o config.json"},
    {"a model of timm's", [](const Looked& at) { return !at.is_there && is_word(at.path, "_."); },
     "python3 -c \"import timm; [print(n, tuple(p.shape)) for n, p in "
     "timm.create_model('FILE').named_parameters()]\" > listing.txt"},
};

/// Remedy of a row. Its command contains the path, unless a shell would interpret its characters.
std::string remedy_of(const OtherRow& row, const Looked& at) {
  constexpr std::string_view kFile = "FILE";
  std::string command(row.command);
  if (const std::size_t place = command.find(kFile);
      place != std::string::npos && is_word(at.path, "-_./+= ")) {
    command.replace(place, kFile.size(), at.path);
  }
  constexpr std::string_view kMakes = "this makes a file to give instead";
  if (!at.is_there) {
    return fmt::format("; if it is {}, {}: {}", row.name, kMakes, command);
  }
  return fmt::format("is {} and is not read; {}: {}", row.name, kMakes, command);
}

Looked look(const std::string& path, std::string& bytes) {
  std::error_code error;
  const bool is_file = fs::is_regular_file(path, error);
  if (is_file) bytes = first_bytes(path, kLooked);
  return {.path = path,
          .first = bytes,
          .is_file = is_file,
          .is_folder = fs::is_directory(path, error),
          .is_there = fs::exists(path, error)};
}

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

namespace {

std::string other_form(const Looked& at) {
  const auto* const row =
      std::ranges::find_if(kOthers, [&](const OtherRow& one) { return one.is(at); });
  return row != std::end(kOthers) ? remedy_of(*row, at) : std::string();
}

}  // namespace

std::string other_form(const std::string& path) {
  std::string bytes;
  return other_form(look(path, bytes));
}

std::optional<Described> read_description(const std::string& path) {
  std::string bytes;
  const Looked at = look(path, bytes);
  for (const FormRow& row : kForms) {
    if (!row.is(at)) continue;
    Described found = row.read(path);
    if (found.model.gradients.empty()) throw io::InputError(path, 0, "lists no tensor");
    const fs::path file = fs::path(path);
    const bool plain = file.stem() == "config" || file.stem() == "model";
    const fs::path folder = fs::absolute(file).parent_path().filename();
    found.model.name = io::printable((plain && !folder.empty() ? folder : file.stem()).string());
    found.model.source = fmt::format("{} {}", found.form, io::printable(file.filename().string()));
    return found;
  }
  const std::string other = other_form(at);
  if (other.empty()) return std::nullopt;
  throw io::InputError(
      path, 0, (at.is_there ? std::string() : "there is no such file" + near_models(path)) + other);
}

}  // namespace hipress::models
