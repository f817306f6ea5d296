#include "io/file_kind.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "io/error.hpp"
#include "io/yaml.hpp"

namespace hipress::io {
namespace {

using namespace std::string_literals;
using Catch::Matchers::Contains;

std::string kind(const std::string& first) {
  const FileKind* const found = kind_of(first);
  return found == nullptr ? "" : std::string(found->is);
}

TEST_CASE("a file's first bytes say what it is") {
  struct Row {
    std::string first;
    const char* is;
  };
  const Row rows[] = {
      {"PK\3\4\24\0\0\0\10\0"s + "trace.json", "a ZIP archive"},
      {"PK\3\4\0\0\10\10\0\0"s + "archive/data.pkl", "a PyTorch checkpoint (a ZIP archive)"},
      {"PK\3\4\24\0\0\0"s + "arr_0.npy", "an archive of NumPy's arrays (a ZIP archive)"},
      {"PK\5\6"s + std::string(18, '\0'), "an empty ZIP archive"},
      {std::string(257, 'x') + "ustar\0"s + "00", "a tar archive"},
      {"\x1f\x8b\x08"s, "compressed by gzip"},
      {"\x28\xb5\x2f\xfd\x04"s, "compressed by zstd"},
      {"\x50\x2a\x4d\x18\x04"s, "compressed by zstd or lz4"},
      {"\xfd"s + "7zXZ\0\0"s, "compressed by xz"},
      {"BZh91AY&SY"s, "compressed by bzip2"},
      {"7z\xbc\xaf\x27\x1c\0\4"s, "a 7z archive"},
      {"Rar!\x1a\x07\1\0"s, "a RAR archive"},
      {"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20"s, "a PyTorch checkpoint"},
      {"\x80\x04\x95\x10\0"s, "a Python pickle"},
      {"\x80\x02}q\0"s, "a Python pickle"},
      {"\x93NUMPY\1\0"s, "an array of NumPy's"},
      {"\x40\1\0\0\0\0\0\0{\"__metadata__\""s, "a safetensors file"},
      {"\x89HDF\r\n\x1a\n"s, "an HDF5 file"},
      {"SQLite format 3\0\x10"s, "a SQLite database, as nsys exports"},
      {"NVR\0\1"s, "a report of Nsight Compute (ncu)"},
      {"\x89PNG\r\n\x1a\n\0\0"s, "a PNG picture"},
      {"\x7f"s + "ELF\2\1", "a program"},
      {"%PDF-1.7\n", "a PDF document"},
      {"\0\5\x16\7\0\2\0\0Mac OS X"s, "metadata of macOS about a file, and not the file itself"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
       "a pointer of Git LFS, and not the file itself"},
      {"\xff\xfe{\0\"\0"s, "text in UTF-16"},
      {"{\0\"\0"s, "text in UTF-16"},
      {"\n <!DOCTYPE html>\n<html>", "a page of HTML"},
      {"<HTML><head>", "a page of HTML"},
      {"{\n  \"schemaVersion\": 1,", "a trace of a training job"},
      {R"({"displayTimeUnit":"ms","traceEvents":[)", "a trace of a training job"},
      {R"([{"name": "x", "ph": "X"})", "a trace of a training job"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.is);
    CHECK(kind(row.first) == row.is);
  }
}

TEST_CASE("what is read bears no mark of another kind") {
  for (const std::string& first :
       {""s, "P"s, "fc.weight,4096\n"s, "PAR1,100,y,2\n"s, "GGUF,4\n"s, "GIF8,12\n"s, "BZh,9\n"s,
        "name: x\ngradients: []\n"s, "{name: x, gradients: []}"s, "[1, 2]"s, "# <html>\n"s,
        "\x07\x0a\x05\x30.0.4\x20"s, "\x80\x02\x0a\x05\x31.0.0"s, "schema: hipress.profile/1\n"s}) {
    CAPTURE(first);
    CHECK(kind(first).empty());
  }
}

TEST_CASE("a YAML file of another kind is named with its remedy") {
  CHECK_THROWS_WITH(YamlNode::parse("PK\3\4\24\0\0\0model.yaml"s, "m.yaml"),
                    "m.yaml: is a ZIP archive; unpack it, and give the file in it");
  CHECK_THROWS_WITH(YamlNode::parse("version https://git-lfs.github.com/spec/v1\n", "m.yaml"),
                    Contains("pointer of Git LFS") && Contains("git lfs pull"));
  CHECK_THROWS_WITH(YamlNode::parse(R"({"schemaVersion": 1, "traceEvents": []})", "m.yaml"),
                    Contains("a trace of a training job; hipress-import makes a model of it"));
}

}  // namespace
}  // namespace hipress::io
