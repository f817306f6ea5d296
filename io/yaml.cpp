#include "io/yaml.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <set>
#include <span>
#include <sstream>
#include <string_view>
#include <unordered_map>
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

/// Throws InputError for control bytes other than tab and line ends, which yaml-cpp may take for
/// the end of the file, and for bytes that are not UTF-8, which it would pass on.
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

/// Limit on the expansion of a file's aliases (*name): bytes of text, plus kBytesOfNode per value.
/// A few bytes of aliases can expand without bound.
constexpr std::int64_t kMaxAliasBytes = std::int64_t{16} << 20;
constexpr std::int64_t kBytesOfNode = 64;

/// Limit on the number of keys, values, lists and maps in a file. Each takes half a kilobyte of
/// memory, but as little as two bytes of a file. A model of 50 000 gradients has about 600 000.
constexpr std::int64_t kMostNodes = 1'000'000;

/// Limit of nesting.
constexpr std::size_t kMostLevels = 64;

/// Refuses documents with too many values or levels, aliases that expand too far, and text after
/// the document. YAML::Load ignores such text, and YAML::LoadAll does not terminate on a stray `,`
/// or `]` in it; inspect() therefore asks for a second document once.
class Inspector : public YAML::EventHandler {
 public:
  explicit Inspector(const std::string& file) : file_(file) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    fail(mark, "text behind the end of the YAML document; one document per file is read");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add_leaf(mark, anchor, 0); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string& value) override {
    add_leaf(mark, anchor, static_cast<std::int64_t>(value.size()));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = bytes_of_.find(anchor);
    if (known == bytes_of_.end()) fail(mark, "an alias stands for a value that it is part of");
    bytes_ += known->second;
    by_aliases_ += known->second;
    if (by_aliases_ <= kMaxAliasBytes) return;
    fail(mark,
         fmt::format("the aliases (*name) up to here stand for more than {}; write fewer of them",
                     format_size(kMaxAliasBytes)));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin_level(mark, anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin_level(mark, anchor);
  }
  void OnMapEnd() override { end(); }

 private:
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const {
    throw InputError(file_, mark.line + 1, message);
  }
  void begin(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (++nodes_ > kMostNodes) {
      fail(mark,
           fmt::format("has more than {} keys and values; leave out unused ones, or split the file",
                       kMostNodes));
    }
    open_.emplace_back(anchor, bytes_);
    bytes_ += kBytesOfNode;
  }
  void begin_level(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (open_.size() == kMostLevels) {
      fail(mark,
           fmt::format("has lists and maps in more than {} levels; write fewer", kMostLevels));
    }
    begin(mark, anchor);
  }
  void end() {
    const auto [anchor, before] = open_.back();
    open_.pop_back();
    if (anchor != YAML::NullAnchor) bytes_of_[anchor] = bytes_ - before;
  }
  void add_leaf(const YAML::Mark& mark, YAML::anchor_t anchor, std::int64_t text_bytes) {
    begin(mark, anchor);
    bytes_ += text_bytes;
    end();
  }

  const std::string& file_;
  int documents_ = 0;
  std::int64_t nodes_ = 0;
  std::int64_t bytes_ = 0;       ///< size of the values so far, aliases included
  std::int64_t by_aliases_ = 0;  ///< part of bytes_ that is due to aliases
  std::vector<std::pair<YAML::anchor_t, std::int64_t>>
      open_;  ///< value of bytes_ at the start of each open list and map
  std::unordered_map<YAML::anchor_t, std::int64_t> bytes_of_;
};

void inspect(const std::string& text, const std::string& file) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Inspector inspector(file);
  if (parser.HandleNextDocument(inspector)) parser.HandleNextDocument(inspector);
}

int last_line(std::string_view text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n')) + !text.ends_with('\n');
}

/// Inspects the document with an end marker appended: yaml-cpp would accept a quoted text that only
/// the end of the file ends, but refuses the marker within a quoted text.
void inspect_to_end(const std::string& text, const std::string& file) {
  const bool ends_line = text.ends_with('\n');
  try {
    inspect(text + (ends_line ? "...\n" : "\n...\n"), file);
  } catch (const YAML::ParserException& error) {
    const int lines = last_line(text);
    if (error.msg != YAML::ErrorMsg::DOC_IN_SCALAR || error.mark.line < lines) throw;
    throw InputError(file, lines,
                     "ends within a quoted text: copy the file again, or close the quotes");
  }
}

/// True if the text has a %YAML directive before its document.
bool has_directive(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with("%YAML")) return true;
    if (!line.starts_with('#') && line.find_first_not_of(" \t\r") != line.npos) return false;
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return false;
}

void require_end_marker(std::string_view text, const std::string& file) {
  if (!has_directive(text) || has_end_marker(text)) return;
  throw InputError(file, last_line(text),
                   "opens with %YAML and ends without the line '...', so it is cut off: copy it "
                   "again, or leave out the line of %YAML");
}

/// Refuses a file whose last line may be truncated: it has no line end, and YAML could go on in it.
void require_line_end(const std::string& text, const std::string& file) {
  if (text.ends_with('\n') || text.ends_with('\r') || has_end_marker(text)) return;
  for (const char* more : {" x", "''"}) {
    try {
      inspect(text + more, file);
    } catch (const std::exception&) {
      continue;
    }
    throw InputError(file, last_line(text),
                     "the file ends without a line end, so its last value may be cut off: copy the "
                     "file again, or end its last line");
  }
}

}  // namespace

bool has_end_marker(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \r\n");
  return last != text.npos && last >= 3 && text.substr(last - 3, 4) == "\n...";
}

bool is_yaml_name(std::string_view path) {
  return path.ends_with(".yaml") || path.ends_with(".yml");
}

YamlNode YamlNode::load(const std::string& path) {
  // Parsed files take many times their size in memory.
  constexpr std::int64_t kMaxFileBytes = std::int64_t{64} << 20;
  const std::string text = read_file(path, {.most_bytes = kMaxFileBytes});
  YamlNode root = parse(text, path);
  require_line_end(text, path);
  return root;
}

YamlNode YamlNode::parse(const std::string& text, const std::string& name) {
  refuse_kind(name, text);
  require_text(text, name);
  YAML::Node root;
  try {
    inspect_to_end(text, name);
    root = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    const int line = std::min(error.mark.line + 1, last_line(text));
    throw InputError(name, line, "not valid YAML: " + printable(error.msg));
  }
  if (root.IsNull()) throw InputError(name, 0, "is empty, a YAML document was expected");
  require_end_marker(text, name);
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

void YamlNode::expect_schema(std::string_view known, std::string_view remedy) const {
  const std::optional<YamlNode> schema = find("schema");
  if (!schema || schema->text() == known) return;
  schema->fail(fmt::format("must be {}, got {}{}", known, quote(schema->text()), remedy));
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
    if (const std::string found = unfit_for_name(key); !found.empty()) {
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

/// The scalar. Throws InputError if `found` names a fault: escapes ("\e", "\x9b") can produce
/// characters that the file's text does not have.
std::string YamlNode::fit_text(const std::string& found) const {
  if (found.empty()) return scalar();
  fail(fmt::format("must not hold {}, got {}; write it without", found, quote(scalar())));
}

std::string YamlNode::text() const { return fit_text(unfit_for_name(scalar())); }
std::string YamlNode::prose() const { return fit_text(first_unprintable(scalar(), "\n\t")); }

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
