#include "runtime/stream_schedule.hpp"

#include <algorithm>

namespace hipress::runtime {
namespace {

std::size_t number(Stream stream) { return static_cast<std::size_t>(stream); }

void raise(StreamClock& clock, const StreamClock& other) {
  for (std::size_t s = 0; s < kStreams; ++s) clock[s] = std::max(clock[s], other[s]);
}

}  // namespace

StreamSchedule::StreamSchedule(Device& device, const Program& program)
    : device_(device),
      origin_(device.make_event()),
      clocks_(program.tasks().size()),
      places_(program.tasks().size()) {
  const std::span<const LocalTask> tasks = program.tasks();
  first_predecessor_.assign(tasks.size() + 1, 0);
  for (const LocalTask& task : tasks) {
    for (const std::uint32_t next : program.successors(task)) ++first_predecessor_[next + 1];
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) first_predecessor_[i + 1] += first_predecessor_[i];
  predecessors_.resize(first_predecessor_.back());
  std::vector<std::uint32_t> place(first_predecessor_.begin(), first_predecessor_.end() - 1);
  for (std::uint32_t i = 0; i < tasks.size(); ++i) {
    for (const std::uint32_t next : program.successors(tasks[i])) predecessors_[place[next]++] = i;
  }
}

void StreamSchedule::begin() {
  used_ = {};
  known_ = {};
  std::fill(clocks_.begin(), clocks_.end(), StreamClock{});
  std::fill(places_.begin(), places_.end(), Place{});
  device_.record(origin_, Stream::kOwnCodec);
  for (std::size_t s = 1; s < kStreams; ++s) device_.wait(origin_, static_cast<Stream>(s));
}

void StreamSchedule::enqueue(Stream stream, std::span<const std::uint32_t> tasks,
                             const std::function<void()>& work) {
  StreamClock needed{};
  for (const std::uint32_t task : tasks) add_predecessors(task, needed);
  catch_up(stream, needed);
  Entry& entry = next_entry(stream);
  device_.record(entry.start, stream);
  work();
  device_.record(entry.end, stream);
  StreamClock& known = known_[number(stream)];
  known[number(stream)] = used_[number(stream)];
  entry.known = known;
  entry.task = tasks.empty() ? kNoIndex : tasks.front();
  for (const std::uint32_t task : tasks) {
    clocks_[task] = known;
    places_[task] = {stream, used_[number(stream)]};
  }
}

void StreamSchedule::pass(std::uint32_t task) { add_predecessors(task, clocks_[task]); }

bool StreamSchedule::follows(std::uint32_t task, Stream stream) const {
  StreamClock needed{};
  add_predecessors(task, needed);
  return needed[number(stream)] > 0;
}

bool StreamSchedule::done() {
  for (std::size_t s = 0; s < kStreams; ++s) {
    if (used_[s] > 0 && !device_.done(entries_[s][used_[s] - 1].end)) return false;
  }
  return true;
}

bool StreamSchedule::is_done(std::uint32_t task) {
  const Place place = places_[task];
  return place.entry != 0 && device_.done(entries_[number(place.stream)][place.entry - 1].end);
}

std::optional<double> StreamSchedule::reached_s(std::uint32_t task) {
  double last_s = 0;
  for (std::size_t s = 0; s < kStreams; ++s) {
    const std::uint32_t entry = clocks_[task][s];
    if (entry == 0) continue;
    const Event end = entries_[s][entry - 1].end;
    if (!device_.done(end)) return std::nullopt;
    last_s = std::max(last_s, device_.seconds_between(origin_, end));
  }
  return last_s;
}

std::uint32_t StreamSchedule::first_undone() {
  for (std::size_t s = 0; s < kStreams; ++s) {
    for (std::uint32_t i = 0; i < used_[s]; ++i) {
      if (!device_.done(entries_[s][i].end)) return entries_[s][i].task;
    }
  }
  return kNoIndex;
}

StreamSchedule::Times StreamSchedule::times(std::uint32_t task) {
  const Place place = places_[task];
  if (place.entry == 0) return {};
  const Entry& entry = entries_[number(place.stream)][place.entry - 1];
  return {true, device_.seconds_between(origin_, entry.start),
          device_.seconds_between(origin_, entry.end)};
}

StreamSchedule::Entry& StreamSchedule::next_entry(Stream stream) {
  std::vector<Entry>& entries = entries_[number(stream)];
  const std::uint32_t index = used_[number(stream)]++;
  if (index == entries.size()) {
    entries.push_back({.start = device_.make_event(), .end = device_.make_event()});
  }
  return entries[index];
}

void StreamSchedule::catch_up(Stream stream, const StreamClock& needed) {
  StreamClock& known = known_[number(stream)];
  for (std::size_t other = 0; other < kStreams; ++other) {
    if (other == number(stream) || needed[other] <= known[other]) continue;
    const Entry& entry = entries_[other][needed[other] - 1];
    device_.wait(entry.end, stream);
    raise(known, entry.known);
  }
}

void StreamSchedule::add_predecessors(std::uint32_t task, StreamClock& clock) const {
  for (std::uint32_t i = first_predecessor_[task]; i < first_predecessor_[task + 1]; ++i) {
    raise(clock, clocks_[predecessors_[i]]);
  }
}

}  // namespace hipress::runtime
