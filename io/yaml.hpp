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

/// True if the name ends in .yaml or .yml: such files are read and written as YAML.
bool is_yaml_name(std::string_view path);

/// True if the text ends with the end marker of YAML, a line "...".
bool has_end_marker(std::string_view text);

/// Longest duration in files, in seconds: simulated time must fit 64-bit picoseconds.
inline constexpr double kLongestDuration_s = 1e6;

/// Limits of bandwidths in files, in bytes per second; values outside them are mistakes.
inline constexpr double kMinBandwidth = 1e-3, kMaxBandwidth = 1e15;

/// Largest size in files, in bytes: 2^48 elements of fp32.
inline constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;

/// A YAML node that knows its file and line. Accessors throw InputError of the form `file:line:
/// path.to.key must be …, got '…'`.
///
///     const YamlNode link = YamlNode::load("cluster.yaml").at("links");
///     link.expect_keys({"bandwidth", "latency"});
///     const double bytes_per_s = link.at("bandwidth").bandwidth();
///     const std::optional<YamlNode> latency = link.find("latency");
///     const double latency_s = latency ? latency->duration() : 0;
class YamlNode {
 public:
  /// Reads a file. Throws InputError if it is missing, unreadable, empty, malformed or truncated:
  /// its last value has no line end, a quoted text has no end, or it has %YAML but no end marker.
  static YamlNode load(const std::string& path);

  /// Parses `text`; messages name it `name`.
  static YamlNode parse(const std::string& text, const std::string& name);

  /// Requires a map whose keys are all in `known`. Call it first, so that unknown keys are
  /// reported, with line and nearest known key, before missing ones.
  const YamlNode& expect_keys(std::initializer_list<std::string_view> known) const;

  /// Throws InputError, which ends with the remedy, if the map has a `schema` other than `known`: a
  /// format and its version, such as "hipress.plan/1".
  void expect_schema(std::string_view known, std::string_view remedy = {}) const;

  bool is_map() const { return node_.IsMap(); }
  bool is_list() const { return node_.IsSequence(); }
  bool has(std::string_view key) const;
  /// Value of a key; a missing key is an error at the map's line.
  YamlNode at(std::string_view key) const;
  /// Value of a key; empty if it is missing.
  std::optional<YamlNode> find(std::string_view key) const;
  /// Elements of a sequence.
  std::vector<YamlNode> items() const;
  /// Entries of a map in file order. Duplicate and unprintable keys (utf8.hpp) are errors.
  std::vector<std::pair<std::string, YamlNode>> entries() const;

  std::string text() const;   ///< a scalar that is valid as a name, by unfit_for_name() (utf8.hpp)
  std::string prose() const;  ///< printable text, which may be long and have several lines
  std::int64_t integer(std::int64_t least, std::int64_t most = INT64_MAX) const;
  double number() const;  ///< a finite number without unit
  /// A finite number from `least` to `most`; `meaning` explains it in messages.
  double number(double least, double most, std::string_view meaning = {}) const;
  double bandwidth() const;  ///< parse_bandwidth, kMinBandwidth … kMaxBandwidth
  double duration(double most_s = kLongestDuration_s) const;  ///< parse_duration, 0 … most_s
  std::int64_t size() const;                                  ///< parse_size, 0 … kMaxBytes
  bool boolean() const;                                       ///< true or false

  /// This node, with a different name in messages: `named("gradient 'fc6'").at("elements")` throws
  /// "gradient 'fc6': elements must be …".
  YamlNode named(const std::string& label) const;

  /// Throws InputError at this node: `file:line: path: message`.
  [[noreturn]] void fail(const std::string& message) const;
  const std::string& path() const { return path_; }  ///< "links.bandwidth", for messages
  int line() const { return line_; }  ///< line of the key in a map, else of the value

 private:
  YamlNode(const YAML::Node& node, std::shared_ptr<const std::string> file, std::string path,
           int line)
      : node_(node), file_(std::move(file)), path_(std::move(path)), line_(line) {}

  const std::string& scalar() const;
  std::string fit_text(const std::string& found) const;
  std::string child_path(std::string_view key) const;
  void require_map() const;
  std::string quantity_text() const;  ///< the scalar; "" for an empty value
  /// Result of parser(text, path); adds file and line to its InputError.
  template <typename Parser>
  auto located(Parser parser) const;

  YAML::Node node_;
  std::shared_ptr<const std::string> file_;
  std::string path_;
  int line_;
};

}  // namespace hipress::io
