// Tests of the forms in which people have models, each file as its program writes it. A form is
// read, or refused with the command that converts it into a readable one.

#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "models/descriptions.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace hipress::models;
using Catch::Contains;
using hipress::tests::complaint;
using hipress::tests::TemporaryFolder;

namespace {

/// Encodes a varint in protobuf's wire format. field() encodes a field of bytes.
std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes + static_cast<char>(value);
}
std::string field(std::uint64_t number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string number(std::uint64_t of, std::uint64_t value) {
  return varint(of << 3) + varint(value);
}

/// A TensorProto: dims (1), data_type (2), name (8), raw_data (9).
std::string initializer(const std::string& name, const std::vector<std::uint64_t>& shape,
                        std::uint64_t type = 1, std::size_t raw_bytes = 48) {
  std::string tensor;
  for (const std::uint64_t one : shape) tensor += number(1, one);
  return field(5,
               tensor + number(2, type) + field(8, name) + field(9, std::string(raw_bytes, 'x')));
}

/// A ModelProto: ir_version (1), producer_name (2), graph (7) with a node and its name.
std::string onnx(const std::string& initializers) {
  return number(1, 8) + field(2, "pytorch") +
         field(7, field(1, field(4, "Gemm")) + field(2, "main_graph") + initializers) +
         field(8, number(2, 17));
}

std::string safetensors() {
  const std::string header =
      R"({"fc.weight": {"dtype": "F32", "shape": [10, 20], "data_offsets": [0, 800]},)"
      R"( "bn.running_mean": {"dtype": "F32", "shape": [10], "data_offsets": [800, 840]},)"
      R"( "fc.bias": {"dtype": "F32", "shape": [10], "data_offsets": [840, 880]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size() & 0xff);
  bytes[1] = static_cast<char>(header.size() >> 8);
  return bytes + header;
}

/// Beginning of a zip archive: the header of its first entry.
std::string zip_with(const std::string& first) {
  return std::string("PK\x03\x04\x00\x00", 6) + std::string(20, '\0') + first + "more";
}

constexpr std::int64_t kParameters = 210;  // fc.weight (10, 20) and fc.bias (10)

struct Read {
  const char* what;
  const char* file;
  std::string text;
};

const std::vector<Read>& read_forms() {
  static const std::vector<Read> forms = {
      {"safetensors", "a.safetensors", safetensors()},
      {"ONNX", "a.onnx",
       onnx(initializer("fc.weight", {10, 20}) + initializer("shape", {2}, 7) +
            initializer("fc.bias", {10}))},
      {"listing of torch.Size", "a.txt",
       "fc.weight torch.Size([10, 20])\nfc.bias torch.Size([10])\n"},
      {"listing of tuples", "a.txt", "fc.weight (10, 20)\nfc.bias (10,)\n"},
      {"listing of pairs", "a.txt",
       "('fc.weight', torch.Size([10, 20]))\n('fc.bias', torch.Size([10]))\n"},
      {"listing with colons", "a.txt", "fc.weight: [10, 20]\nfc.bias: [10]\n"},
      {"listing with tabs and counts", "a.txt",
       "fc.weight\ttorch.Size([10, 20])\t200\nfc.bias\ttorch.Size([10])\t10\n"},
      {"listing with bars and dtypes", "a.txt",
       "fc.weight | (10, 20) | torch.float32\nfc.bias | (10,) | torch.float32\n"},
      {"variables of TensorFlow", "a.txt", "fc/kernel:0 (20, 10)\nfc/bias:0 (10,)\n"},
      {"torchinfo", "a.txt", R"(==========================================
Layer (type:depth-idx)    Output Shape    Param #
==========================================
Net                       [1, 10]         --
├─Linear (fc): 1-1        [1, 10]         210
├─Frozen: 1-2             [1, 10]         (1,024)
==========================================
Total params: 210
)"},
      {"torchsummary", "a.txt", R"(----------------------------------------------------------------
        Layer (type)               Output Shape         Param #
================================================================
            Linear-1                   [-1, 10]             210
              ReLU-2                   [-1, 10]               0
================================================================
Total params: 210
Trainable params: 210
)"},
      {"Keras 2", "a.txt", R"(Model: "sequential"
_________________________________________________________________
 Layer (type)                Output Shape              Param #
=================================================================
 dense (Dense)               (None, 10)                210
 dropout (Dropout)           (None, 10)                0
=================================================================
Total params: 210
)"},
      {"Keras 3", "a.txt", R"(Model: "sequential"
┏━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━┳━━━━━━━━━━┓
┃ Layer (type)    ┃ Output Shape ┃  Param # ┃
┡━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━╇━━━━━━━━━━┩
│ dense (Dense)   │ (None, 5,    │      210 │
│                 │ 10)          │          │
└─────────────────┴──────────────┴──────────┘
 Total params: 210 (840.00 B)
)"},
  };
  return forms;
}

struct Refused {
  const char* what;
  const char* file;
  std::string text;
  const char* named;    ///< part of the refusal: the form
  const char* command;  ///< part of the refusal: the command
};

const std::vector<Refused>& refused_forms() {
  static const std::vector<Refused> forms = {
      {"pickle", "a.pt", zip_with("archive/data.pkl"), "PyTorch's pickle", "torch.load('"},
      {"old pickle", "pytorch_model.bin", "\x80\x02\x8a\x0a", "PyTorch's pickle", "torch.load('"},
      {"TorchScript", "a.pt", zip_with("m/data.pkl m/code/__torch__/a.py"), "TorchScript",
       "torch.jit.load('"},
      {"NumPy", "a.npz", zip_with("w.npy"), "NumPy's archive", "numpy.load('"},
      {"Keras 3's archive", "a.keras", zip_with("metadata.json"), "Keras' archive", "load_model('"},
      {"HDF5", "a.h5", "\x89HDF\r\n", "an HDF5 file", "h5py.File('"},
      {"GGUF", "a.gguf", "GGUF\x03", "a GGUF file", "GGUFReader('"},
      {"Flax", "flax_model.msgpack", "\x81\xa6params", "Flax' msgpack", "msgpack_restore"},
      {"frozen graph", "a.pb", "\x0a\x05", "frozen graph", "GraphDef()"},
      {"DeepSpeed", "ds.json", R"({"train_micro_batch_size_per_gpu": 4})", "DeepSpeed",
       "resolve/main/config.json"},
      {"Megatron", "args.sh", "GPT_ARGS=\"--num-layers 24 --hidden-size 1024\"\n", "Megatron",
       "\"n_layer\": NUM_LAYERS"},
      {"diffusers", "config.json",
       R"({"_class_name": "UNet2DConditionModel", "_diffusers_version": "0.6.0"})", "diffusers",
       "from_config(c)"},
      {"print(model)", "a.txt", "Net(\n  (fc): Linear(in_features=20, out_features=10)\n)\n",
       "as print() shows it", "named_parameters()"},
      {"program", "train.py", "import torch\n", "a program", "named_parameters()"},
  };
  return forms;
}

std::string refusal(const std::string& path) {
  return complaint([&] { read_description(path); });
}

}  // namespace

TEST_CASE("forms in which people have a model are read") {
  for (const Read& form : read_forms()) {
    INFO(form.what);
    const TemporaryFolder folder;
    const auto found = read_description(folder.file(form.file, form.text));
    REQUIRE(found.has_value());
    CHECK(total_elements(found->model) == kParameters);
  }
}

TEST_CASE("an index of weights takes the config.json beside it, of pickles too") {
  const TemporaryFolder folder;
  const std::string index = folder.file("pytorch_model.bin.index.json",
                                        R"({"weight_map": {"a": "pytorch_model-00001.bin"}})");
  folder.file("pytorch_model-00001.bin", "\x80\x02");
  CHECK_THAT(refusal(index), Contains("names tensors without shapes") && Contains("config.json"));
  folder.file("config.json",
              R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
                  "n_positions": 1024, "vocab_size": 50257})");
  CHECK(total_elements(read_description(index).value().model) == 124'439'808);
}

TEST_CASE("forms that are not read are refused with the command that makes one that is") {
  for (const Refused& form : refused_forms()) {
    INFO(form.what);
    const TemporaryFolder folder;
    const std::string path = folder.file(form.file, form.text);
    CHECK_THAT(refusal(path), Contains(path) && Contains(form.named) && Contains(form.command) &&
                                  Contains("this makes a file to give instead"));
  }
}

TEST_CASE("folders and names elsewhere are refused with a command, too") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("saved"));
  folder.file("saved/saved_model.pb", "");
  CHECK_THAT(refusal(folder.path("saved")),
             Contains("SavedModel") && Contains("saved_model.load("));
  std::filesystem::create_directory(folder.path("shards"));
  folder.file("shards/.metadata", "");
  CHECK_THAT(refusal(folder.path("shards")), Contains("FileSystemReader"));
  std::filesystem::create_directory(folder.path("repository"));
  folder.file("repository/config.json", "{}");
  CHECK_THAT(refusal(folder.path("repository")), Contains("/config.json"));
  CHECK_THAT(
      complaint([] { read_model("meta-llama/Meta-Llama-3-8B"); }),
      Contains("https://huggingface.co/meta-llama/Meta-Llama-3-8B/resolve/main/config.json"));
  CHECK_THAT(complaint([] { read_model("vit_base_patch16_224"); }),
             Contains("timm.create_model('vit_base_patch16_224')"));
  CHECK_THAT(complaint([] { read_model("nowhere/model.json"); }), !Contains("huggingface"));
  CHECK_THAT(complaint([] { read_model(std::string(5000, 'n')); }), !Contains("timm"));
  // Running statistics of norms do not count as parameters.
  CHECK_THAT(read_description(folder.file("a.safetensors", safetensors())).value().said.back(),
             Contains("1 running statistics"));
}

TEST_CASE("ONNX files that lie about their lengths are refused") {
  const TemporaryFolder folder;
  const auto complained = [&](const std::string& bytes) {
    return refusal(folder.file("a.onnx", bytes));
  };
  const std::string good = onnx(initializer("w", {4, 3}));
  for (std::size_t size = 1; size < good.size() - 4; ++size) {
    INFO(size);
    CHECK_FALSE(complained(good.substr(0, size)).empty());  // cut short
  }
  CHECK_THAT(complained(field(7, field(5, number(1, 4) + varint(8 << 3 | 2) + varint(1 << 30)))),
             Contains("a field is longer than its message"));
  CHECK_THAT(complained(std::string(11, '\xff')), Contains("more than ten bytes"));
  CHECK_THAT(complained(varint(1 << 3 | 3)), Contains("wire type 3"));
  CHECK_THAT(complained(varint(0) + varint(1)), Contains("a field without number"));
  CHECK_THAT(complained(number(1, 8)), Contains("no graph"));
  CHECK_THAT(complained(onnx(initializer("w", std::vector<std::uint64_t>(17, 1)))),
             Contains("more than 16 dimensions"));
  CHECK_THAT(complained(onnx(initializer(std::string(5000, 'n'), {1}))), Contains("4096 bytes"));
  CHECK_THAT(complained(onnx(initializer("w", {UINT64_MAX}))), Contains("shape of none"));
  CHECK_THAT(complained(onnx(initializer("w", {1ULL << 40, 1ULL << 40}))),
             Contains("too many elements"));
  CHECK_THAT(complained(onnx(initializer("w", {2}) + initializer("w", {2}))), Contains("twice"));
  CHECK_THAT(complained(onnx(field(15, ""))), Contains("sparse"));
  CHECK_THAT(complained(onnx("")), Contains("lists no tensor"));
  // Dimensions may be packed into one field.
  const std::string packed =
      field(5, field(1, varint(4) + varint(3)) + number(2, 10) + field(8, "w"));
  CHECK(total_elements(read_description(folder.file("a.onnx", onnx(packed))).value().model) == 12);
}
