#include "io/file_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "io/error.hpp"

namespace hipress::io {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kUnpack = "unpack it, and give the file in it";
constexpr std::string_view kNotRead = "give a file of the kind that is asked for";
constexpr std::string_view kWeights =
    "it holds values, which nothing here reads: hipress-import takes config.json, safetensors, or "
    "a "
    "listing of names and shapes";
constexpr std::string_view kReport =
    "nothing here reads it; give what torch.profiler's export_chrome_trace wrote";

constexpr std::string_view kImport = "hipress-import makes a model of it";

/// A magic number at an offset, and a text that the prefix must also contain.
struct Row {
  std::size_t offset;
  std::string_view mark;
  FileKind kind;
  std::string_view holds = {};
};
constexpr Row kRows[] = {
    {0, "PK\3\4"sv, {"a PyTorch checkpoint (a ZIP archive)", kWeights}, "data.pkl"},
    {0, "PK\3\4"sv, {"an archive of NumPy's arrays (a ZIP archive)", kWeights}, ".npy"},
    {0, "PK\3\4"sv, {"a ZIP archive", kUnpack}},
    {0, "PK\5\6"sv, {"an empty ZIP archive", kNotRead}},
    {257, "ustar"sv, {"a tar archive", kUnpack}},
    {0, "\x1f\x8b"sv, {"compressed by gzip", kUnpack}},
    {0, "\x1f\x9d"sv, {"compressed by compress", kUnpack}},
    {0, "\x28\xb5\x2f\xfd"sv, {"compressed by zstd", kUnpack}},
    {1, "\x2a\x4d\x18"sv, {"compressed by zstd or lz4", kUnpack}},
    {0, "\x04\x22\x4d\x18"sv, {"compressed by lz4", kUnpack}},
    {0,
     "\xfd"
     "7zXZ\0"sv,
     {"compressed by xz", kUnpack}},
    {0, "BZh"sv, {"compressed by bzip2", kUnpack}, "1AY&SY"},
    {0, "7z\xbc\xaf\x27\x1c"sv, {"a 7z archive", kUnpack}},
    {0, "Rar!\x1a\x07"sv, {"a RAR archive", kUnpack}},
    {0, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9"sv, {"a PyTorch checkpoint", kWeights}},
    {0, "\x80\x02}"sv, {"a Python pickle", kWeights}},
    {0, "\x80\x02]"sv, {"a Python pickle", kWeights}},
    {0,
     "\x80\x02"
     "c"sv,
     {"a Python pickle", kWeights}},
    {0, "\x80\x03}"sv, {"a Python pickle", kWeights}},
    {0, "\x80\x03]"sv, {"a Python pickle", kWeights}},
    {0,
     "\x80\x03"
     "c"sv,
     {"a Python pickle", kWeights}},
    {0, "\x80\x04\x95"sv, {"a Python pickle", kWeights}},
    {0, "\x80\x05\x95"sv, {"a Python pickle", kWeights}},
    {0, "\x93NUMPY"sv, {"an array of NumPy's", kWeights}},
    {5, "\0\0\0{\""sv, {"a safetensors file", kWeights}},
    {0, "GGUF"sv, {"a GGUF file", kWeights}, "\0"sv},
    {0, "\x89HDF\r\n\x1a\n"sv, {"an HDF5 file", kWeights}},
    {0, "PAR1\x15"sv, {"a Parquet file", kNotRead}},
    {0, "ARROW1\0"sv, {"an Arrow file", kNotRead}},
    {0, "SQLite format 3\0"sv, {"a SQLite database, as nsys exports", kReport}},
    {0, "NVR\0"sv, {"a report of Nsight Compute (ncu)", kReport}},
    {0, "\x89PNG\r\n\x1a\n"sv, {"a PNG picture", kNotRead}},
    {0, "\xff\xd8\xff"sv, {"a JPEG picture", kNotRead}},
    {0, "GIF8"sv, {"a GIF picture", kNotRead}, "\0"sv},
    {0, "%PDF-"sv, {"a PDF document", kNotRead}},
    {0,
     "\x7f"
     "ELF"sv,
     {"a program", kNotRead}},
    {0,
     "version https://git-lfs"sv,
     {"a pointer of Git LFS, and not the file itself", "fetch it: git lfs pull"}},
    {0,
     "\0\5\x16\7"sv,
     {"metadata of macOS about a file, and not the file itself",
      "give the file without ._ before it"}},
    {0,
     "/annex/objects/"sv,
     {"a pointer of git-annex, and not the file itself", "fetch it: git annex get"}},
    {0, "\xff\xfe"sv, {"text in UTF-16", "save it as UTF-8, or give it as it was exported"}},
    {0, "\xfe\xff"sv, {"text in UTF-16", "save it as UTF-8, or give it as it was exported"}},
    {1, "\0\""sv, {"text in UTF-16", "save it as UTF-8, or give it as it was exported"}},
    {0, "{\0"sv, {"text in UTF-16", "save it as UTF-8, or give it as it was exported"}},
    {0, "[\0"sv, {"text in UTF-16", "save it as UTF-8, or give it as it was exported"}},
    {0, "\0{"sv, {"text in UTF-16", "save it as UTF-8, or give it as it was exported"}},
    {0, "\0["sv, {"text in UTF-16", "save it as UTF-8, or give it as it was exported"}},
};

/// Beginnings of text formats after leading blanks, in lower case.
constexpr Row kTextRows[] = {
    {0,
     "<!doctype html"sv,
     {"a page of HTML", "download the file itself, not the page that shows it"}},
    {0, "<html"sv, {"a page of HTML", "download the file itself, not the page that shows it"}},
    {0, "<?xml"sv, {"XML", kNotRead}},
    {0, "{"sv, {"a trace of a training job", kImport}, "\"schemaversion\""},
    {0, "{"sv, {"a trace of a training job", kImport}, "\"traceevents\""},
    {0, "["sv, {"a trace of a training job", kImport}, "\"ph\""},
};

bool bears(std::string_view first, const Row& row) {
  return first.size() > row.offset && first.substr(row.offset).starts_with(row.mark) &&
         first.find(row.holds) != std::string_view::npos;
}

}  // namespace

const FileKind* kind_of(std::string_view first) {
  first = first.substr(0, kKindBytes);
  for (const Row& row : kRows) {
    if (bears(first, row)) return &row.kind;
  }
  std::string text(first.substr(std::min(first.find_first_not_of(" \t\r\n"), first.size())));
  std::ranges::transform(text, text.begin(), [](unsigned char one) { return std::tolower(one); });
  for (const Row& row : kTextRows) {
    if (bears(text, row)) return &row.kind;
  }
  return nullptr;
}

void refuse_kind(const std::string& file, std::string_view first) {
  const FileKind* const kind = kind_of(first);
  if (kind == nullptr) return;
  throw InputError(file, 0, fmt::format("is {}; {}", kind->is, kind->remedy));
}

}  // namespace hipress::io
