#include "io/yaml.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <set>
#include <span>
#include <sstream>
#include <utility>

#include "io/error.hpp"
#include "io/file.hpp"
#include "io/file_kind.hpp"
#include "io/input_file.hpp"
#include "io/quantity.hpp"
#include "io/suggestion.hpp"
#include "io/utf8.hpp"

namespace hipress::io {
namespace {

int line_of(const YAML::Node& node) { return node.Mark().line + 1; }

const char* kind_of(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map:
      return "a map";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Scalar:
      return "a single value";
    default:
      return "nothing";
  }
}

/// YAML allows no control bytes but tab and line ends; yaml-cpp takes some of them for the end of
/// the file. It takes other encodings for UTF-8, which what we write of them would not be.
void require_text(const std::string& text, const std::string& file) {
  int line = 1;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t') {
      throw InputError(
          file, line,
          fmt::format("control byte {}: this is not a YAML text file", quote(text.substr(i, 1))));
    }
    const std::size_t length = utf8_length(std::string_view(text).substr(i));
    if (length == 0) {
      throw InputError(file, line,
                       fmt::format("byte 0x{:02x} is not UTF-8; give a UTF-8 text file", byte));
    }
    if (byte == '\n') ++line;
    i += length;
  }
}

/// Takes note of where a document starts and of nothing else.
class DocumentStart : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { line = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  int line = 0;
};

/// yaml-cpp's Load ignores whatever follows the first document, and its LoadAll never comes to an
/// end where a stray `,` or `]` follows; so the second document is asked for by hand, and only
/// once.
void refuse_second_document(const std::string& text, const std::string& file) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart start;
  parser.HandleNextDocument(start);
  if (parser.HandleNextDocument(start)) {
    throw InputError(file, start.line,
                     "text behind the end of the YAML document; one document per file is read");
  }
}

}  // namespace

bool is_yaml_name(std::string_view path) {
  return path.ends_with(".yaml") || path.ends_with(".yml");
}

YamlNode YamlNode::load(const std::string& path) {
  // Parsed, a file takes many times its size.
  constexpr std::int64_t kMaxFileBytes = std::int64_t{64} << 20;
  return parse(read_file(path, {.most_bytes = kMaxFileBytes}), path);
}

YamlNode YamlNode::parse(const std::string& text, const std::string& name) {
  refuse_kind(name, text);
  require_text(text, name);
  YAML::Node root;
  try {
    root = YAML::Load(text);
    refuse_second_document(text, name);
  } catch (const YAML::Exception& error) {
    throw InputError(name, error.mark.line + 1, "not valid YAML: " + printable(error.msg));
  }
  if (root.IsNull()) throw InputError(name, 0, "is empty, a YAML document was expected");
  return YamlNode(root, std::make_shared<const std::string>(name), "", line_of(root));
}

YamlNode YamlNode::named(const std::string& label) const {
  return YamlNode(node_, file_, label + ":", line_);
}

std::string YamlNode::child_path(std::string_view key) const {
  if (path_.empty()) return std::string(key);
  return fmt::format("{}{}{}", path_, path_.ends_with(':') ? " " : ".", key);
}

void YamlNode::require_map() const {
  if (!node_.IsMap()) fail(fmt::format("must be a map, got {}", kind_of(node_)));
}

const YamlNode& YamlNode::expect_keys(std::initializer_list<std::string_view> known) const {
  for (const auto& [key, child] : entries()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::span<const std::string_view> words(known.begin(), known.size());
    throw InputError(*file_, child.line(),
                     fmt::format("unknown key {}{}", quote(child.path()), suggestion(key, words)));
  }
  return *this;
}

bool YamlNode::has(std::string_view key) const { return find(key).has_value(); }

YamlNode YamlNode::at(std::string_view key) const {
  std::optional<YamlNode> found = find(key);
  if (!found) fail(fmt::format("missing key {}", quote(key)));
  return *std::move(found);
}

std::optional<YamlNode> YamlNode::find(std::string_view key) const {
  require_map();
  for (const auto& entry : node_) {
    if (entry.first.IsScalar() && entry.first.Scalar() == key) {
      return YamlNode(entry.second, file_, child_path(key), line_of(entry.first));
    }
  }
  return std::nullopt;
}

std::vector<YamlNode> YamlNode::items() const {
  if (!node_.IsSequence()) fail(fmt::format("must be a list, got {}", kind_of(node_)));
  std::vector<YamlNode> items;
  items.reserve(node_.size());
  for (const YAML::Node& item : node_) {
    const std::string path = fmt::format("{}[{}]", path_, items.size());
    items.push_back(YamlNode(item, file_, path, line_of(item)));
  }
  return items;
}

std::vector<std::pair<std::string, YamlNode>> YamlNode::entries() const {
  require_map();
  std::vector<std::pair<std::string, YamlNode>> entries;
  std::set<std::string_view> seen;
  for (const auto& entry : node_) {
    const int key_line = line_of(entry.first);
    if (!entry.first.IsScalar()) {
      throw InputError(*file_, key_line, "a key must be a single value");
    }
    const std::string& key = entry.first.Scalar();
    if (const std::string found = first_unprintable(key); !found.empty()) {
      throw InputError(*file_, key_line, fmt::format("key {} must not hold {}", quote(key), found));
    }
    const std::string path = child_path(key);
    if (!seen.insert(key).second) {
      throw InputError(*file_, key_line, fmt::format("key {} is given twice", quote(path)));
    }
    entries.emplace_back(key, YamlNode(entry.second, file_, path, key_line));
  }
  return entries;
}

const std::string& YamlNode::scalar() const {
  if (!node_.IsScalar()) fail(fmt::format("must be a single value, got {}", kind_of(node_)));
  return node_.Scalar();
}

/// Escapes ("\e", "\x9b") bring characters into a value that the text of the file does not have.
std::string YamlNode::checked_text(std::string_view allowed) const {
  const std::string& value = scalar();
  if (const std::string found = first_unprintable(value, allowed); !found.empty()) {
    fail(fmt::format("must not hold {}, got {}; write it without", found, quote(value)));
  }
  return value;
}

std::string YamlNode::text() const { return checked_text(""); }
std::string YamlNode::prose() const { return checked_text("\n\t"); }

std::string YamlNode::quantity_text() const { return node_.IsNull() ? std::string() : scalar(); }

template <typename Parser>
auto YamlNode::located(Parser parser) const {
  const std::string text = quantity_text();
  try {
    return parser(text, path_.empty() ? std::string_view("value") : std::string_view(path_));
  } catch (const InputError& error) {
    throw InputError(*file_, line_, error.what());
  }
}

std::int64_t YamlNode::integer(std::int64_t least, std::int64_t most) const {
  return located([=](std::string_view text, std::string_view what) {
    return parse_integer(text, what, least, most);
  });
}

double YamlNode::number() const { return located(parse_number); }

double YamlNode::number(double least, double most, std::string_view meaning) const {
  const double value = number();
  if (value < least || value > most) {
    fail(fmt::format("must be {:g} to {:g}{}{}{}, got {}", least, most, meaning.empty() ? "" : " (",
                     meaning, meaning.empty() ? "" : ")", quote(scalar())));
  }
  return value;
}

double YamlNode::bandwidth() const {
  const double value = located(parse_bandwidth);
  if (value < kMinBandwidth || value > kMaxBandwidth) {
    fail(fmt::format("must be from {} to {}, got {}", format_bandwidth(kMinBandwidth),
                     format_bandwidth(kMaxBandwidth), quote(scalar())));
  }
  return value;
}

double YamlNode::duration(double most_s) const {
  const double value = located(parse_duration);
  if (value > most_s) fail(fmt::format("must be 0s to {:g}s, got {}", most_s, quote(scalar())));
  return value;
}

std::int64_t YamlNode::size() const {
  const std::int64_t value = located(parse_size);
  if (value > kMaxBytes) {
    fail(fmt::format("must be at most {}, got {}", format_size(kMaxBytes), quote(scalar())));
  }
  return value;
}

bool YamlNode::boolean() const {
  const std::string value = quantity_text();
  if (value != "true" && value != "false") {
    fail(fmt::format("must be true or false, got {}", quote(value)));
  }
  return value == "true";
}

void YamlNode::fail(const std::string& message) const {
  const std::string separator = path_.empty() ? "" : path_.ends_with(':') ? " " : ": ";
  throw InputError(*file_, line_, path_ + separator + message);
}

}  // namespace hipress::io
