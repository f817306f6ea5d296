#include "traces/json_trace.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>

#include "io/error.hpp"
#include "models/shape.hpp"

namespace hipress::traces {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kStep = std::size_t{64} << 10;
constexpr std::int64_t kLongestValue = std::int64_t{16} << 20;  // bytes

/// Characters of a stream, for the parser. Limits the length of a value, because the parser keeps
/// whole values in memory.
class Characters {
 public:
  explicit Characters(ByteStream& bytes) : bytes_(bytes) { refill(); }
  bool at_end() const { return at_ == end_; }
  char current() const { return *at_; }
  void advance() {
    if (++at_ == end_) refill();
  }
  void value_ended() { value_began_ = read_; }
  std::int64_t position() const { return read_ - (end_ - at_); }

 private:
  void refill() {
    if (read_ - value_began_ > kLongestValue) {
      throw io::InputError(bytes_.name(), 0,
                           fmt::format("has a value of more than 16 MiB before byte {}: this is no "
                                       "trace of PyTorch",
                                       read_));
    }
    const std::size_t got = bytes_.read(buffer_.data(), buffer_.size());
    read_ += static_cast<std::int64_t>(got);
    at_ = buffer_.data();
    end_ = at_ + got;
  }

  ByteStream& bytes_;
  std::array<char, kStep> buffer_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::int64_t read_ = 0;
  std::int64_t value_began_ = 0;  // number of bytes read when the last value ended
};

/// Input iterator for the parser. A default-constructed one marks the end.
class CharacterIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  CharacterIterator() = default;
  explicit CharacterIterator(Characters& characters) : characters_(&characters) {}
  char operator*() const { return characters_->current(); }
  CharacterIterator& operator++() {
    characters_->advance();
    return *this;
  }
  CharacterIterator operator++(int) {
    characters_->advance();
    return *this;
  }
  bool operator==(const CharacterIterator& other) const { return is_end() == other.is_end(); }
  bool operator!=(const CharacterIterator& other) const { return !(*this == other); }

 private:
  bool is_end() const { return characters_ == nullptr || characters_->at_end(); }
  Characters* characters_ = nullptr;
};

/// Position of the parser within a trace.
enum class Place : std::uint8_t {
  kOutside,
  kTop,     ///< the outermost object
  kEvents,  ///< the array of events
  kEvent,
  kArguments,  ///< arguments of an event
  kShapes,     ///< shapes of the inputs of an event or node
  kTypes,
  kNodes,  ///< the array of nodes
  kNode,
  kInputs,  ///< inputs of a node, in newer schemas
  kDevices,
  kDevice,
  kDistributed,
  kElsewhere,
};

/// Key whose value comes next. kOther stands for keys that are not used.
enum class Key : std::uint8_t {
  kOther,
  kPhase,
  kCategory,
  kName,
  kStart,
  kLength,
  kProcess,
  kThread,
  kArguments,
  kCorrelation,
  kDeviceNumber,
  kCollective,
  kInElements,
  kOutElements,
  kGroupSize,
  kGroup,
  kDtype,
  kInputShapes,
  kInputTypes,
  kId,
  kParent,
  kInputs,
  kEvents,
  kNodes,
  kDevices,
  kDistributed,
  kWorldSize,
  kRank,
  kOfChakra,
};

struct KeyRow {
  Place place;
  std::string_view text;
  Key key;
};
constexpr KeyRow kKeys[] = {
    {Place::kTop, "traceEvents", Key::kEvents},
    {Place::kTop, "nodes", Key::kNodes},
    {Place::kTop, "deviceProperties", Key::kDevices},
    {Place::kTop, "distributedInfo", Key::kDistributed},
    {Place::kEvent, "ph", Key::kPhase},
    {Place::kEvent, "cat", Key::kCategory},
    {Place::kEvent, "name", Key::kName},
    {Place::kEvent, "ts", Key::kStart},
    {Place::kEvent, "dur", Key::kLength},
    {Place::kEvent, "pid", Key::kProcess},
    {Place::kEvent, "tid", Key::kThread},
    {Place::kEvent, "args", Key::kArguments},
    {Place::kEvent, "traceEvents", Key::kEvents},
    {Place::kEvent, "nodes", Key::kNodes},
    {Place::kArguments, "name", Key::kName},
    {Place::kArguments, "device", Key::kDeviceNumber},
    {Place::kArguments, "correlation", Key::kCorrelation},
    {Place::kArguments, "Collective name", Key::kCollective},
    {Place::kArguments, "In msg nelems", Key::kInElements},
    {Place::kArguments, "Out msg nelems", Key::kOutElements},
    {Place::kArguments, "Group size", Key::kGroupSize},
    {Place::kArguments, "Process Group Name", Key::kGroup},
    {Place::kArguments, "dtype", Key::kDtype},
    {Place::kArguments, "Input Dims", Key::kInputShapes},
    {Place::kArguments, "Input dims", Key::kInputShapes},
    {Place::kArguments, "Input type", Key::kInputTypes},
    {Place::kNode, "name", Key::kName},
    {Place::kNode, "id", Key::kId},
    {Place::kNode, "parent", Key::kParent},
    {Place::kNode, "ctrl_deps", Key::kParent},
    {Place::kNode, "input_shapes", Key::kInputShapes},
    {Place::kNode, "input_types", Key::kInputTypes},
    {Place::kNode, "inputs", Key::kInputs},
    {Place::kInputs, "shapes", Key::kInputShapes},
    {Place::kInputs, "types", Key::kInputTypes},
    {Place::kDevice, "name", Key::kName},
    {Place::kDistributed, "world_size", Key::kWorldSize},
    {Place::kDistributed, "rank", Key::kRank},
    {Place::kTop, "workload_graph", Key::kOfChakra},
    {Place::kTop, "ctrlDeps", Key::kOfChakra},
    {Place::kTop, "dataDeps", Key::kOfChakra},
    {Place::kNode, "ctrlDeps", Key::kOfChakra},
    {Place::kNode, "dataDeps", Key::kOfChakra},
    {Place::kNode, "data_deps", Key::kOfChakra},
    {Place::kNode, "NodeType", Key::kOfChakra},
    {Place::kEvent, "ctrlDeps", Key::kOfChakra},
    {Place::kEvent, "dataDeps", Key::kOfChakra},
    {Place::kEvent, "data_deps", Key::kOfChakra},
    {Place::kEvent, "NodeType", Key::kOfChakra},
};

Key key_of(Place place, std::string_view text) {
  for (const KeyRow& row : kKeys) {
    if (row.place == place && row.text == text) return row.key;
  }
  return Key::kOther;
}

/// 64-bit FNV-1a hash of the bytes, with a seed.
std::uint64_t mixed(std::uint64_t start, std::string_view bytes) {
  std::uint64_t hash = start ^ 0xcbf29ce484222325u;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  }
  return hash;
}

/// Parser callbacks that fill one event or node at a time.
class Reader : public nlohmann::json_sax<Json> {
 public:
  Reader(ByteStream& bytes, Characters& characters,
         const std::function<void(const ProfilerEvent&)>& on_event,
         const std::function<void(const ExecutionNode&)>& on_node)
      : bytes_(bytes), characters_(characters), on_event_(on_event), on_node_(on_node) {}

  const TraceHeader& header() const { return header_; }

  bool null() override { return ended(); }
  bool boolean(bool) override { return ended(); }
  bool number_integer(number_integer_t value) override { return integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > INT64_MAX) return is_time() ? bad_time() : ended();
    return integer(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    if (is_time()) return time(text);
    return ended();
  }
  bool binary(binary_t&) override { return ended(); }

  bool string(string_t& value) override {
    switch (place()) {
      case Place::kEvent:
        event_text(value);
        break;
      case Place::kArguments:
        if (key_ == Key::kCollective) event_.collective = value;
        if (key_ == Key::kDtype) event_.dtype = value;
        if (key_ == Key::kGroup) event_.group = value;
        if (key_ == Key::kName) event_.label = value;
        break;
      case Place::kTypes:
        if (inputs_seen_ == 0) (in_node_ ? node_.input_type : event_.input_type) = value;
        ++inputs_seen_;
        break;
      case Place::kNode:
        if (key_ == Key::kName) node_.name = value;
        break;
      case Place::kDevice:
        if (key_ == Key::kName && header_.device.empty()) header_.device = value;
        break;
      default:
        break;
    }
    return ended();
  }

  bool key(string_t& value) override {
    key_ = key_of(place(), value);
    header_.is_of_chakra = header_.is_of_chakra || key_ == Key::kOfChakra;
    return ended();
  }

  bool start_object(std::size_t) override { return open(inner(false)); }
  bool end_object() override {
    if (place() == Place::kEvent) hand_out();
    if (place() == Place::kNode) on_node_(node_);
    return close();
  }
  bool start_array(std::size_t) override {
    const Place inside = inner(true);
    if (inside == Place::kShapes) {
      start_shape();
      start_input();
    }
    if (inside == Place::kTypes && place() != Place::kTypes) inputs_seen_ = 0;
    return open(inside);
  }
  bool end_array() override {
    input_is_open_ = false;
    if (place() == Place::kShapes && shape_is_open_) {
      shape_is_open_ = false;
      shape_is_known_ = true;
    }
    return close();
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const char* const where = std::strstr(error.what(), "at line ");
    int line = 0;
    if (where != nullptr) std::sscanf(where, "at line %d", &line);
    const bool no_more = std::strstr(error.what(), "unexpected end of input") != nullptr;
    if (no_more && stack_.size() == 1 && place() == Place::kEvents) {
      header_.is_open = true;
      return false;
    }
    if (stack_.empty() && (header_.has_events || header_.has_nodes)) {
      throw io::InputError(
          bytes_.name(), line,
          fmt::format("holds more than one JSON document, as a file that joins the traces of "
                      "several ranks; the second begins at about byte {}. Give one rank's file",
                      position));
    }
    if (std::strstr(error.what(), "unexpected '{'; expected end of input") != nullptr) {
      throw io::InputError(
          bytes_.name(), line,
          fmt::format("holds several JSON documents, and the first has neither 'traceEvents' nor "
                      "'nodes', as where Chakra's jsonizer wrote an execution trace; give {}",
                      kInsteadOfChakra));
    }
    if (characters_.at_end()) {
      throw io::InputError(bytes_.name(), line,
                           fmt::format("ends at byte {} in the middle of the JSON: the trace was "
                                       "cut off; copy or export it again",
                                       characters_.position()));
    }
    throw io::InputError(
        bytes_.name(), line,
        fmt::format("is no JSON at byte {}; give a trace that PyTorch exported", position));
  }

 private:
  Place place() const { return stack_.empty() ? Place::kOutside : stack_.back(); }
  bool is_time() const {
    return place() == Place::kEvent && (key_ == Key::kStart || key_ == Key::kLength);
  }
  /// Notes the end of a value, whose memory the parser then frees.
  bool ended() {
    characters_.value_ended();
    return true;
  }

  [[noreturn]] void bad_event(std::string_view why) const {
    throw io::InputError(bytes_.name(), 0,
                         fmt::format("event {} before byte {}: {}", io::quote(event_.name),
                                     characters_.position(), why));
  }
  [[noreturn]] bool bad_time() const { bad_event("ts and dur must be microseconds"); }

  void hand_out() const {
    try {
      on_event_(event_);
    } catch (const io::InputError& error) {
      bad_event(error.what());
    }
  }

  bool time(std::string_view text) {
    const auto value = nanoseconds(text);
    if (!value) bad_time();
    if (key_ == Key::kStart) {
      event_.start_ns = *value;
      has_start_ = true;
    } else {
      event_.length_ns = *value;
      has_length_ = true;
    }
    event_.has_times = has_start_ && has_length_;
    return ended();
  }

  bool integer(std::int64_t value) {
    switch (place()) {
      case Place::kEvent:
        event_integer(value);
        break;
      case Place::kArguments:
        argument(value);
        break;
      case Place::kShapes:
        // Further dimensions are not needed: with one too many, the shape is already invalid.
        if (shape_is_open_ && shape().size() <= models::kMaxDimensions) shape().push_back(value);
        add_dimension(value);
        break;
      case Place::kNode:
        if (key_ == Key::kId) node_.id = value;
        if (key_ == Key::kParent) node_.parent = value;
        break;
      case Place::kDistributed:
        if (key_ == Key::kWorldSize) header_.world_size = value;
        if (key_ == Key::kRank && header_.ranks.size() < 2) header_.ranks.insert(value);
        break;
      default:
        break;
    }
    return ended();
  }

  void event_integer(std::int64_t value) {
    if (is_time()) {
      time(std::to_string(value));
    } else if (key_ == Key::kProcess || key_ == Key::kThread) {
      const auto bytes = std::to_string(value);
      add_thread(bytes);
    }
  }

  void event_text(const std::string& value) {
    switch (key_) {
      case Key::kPhase:
        event_.phase = value;
        break;
      case Key::kCategory:
        event_.category = value;
        break;
      case Key::kName:
        event_.name = value;
        break;
      case Key::kProcess:
      case Key::kThread:
        add_thread(value);
        break;
      case Key::kStart:
      case Key::kLength:
        time(value);
        break;
      default:
        break;
    }
  }

  void add_thread(std::string_view text) {
    // The hashes are added because pid and tid come in any order.
    const std::uint64_t part = mixed(key_ == Key::kProcess ? 1 : 2, text);
    event_.thread += part;
    if (key_ == Key::kProcess) event_.process = part;
  }

  void argument(std::int64_t value) {
    switch (key_) {
      case Key::kCorrelation:
        event_.correlation = value;
        break;
      case Key::kDeviceNumber:
        event_.device = value;
        break;
      case Key::kInElements:
        event_.in_elements = value;
        break;
      case Key::kOutElements:
        event_.out_elements = value;
        break;
      case Key::kGroupSize:
        event_.group_size = value;
        break;
      case Key::kGroup:
        event_.group = std::to_string(value);
        break;
      default:
        break;
    }
  }

  std::vector<std::int64_t>& shape() { return in_node_ ? node_.input_shape : event_.input_shape; }

  InputShapes::Shapes* argument_shapes() {
    InputShapes& shapes = in_node_ ? node_.shapes : event_.shapes;
    if (argument_ > 1) return nullptr;
    return argument_ == 0 ? &shapes.first : &shapes.second;
  }

  /// Begins an argument, or a tensor if the argument is a list.
  void start_input() {
    if (place() != Place::kShapes) {
      (in_node_ ? node_.shapes : event_.shapes).clear();
      shapes_depth_ = stack_.size();
      argument_ = -1;
      return;
    }
    if (stack_.size() == shapes_depth_ + 1) ++argument_;
    input_is_open_ = false;
  }

  /// Adds a dimension. The first number in a list begins a tensor.
  void add_dimension(std::int64_t value) {
    InputShapes::Shapes* const shapes = argument_ >= 0 ? argument_shapes() : nullptr;
    if (shapes == nullptr) return;
    if (!input_is_open_) {
      if (shapes->size() == InputShapes::kMost) return;
      shapes->emplace_back();
      input_is_open_ = true;
    }
    if (shapes->back().size() <= models::kMaxDimensions) shapes->back().push_back(value);
  }

  /// Begins the shape of the first input, which is the first innermost list with numbers.
  void start_shape() {
    if (place() != Place::kShapes) {
      shape_is_known_ = false;
      shape().clear();
      return;
    }
    if (shape_is_known_) return;
    shape_is_open_ = true;
    (in_node_ ? node_.has_input_shape : event_.has_input_shape) = true;
  }

  /// Position inside the object or array that begins here.
  Place inner(bool array) {
    switch (place()) {
      case Place::kOutside:
        return array ? begin_events() : Place::kTop;
      case Place::kTop:
        return inner_of_top(array);
      case Place::kEvents:
        return array ? Place::kElsewhere : begin_event();
      case Place::kNodes:
        return array ? Place::kElsewhere : begin_node();
      case Place::kDevices:
        return array ? Place::kElsewhere : Place::kDevice;
      case Place::kEvent:
        if (array && (key_ == Key::kEvents || key_ == Key::kNodes)) refuse_list();
        return !array && key_ == Key::kArguments ? Place::kArguments : Place::kElsewhere;
      case Place::kDistributed:  // data about several ranks
        return array ? Place::kElsewhere : Place::kDistributed;
      case Place::kNode:
        if (!array && key_ == Key::kInputs) return Place::kInputs;
        return array ? inner_of_inputs() : Place::kElsewhere;
      case Place::kArguments:
      case Place::kInputs:
        return array ? inner_of_inputs() : Place::kElsewhere;
      case Place::kShapes:
        return array ? Place::kShapes : Place::kElsewhere;
      case Place::kTypes:
        return array ? Place::kTypes : Place::kElsewhere;
      default:
        return Place::kElsewhere;
    }
  }

  Place inner_of_top(bool array) {
    if (array && key_ == Key::kEvents) return begin_events();
    if (array && key_ == Key::kNodes) {
      header_.has_nodes = true;
      return Place::kNodes;
    }
    if (array && key_ == Key::kDevices) return Place::kDevices;
    return key_ == Key::kDistributed ? Place::kDistributed : Place::kElsewhere;
  }

  [[noreturn]] void refuse_list() const {
    throw io::InputError(bytes_.name(), 0,
                         fmt::format("is a list of several traces, by the text before byte {}; "
                                     "give one rank's trace as a file of its own",
                                     characters_.position()));
  }

  Place inner_of_inputs() const {
    if (key_ == Key::kInputShapes) return Place::kShapes;
    return key_ == Key::kInputTypes ? Place::kTypes : Place::kElsewhere;
  }

  Place begin_events() {
    header_.has_events = true;
    return Place::kEvents;
  }
  Place begin_event() {
    event_.clear();
    in_node_ = has_start_ = has_length_ = shape_is_known_ = shape_is_open_ = false;
    return Place::kEvent;
  }
  Place begin_node() {
    node_.clear();
    in_node_ = true;
    shape_is_known_ = shape_is_open_ = false;
    return Place::kNode;
  }

  bool open(Place inside) {
    if (stack_.size() == kDeepest) {
      throw io::InputError(bytes_.name(), 0,
                           fmt::format("is nested deeper than {} levels at byte {}: this is no "
                                       "trace of PyTorch",
                                       kDeepest, characters_.position()));
    }
    stack_.push_back(inside);
    return ended();
  }
  bool close() {
    stack_.pop_back();
    key_ = Key::kOther;
    return ended();
  }

  ByteStream& bytes_;
  Characters& characters_;
  const std::function<void(const ProfilerEvent&)>& on_event_;
  const std::function<void(const ExecutionNode&)>& on_node_;
  TraceHeader header_;
  std::vector<Place> stack_;
  Key key_ = Key::kOther;
  ProfilerEvent event_;
  ExecutionNode node_;
  bool in_node_ = false;
  bool has_start_ = false, has_length_ = false;
  bool shape_is_open_ = false;   // numbers are dimensions of the first input
  bool shape_is_known_ = false;  // the shape of the first input is complete
  int inputs_seen_ = 0;
  std::size_t shapes_depth_ = 0;  // depth of the list of all arguments
  int argument_ = -1;             // index of the argument whose list is open
  bool input_is_open_ = false;    // numbers are dimensions of the last tensor
};

}  // namespace

void InputShapes::clear() {
  first.clear();
  second.clear();
}

void ProfilerEvent::clear() {
  phase.clear();
  category.clear();
  name.clear();
  collective.clear();
  dtype.clear();
  group.clear();
  label.clear();
  input_type.clear();
  input_shape.clear();
  shapes.clear();
  start_ns = length_ns = 0;
  has_times = has_input_shape = false;
  process = thread = 0;
  device.reset();
  correlation.reset();
  in_elements.reset();
  out_elements.reset();
  group_size.reset();
}

void ExecutionNode::clear() {
  name.clear();
  id = parent = -1;
  input_shape.clear();
  has_input_shape = false;
  shapes.clear();
  input_type.clear();
}

std::optional<std::int64_t> nanoseconds(std::string_view microseconds) {
  const bool negative = microseconds.starts_with('-');
  if (negative) microseconds.remove_prefix(1);
  if (microseconds.find_first_of("eE") != std::string_view::npos) {
    double value = 0;
    const char* const end = microseconds.data() + microseconds.size();
    const auto [stop, error] = std::from_chars(microseconds.data(), end, value);
    if (error != std::errc() || stop != end || !(std::abs(value) < 2e15)) return std::nullopt;
    return std::llround((negative ? -value : value) * 1000);
  }
  const std::size_t point = std::min(microseconds.find('.'), microseconds.size());
  std::string digits(microseconds.substr(0, point));
  std::string_view fraction = microseconds.substr(std::min(point + 1, microseconds.size()));
  if (digits.empty() || fraction.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  fraction = fraction.substr(0, 3);
  digits.append(fraction);
  digits.append(3 - fraction.size(), '0');
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end || value < 0) return std::nullopt;
  // Bound that keeps sums and differences in range; as a time since 1970, it is in the year 2043.
  constexpr std::int64_t kLargest = INT64_MAX / 4;
  if (value > kLargest) return std::nullopt;
  return negative ? -value : value;
}

TraceHeader read_json_trace(ByteStream& bytes,
                            const std::function<void(const ProfilerEvent&)>& on_event,
                            const std::function<void(const ExecutionNode&)>& on_node) {
  Characters characters(bytes);
  Reader reader(bytes, characters, on_event, on_node);
  Json::sax_parse(CharacterIterator(characters), CharacterIterator(), &reader);
  return reader.header();
}

}  // namespace hipress::traces
