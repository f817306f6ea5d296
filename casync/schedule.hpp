#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.hpp"

namespace hipress::casync {

/// When the gradients of one part are synchronised, in steps of a period.
struct Synchronisation {
  std::uint32_t part = 0;
  std::uint32_t step = 0;     ///< each gradient's begins when this step's backward has completed it
  std::uint32_t awaited = 0;  ///< each gradient's ends before this step's forward needs it: later
                              ///< than `step`, by at most a period; from Timetable::steps on it is
                              ///< a step of the next period
};

/// When a layer's parameters are gathered before its backward pass.
enum class Prefetch : std::uint8_t {
  kPre,   ///< from before the pass of the layer before it on, ahead of that layer's reduction
  kPost,  ///< behind that pass, ahead of its reduction
  kNone,  ///< behind that pass, after its reduction
};

/// How parameters, gradients and the optimizer's state are spread over nodes, part by part.
struct Sharding {
  /// So many neighbours have all shards between them, and what nodes have in common with those of
  /// other groups is averaged between groups; 0: all nodes.
  std::uint32_t nodes = 0;
  /// After forward each part is down to a shard again, of so many neighbours, among whom its
  /// backward pass gathers it; 0: as before forward; 1: it stays whole.
  std::uint32_t kept_among = 0;
  Prefetch prefetch = Prefetch::kPre;
  std::uint32_t in_flight = 2;          ///< parts that are gathered at a time, the one in use too
  bool separate_communicators = false;  ///< of gathers and of reductions

  /// Nodes that have all shards between them, of so many.
  std::uint32_t shards(std::uint32_t all) const { return nodes == 0 ? all : nodes; }
  /// Parts stay whole between forward and backward.
  bool stays_whole() const { return kept_among == 1; }
  /// Among how many neighbours backward gathers, of so many nodes.
  std::uint32_t gathers_among(std::uint32_t all) const {
    return kept_among < 2 ? shards(all) : kept_among;
  }
};

/// What happens when, relative to computation, in a period that repeats.
struct Timetable {
  std::uint32_t steps = 1;             ///< of a period
  std::vector<std::uint32_t> part_of;  ///< per gradient
  /// Of every part one, in the order of their steps.
  std::vector<Synchronisation> synchronisations;
  /// Parts are gathered before they are used and their gradients' means scattered, instead of
  /// gradients averaged. Of one step.
  std::optional<Sharding> sharding = {};

  /// Every step is like every other: a period may be cut anywhere.
  bool is_uniform() const { return steps == 1; }
  /// Computation waits for communication before a period ends: between its steps, or for
  /// parameters.
  bool computation_waits() const { return !is_uniform() || sharding.has_value(); }
};

/// What a schedule takes in its brackets: a number, or one of several words.
struct ScheduleParameter {
  std::string_view name;
  std::string_view help;
  std::int64_t least = 0, most = 0;              ///< of a number
  std::int64_t value = 0;                        ///< if it is not given; of words the place
  std::span<const std::string_view> words = {};  ///< none: a number
  bool or_number = false;    ///< besides the words; `least` is at least their count
  bool always_said = false;  ///< by Schedule::text(), even if it is the default
};

/// The values of a schedule's parameters, in the order of its row.
using ScheduleValues = std::vector<std::int64_t>;

/// A schedule's name elsewhere ("zero3"), in small letters, and the text that it has here.
struct ScheduleAlias {
  std::string_view name, text;
};

/// A way to train: which gradients are synchronised when. Adding one is one file that defines a
/// row, and its place in schedules().
struct ScheduleRow {
  std::string_view name;
  std::string_view help;
  std::span<const ScheduleParameter> parameters;
  /// Throws std::invalid_argument for values that contradict each other; null: none do.
  void (*check)(const ScheduleValues& values);
  /// Throws std::invalid_argument for a model that it does not fit.
  Timetable (*timetable)(const ScheduleValues& values, const models::Model& model);
  /// What training gives up for it, as a sentence; empty: nothing.
  std::string (*gives_up)(const ScheduleValues& values);
  bool sharded = false;                         ///< its timetables have Timetable::sharding
  std::span<const ScheduleAlias> aliases = {};  ///< proposed, not taken
};

/// A row with values for its parameters. The default is ddp.
class Schedule {
 public:
  Schedule();
  /// "ddp", "local(steps=100, fragments=4)". std::invalid_argument that says what is wrong, and
  /// what is known.
  static Schedule parse(std::string_view text);
  /// All schedules of a text whose parameters may have several values: "local(steps=50|100,
  /// overlap=0|1)" gives four, in that order. Those with values that contradict each other are left
  /// out. std::invalid_argument as parse(), if none is left, and for more than kMostOfSet.
  static std::vector<Schedule> parse_set(std::string_view text);
  static constexpr std::size_t kMostOfSet = 1000;

  const ScheduleRow& row() const { return *row_; }
  const ScheduleValues& values() const { return values_; }
  /// As parse() takes it, with the values that are not the default.
  std::string text() const;
  /// std::invalid_argument as the row's, and for a timetable that is none.
  Timetable timetable(const models::Model& model) const;
  /// What training gives up for it; empty: nothing.
  std::string gives_up() const;
  bool operator==(const Schedule&) const = default;

 private:
  /// parse() of values that may contradict each other.
  static Schedule read(std::string_view text);
  void check() const;

  const ScheduleRow* row_;
  ScheduleValues values_;
};

/// All rows, the project's own first.
std::span<const ScheduleRow* const> schedules();

/// "ddp, local": for help and messages.
std::string schedule_names();

/// A row of somebody else's, among schedules() for as long as this lives. Not to be made or
/// destroyed while another thread looks. std::invalid_argument for a name that there is.
class ScheduleRegistration {
 public:
  explicit ScheduleRegistration(const ScheduleRow& row);
  ~ScheduleRegistration();
  ScheduleRegistration(const ScheduleRegistration&) = delete;
  ScheduleRegistration& operator=(const ScheduleRegistration&) = delete;

 private:
  const ScheduleRow* row_;
};

}  // namespace hipress::casync
