#include "casync/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <stdexcept>

#include "casync/own_schedules.hpp"
#include "io/alternatives.hpp"
#include "io/error.hpp"
#include "io/suggestion.hpp"

namespace hipress::casync {
namespace {

std::vector<const ScheduleRow*>& schedule_rows() {
  static std::vector<const ScheduleRow*> rows(own_schedules().begin(), own_schedules().end());
  return rows;
}

const ScheduleRow* find_schedule(std::string_view name) {
  const auto found = std::ranges::find_if(
      schedule_rows(), [&](const ScheduleRow* row) { return row->name == name; });
  return found == schedule_rows().end() ? nullptr : *found;
}

/// Suggests a row whose name in another framework, or whose spelling, is like `name`: "; did you
/// mean 'fsdp'? ".
std::string proposal(std::string_view name) {
  std::string small(name);
  std::ranges::transform(small, small.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::tolower(c));
  });
  std::vector<std::string_view> names;
  for (const ScheduleRow* row : schedule_rows()) {
    for (const ScheduleAlias& one : row->aliases) {
      if (one.name == small) return fmt::format("; did you mean '{}'? ", one.text);
    }
    names.push_back(row->name);
  }
  return io::before_known(name, names);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::string values_known(const ScheduleParameter& parameter) {
  if (parameter.words.empty()) {
    return "a whole number from " + std::to_string(parameter.least) + " to " +
           std::to_string(parameter.most);
  }
  std::string text;
  for (const std::string_view word : parameter.words) {
    text += (text.empty() ? "" : " or ") + std::string(word);
  }
  if (parameter.or_number) {
    text += " or a whole number from " + std::to_string(parameter.least) + " to " +
            std::to_string(parameter.most);
  }
  return text;
}

std::optional<std::int64_t> value_in(const ScheduleParameter& parameter, std::string_view text) {
  if (!parameter.words.empty()) {
    const auto found = std::ranges::find(parameter.words, text);
    if (found != parameter.words.end()) return found - parameter.words.begin();
    if (!parameter.or_number) return std::nullopt;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < parameter.least || value > parameter.most) return std::nullopt;
  return value;
}

std::string usage(const ScheduleRow& row) {
  std::string text(row.name);
  if (row.parameters.empty()) return text;
  text += "(";
  for (const ScheduleParameter& parameter : row.parameters) {
    if (text.back() != '(') text += ", ";
    text += parameter.name;
    text += "=…";
  }
  return text + ")";
}

/// Reads the arguments of one schedule's text into values, parameter by parameter.
class ArgumentReader {
 public:
  explicit ArgumentReader(const ScheduleRow& row) : row_(row), given_(row.parameters.size()) {
    for (const ScheduleParameter& parameter : row.parameters) values_.push_back(parameter.value);
  }

  void read(std::string_view argument) {
    const std::size_t equals = argument.find('=');
    const std::string_view name = trimmed(argument.substr(0, equals));
    const auto found = std::ranges::find(row_.parameters, name, &ScheduleParameter::name);
    if (equals == std::string_view::npos || found == row_.parameters.end()) {
      std::vector<std::string_view> names;
      for (const ScheduleParameter& parameter : row_.parameters) names.push_back(parameter.name);
      refuse("it does not take " + io::quote(trimmed(argument)), io::before_known(name, names));
    }
    const auto place = static_cast<std::size_t>(found - row_.parameters.begin());
    if (given_[place]) refuse(std::string(name) + " is given twice");
    given_[place] = true;
    const std::string_view text = trimmed(argument.substr(equals + 1));
    const std::optional<std::int64_t> value = value_in(*found, text);
    if (!value) {
      refuse(std::string(name) + " must be " + values_known(*found) + ", got " + io::quote(text));
    }
    values_[place] = *value;
  }

  ScheduleValues take() { return std::move(values_); }

  [[noreturn]] void refuse(const std::string& why, const std::string& pause = "; ") const {
    throw std::invalid_argument("schedule " + std::string(row_.name) + ": " + why + pause +
                                "write " + usage(row_));
  }

 private:
  const ScheduleRow& row_;
  ScheduleValues values_;
  std::vector<bool> given_;
};

/// Throws std::logic_error for an invalid timetable: a bug of the row, not of the user's input.
void check_timetable(const ScheduleRow& row, const Timetable& table, std::size_t gradients) {
  std::vector<bool> synchronised;
  std::uint32_t reached = 0;
  bool good = table.steps > 0 && table.part_of.size() == gradients;
  good = good && table.sharding.has_value() == row.sharded && (!row.sharded || table.steps == 1);
  for (const auto& [part, step, awaited] : table.synchronisations) {
    if (part >= synchronised.size()) synchronised.resize(part + 1);
    good = good && !synchronised[part] && reached <= step && step < table.steps && awaited > step &&
           awaited - step <= table.steps;
    synchronised[part] = true;
    reached = step;
  }
  for (const std::uint32_t part : table.part_of) {
    good = good && part < synchronised.size() && synchronised[part];
  }
  if (!good) {
    throw std::logic_error("schedule " + std::string(row.name) + " gives an impossible timetable");
  }
}

}  // namespace

Schedule::Schedule() : row_(own_schedules().front()) {}

Schedule Schedule::parse(std::string_view text) {
  Schedule schedule = read(text);
  schedule.check();
  return schedule;
}

std::vector<Schedule> Schedule::parse_set(std::string_view text) {
  std::vector<Schedule> schedules;
  std::string refusal;
  read(io::first_alternative(text));  // reports an unknown parameter before too many alternatives
  for (const std::string& one : io::alternatives(text, kMostOfSet, "schedules")) {
    Schedule schedule = read(one);
    try {
      schedule.check();
    } catch (const std::invalid_argument& error) {
      refusal = error.what();
      continue;
    }
    schedules.push_back(std::move(schedule));
  }
  if (schedules.empty()) throw std::invalid_argument(refusal);
  return schedules;
}

void Schedule::check() const {
  if (row_->check != nullptr) row_->check(values_);
}

Schedule Schedule::read(std::string_view text) {
  text = trimmed(text);
  const std::size_t bracket = text.find('(');
  const std::string_view name = trimmed(text.substr(0, bracket));
  const ScheduleRow* const row = find_schedule(name);
  if (row == nullptr) {
    throw std::invalid_argument(fmt::format("unknown schedule {}{}known are {}", io::quote(name),
                                            proposal(name), schedule_names()));
  }
  ArgumentReader reader(*row);
  if (bracket != std::string_view::npos) {
    if (text.back() != ')') reader.refuse("the bracket is not closed");
    std::string_view arguments = trimmed(text.substr(bracket + 1, text.size() - bracket - 2));
    while (!arguments.empty()) {
      const std::size_t comma = std::min(arguments.find(','), arguments.size());
      reader.read(arguments.substr(0, comma));
      if (comma + 1 == arguments.size()) reader.refuse("nothing follows the last comma");
      arguments.remove_prefix(std::min(comma + 1, arguments.size()));
    }
  }
  Schedule schedule;
  schedule.row_ = row;
  schedule.values_ = reader.take();
  return schedule;
}

std::string Schedule::text() const {
  std::string arguments;
  for (std::size_t place = 0; place < values_.size(); ++place) {
    const ScheduleParameter& parameter = row_->parameters[place];
    if (!parameter.always_said && values_[place] == parameter.value) continue;
    if (!arguments.empty()) arguments += ", ";
    arguments += std::string(parameter.name) + "=";
    const auto value = static_cast<std::size_t>(values_[place]);
    arguments += value < parameter.words.size() ? std::string(parameter.words[value])
                                                : std::to_string(value);
  }
  return std::string(row_->name) + (arguments.empty() ? "" : "(" + arguments + ")");
}

Timetable Schedule::timetable(const models::Model& model) const {
  Timetable table = row_->timetable(values_, model);
  check_timetable(*row_, table, model.gradients.size());
  return table;
}

std::string Schedule::gives_up() const {
  return row_->gives_up == nullptr ? std::string() : row_->gives_up(values_);
}

std::span<const ScheduleRow* const> schedules() { return schedule_rows(); }

std::string schedule_names() {
  std::string names;
  for (const ScheduleRow* row : schedule_rows()) {
    names += (names.empty() ? "" : ", ") + std::string(row->name);
  }
  return names;
}

ScheduleRegistration::ScheduleRegistration(const ScheduleRow& row) : row_(&row) {
  if (find_schedule(row.name) != nullptr) {
    throw std::invalid_argument("there is a schedule " + io::quote(row.name) + " already");
  }
  schedule_rows().push_back(row_);
}

ScheduleRegistration::~ScheduleRegistration() { std::erase(schedule_rows(), row_); }

}  // namespace hipress::casync
