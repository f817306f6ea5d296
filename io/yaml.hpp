#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hipress::io {

/// Whether a file of that name is read and written as YAML: it ends in .yaml or .yml.
bool is_yaml_name(std::string_view path);

/// Longest duration that files may give, in seconds: what is simulated must fit 64-bit picoseconds.
inline constexpr double kLongestDuration_s = 1e6;

/// Least and most bytes per second that files may give: beyond, it is a mistake.
inline constexpr double kMinBandwidth = 1e-3, kMaxBandwidth = 1e15;

/// Largest size that files may give: 2^48 elements of fp32.
inline constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;

/// A node of a YAML document that knows its file and line, so that every complaint names them.
/// All accessors throw InputError of the form `file:line: path.to.key must be …, got '…'`.
class YamlNode {
 public:
  /// Reads a whole file; a missing, unreadable, empty or malformed one is an InputError.
  static YamlNode load(const std::string& path);

  /// Parses `text`; `name` stands for the file in messages.
  static YamlNode parse(const std::string& text, const std::string& name);

  /// Requires a map whose keys are all in `known`. Call it first: unknown keys are reported, with
  /// their line and the nearest known key, before missing ones.
  const YamlNode& expect_keys(std::initializer_list<std::string_view> known) const;

  bool is_map() const { return node_.IsMap(); }
  bool is_list() const { return node_.IsSequence(); }
  bool has(std::string_view key) const;
  /// Child of a map; a missing one is an error at the line of the map's own key.
  YamlNode at(std::string_view key) const;
  /// Child of a map, if it is there.
  std::optional<YamlNode> find(std::string_view key) const;
  /// Elements of a sequence.
  std::vector<YamlNode> items() const;
  /// Entries of a map, in the file's order; a key that is given twice or must not be printed as it
  /// is (utf8.hpp) is an error.
  std::vector<std::pair<std::string, YamlNode>> entries() const;

  std::string text() const;   ///< any scalar that is fit for a name (utf8.hpp)
  std::string prose() const;  ///< printable text of any length, or several lines: for people
  std::int64_t integer(std::int64_t least, std::int64_t most = INT64_MAX) const;
  double number() const;  ///< a plain finite number
  /// The same, from `least` to `most`; `meaning` tells the reader what numbers stand for.
  double number(double least, double most, std::string_view meaning = {}) const;
  double bandwidth() const;  ///< parse_bandwidth, kMinBandwidth … kMaxBandwidth
  double duration(double most_s = kLongestDuration_s) const;  ///< parse_duration, 0 … most_s
  std::int64_t size() const;                                  ///< parse_size, 0 … kMaxBytes
  bool boolean() const;                                       ///< true or false

  /// The same node under another name in messages: `named("gradient 'fc6'").at("elements")`
  /// complains "gradient 'fc6': elements must be …".
  YamlNode named(const std::string& label) const;

  /// Throws InputError at this node: `file:line: path: message`.
  [[noreturn]] void fail(const std::string& message) const;
  const std::string& path() const { return path_; }  ///< "links.bandwidth", for messages
  int line() const { return line_; }  ///< of the key in a map, else of the value itself

 private:
  YamlNode(const YAML::Node& node, std::shared_ptr<const std::string> file, std::string path,
           int line)
      : node_(node), file_(std::move(file)), path_(std::move(path)), line_(line) {}

  const std::string& scalar() const;
  std::string fit_text(const std::string& found) const;
  std::string child_path(std::string_view key) const;
  void require_map() const;
  std::string quantity_text() const;  ///< the scalar, "" for an empty value
  /// parser(text, path), its InputError completed with file and line.
  template <typename Parser>
  auto located(Parser parser) const;

  YAML::Node node_;
  std::shared_ptr<const std::string> file_;
  std::string path_;
  int line_;
};

}  // namespace hipress::io
