#include <algorithm>
#include <array>
#include <stdexcept>

#include "casync/layers.hpp"
#include "casync/schedules/rows.hpp"

namespace hipress::casync {
namespace {

constexpr std::int64_t kMostSteps = 1'000'000;
constexpr std::array<std::string_view, 2> kPatterns = {"strided", "sequential"};

/// Places in kParameters.
enum Place : std::uint8_t { kSteps_, kFragments, kEvery, kPattern, kOverlap };

constexpr std::array<ScheduleParameter, 5> kParameters = {{
    {.name = "steps",
     .help = "steps between two synchronisations of a fragment; more: less traffic, and ranks "
             "drift further apart",
     .least = 1,
     .most = kMostSteps,
     .value = 100,
     .always_said = true},
    {.name = "fragments",
     .help = "parts of the model, synchronised in turn; more: smaller bursts",
     .least = 1,
     .most = kMostSteps,
     .value = 1},
    {.name = "every",
     .help = "steps between two fragments; 0: steps/fragments, rounded down",
     .least = 0,
     .most = kMostSteps},
    {.name = "pattern",
     .help = "layers of a fragment: strided is every fragments-th, sequential neighbours",
     .words = kPatterns},
    {.name = "overlap",
     .help = "steps that go on without a fragment's mean; more: it may take longer, and is older",
     .least = 0,
     .most = kMostSteps},
}};

std::int64_t every(const ScheduleValues& values) {
  if (values[kEvery] > 0) return values[kEvery];
  return std::max<std::int64_t>(1, values[kSteps_] / values[kFragments]);
}

std::int64_t period(const ScheduleValues& values) {
  return std::max(values[kSteps_], values[kFragments] * every(values));
}

void check(const ScheduleValues& values) {
  const std::int64_t overlap = values[kOverlap], steps = values[kSteps_];
  if (overlap >= steps) {
    throw std::invalid_argument(
        "local: overlap=" + std::to_string(overlap) + " of steps=" + std::to_string(steps) +
        ": a fragment's mean must be there before it is synchronised again; give an overlap of at "
        "most " +
        std::to_string(steps - 1));
  }
  if (period(values) > kMostSteps) {
    throw std::invalid_argument("local: fragments=" + std::to_string(values[kFragments]) +
                                ", one every=" + std::to_string(every(values)) +
                                " steps, take more than " + std::to_string(kMostSteps) +
                                " steps in turn; give fewer fragments or a smaller every");
  }
}

Timetable timetable(const ScheduleValues& values, const models::Model& model) {
  const Layers layers = layers_of(model);
  const auto fragments = static_cast<std::size_t>(values[kFragments]);
  if (fragments > layers.names.size()) {
    throw std::invalid_argument(
        "local: fragments=" + std::to_string(fragments) + " of a model of " +
        std::to_string(layers.names.size()) +
        " layers: give at most as many; a gradient's layer is what the model file says, else "
        "what its name has up to its first number");
  }
  Timetable table{
      .steps = static_cast<std::uint32_t>(period(values)), .part_of = {}, .synchronisations = {}};
  for (const std::uint32_t layer : layers.of_gradient) {
    const bool strided = kPatterns[static_cast<std::size_t>(values[kPattern])] == "strided";
    const std::size_t part =
        strided ? layer % fragments : ((layer + 1) * fragments - 1) / layers.names.size();
    table.part_of.push_back(static_cast<std::uint32_t>(part));
  }
  for (std::uint32_t part = 0; part < fragments; ++part) {
    const auto step = static_cast<std::uint32_t>((part + 1) * every(values) - 1);
    table.synchronisations.push_back(
        {.part = part,
         .step = step,
         .awaited = step + 1 + static_cast<std::uint32_t>(values[kOverlap])});
  }
  return table;
}

std::string gives_up(const ScheduleValues& values) {
  if (period(values) == 1) return {};
  std::string text = "ranks train alone for " + std::to_string(period(values)) +
                     " steps before what a weight has moved by is averaged";
  if (values[kOverlap] > 0) {
    text += ", which they apply " + std::to_string(values[kOverlap]) +
            (values[kOverlap] == 1 ? " step late" : " steps late");
  }
  return text + ": measure what that does to your loss";
}

}  // namespace

namespace {
constexpr ScheduleAlias kAliases[] = {{"diloco", "local(steps=100)"},
                                      {"local_sgd", "local(steps=8)"},
                                      {"localsgd", "local(steps=8)"}};
}  // namespace

/// Local updates: DiLoCo (Douillard et al., arXiv 2311.08105) with one fragment, Streaming DiLoCo
/// (arXiv 2501.18512) with several. Every fragment is synchronised once in `steps` steps, or, where
/// its turn takes longer, in fragments · every.
const ScheduleRow kLocal{.name = "local",
                         .help =
                             "several steps on each node alone, then the mean of how far the "
                             "weights have moved (DiLoCo)",
                         .parameters = kParameters,
                         .check = check,
                         .timetable = timetable,
                         .gives_up = gives_up,
                         .aliases = kAliases};

}  // namespace hipress::casync
