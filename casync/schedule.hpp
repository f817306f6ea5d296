#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.hpp"

namespace hipress::casync {

/// Synchronisation of a part's gradients: steps of a period at which it starts and is awaited.
struct Synchronisation {
  std::uint32_t part = 0;
  std::uint32_t step = 0;  ///< step whose backward pass starts each gradient's synchronisation
  /// Step whose forward pass needs the result: later than `step`, by at most a period. Values from
  /// Timetable::steps on are steps of the next period.
  std::uint32_t awaited = 0;
};

/// Time at which backward gathers the parameters of its next layer, relative to the current layer's
/// backward pass and reduction.
enum class Prefetch : std::uint8_t {
  kPre,   ///< before the pass
  kPost,  ///< after the pass, before the reduction is issued
  kNone,  ///< after the pass, once the reduction is issued
};

/// Distribution of parameters, gradients and optimizer state over nodes, part by part.
struct Sharding {
  /// Number of neighbours that together hold all shards, as a group. Groups average their gradients
  /// shard by shard. 0: all nodes are one group.
  std::uint32_t nodes = 0;
  /// Number of neighbours among which each part is sharded between forward and backward. 0: all
  /// nodes of the group, as before forward. 1: parts stay whole.
  std::uint32_t kept_among = 0;
  Prefetch prefetch = Prefetch::kPre;
  std::uint32_t in_flight = 2;          ///< parts in memory at a time, including the one in use
  bool separate_communicators = false;  ///< gathers have one communicator, reductions another

  /// Number of nodes in a group that holds all shards, if there are `all` nodes.
  std::uint32_t shards(std::uint32_t all) const { return nodes == 0 ? all : nodes; }
  /// True if parts stay whole between forward and backward.
  bool stays_whole() const { return kept_among == 1; }
  /// Number of neighbours among which backward gathers, if there are `all` nodes.
  std::uint32_t gathers_among(std::uint32_t all) const {
    return kept_among < 2 ? shards(all) : kept_among;
  }
};

/// Times of synchronisations, in steps of a period that repeats.
struct Timetable {
  std::uint32_t steps = 1;             ///< steps per period
  std::vector<std::uint32_t> part_of;  ///< per gradient: its part
  /// One synchronisation per part, in the order of Synchronisation::step.
  std::vector<Synchronisation> synchronisations;
  /// If set, each part's parameters are gathered before use and its gradients are reduce-scattered,
  /// instead of averaged on every node. The period is then one step.
  std::optional<Sharding> sharding = {};

  /// True if all steps are alike.
  bool is_uniform() const { return steps == 1; }
  /// True if computation within a period waits for communication: between steps, or for parameters.
  bool computation_waits() const { return !is_uniform() || sharding.has_value(); }
};

/// A parameter of a schedule, given in brackets after its name: a number, or one of several words.
struct ScheduleParameter {
  std::string_view name;
  std::string_view help;
  std::int64_t least = 0, most = 0;              ///< range of a number
  std::int64_t value = 0;                        ///< default; for words, an index
  std::span<const std::string_view> words = {};  ///< accepted words; empty: a number
  bool or_number = false;    ///< accepts numbers, too, from the number of words on: smaller values
                             ///< are the words' indices
  bool always_said = false;  ///< Schedule::text() includes it even if it is the default
};

/// The values of a schedule's parameters, in the order of its row.
using ScheduleValues = std::vector<std::int64_t>;

/// A schedule's lower-case name in another framework ("zero3"), and the text of the same schedule
/// here.
struct ScheduleAlias {
  std::string_view name, text;
};

/// A kind of schedule, which determines when each gradient is synchronised. Adding one takes a file
/// that defines a row, and its place in schedules().
struct ScheduleRow {
  std::string_view name;
  std::string_view help;
  std::span<const ScheduleParameter> parameters;
  /// Throws std::invalid_argument for values that contradict each other. Null: all combinations are
  /// valid.
  void (*check)(const ScheduleValues& values);
  /// Throws std::invalid_argument if the schedule does not fit the model.
  Timetable (*timetable)(const ScheduleValues& values, const models::Model& model);
  /// Cost to training, such as staleness, as a sentence; empty: no cost.
  std::string (*gives_up)(const ScheduleValues& values);
  bool sharded = false;                         ///< its timetables have Timetable::sharding
  std::span<const ScheduleAlias> aliases = {};  ///< suggested in error messages, not accepted
};

/// A row with values for its parameters. The default is ddp.
class Schedule {
 public:
  Schedule();
  /// Parses "ddp" or "local(steps=100, fragments=4)". Throws std::invalid_argument, which names the
  /// error and the known schedules or parameters.
  static Schedule parse(std::string_view text);
  /// All schedules of a text with alternatives: "local(steps=50|100, overlap=0|1)" gives four, in
  /// that order. Combinations of values that contradict each other are left out. Throws
  /// std::invalid_argument as parse() does, and if no schedule is left, or more than kMostOfSet.
  static std::vector<Schedule> parse_set(std::string_view text);
  static constexpr std::size_t kMostOfSet = 1000;

  const ScheduleRow& row() const { return *row_; }
  const ScheduleValues& values() const { return values_; }
  /// Text for parse(), with the values that differ from the default.
  std::string text() const;
  /// The row's timetable for a model. Throws std::invalid_argument as ScheduleRow::timetable does,
  /// and std::logic_error for an invalid timetable, which is a bug in the row.
  Timetable timetable(const models::Model& model) const;
  /// Cost to training, as a sentence; empty: no cost.
  std::string gives_up() const;
  bool operator==(const Schedule&) const = default;

 private:
  /// Like parse(), but values may contradict each other.
  static Schedule read(std::string_view text);
  void check() const;

  const ScheduleRow* row_;
  ScheduleValues values_;
};

/// All rows, built-in ones first.
std::span<const ScheduleRow* const> schedules();

/// Names for help and messages: "ddp, local".
std::string schedule_names();

/// Adds a row to schedules() for its own lifetime. Not thread-safe: no other thread may read
/// schedules() during construction and destruction. Throws std::invalid_argument if the name is
/// taken.
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
