#include <algorithm>
#include <array>
#include <stdexcept>

#include "casync/layers.hpp"
#include "casync/schedules/rows.hpp"

namespace hipress::casync {
namespace {

constexpr std::int64_t kMostSteps = 1'000'000;
constexpr std::array<std::string_view, 2> kPatterns = {"strided", "sequential"};

/// Indices into kParameters.
enum Place : std::uint8_t { kSteps_, kFragments, kEvery, kPattern, kOverlap };

constexpr std::array<ScheduleParameter, 5> kParameters = {{
    {.name = "steps",
     .help = "number of steps between two synchronisations of a fragment; more: less traffic, and "
             "ranks drift further apart",
     .least = 1,
     .most = kMostSteps,
     .value = 100,
     .always_said = true},
    {.name = "fragments",
     .help = "number of parts of the model, synchronised in turn; more: smaller bursts",
     .least = 1,
     .most = kMostSteps,
     .value = 1},
    {.name = "every",
     .help = "number of steps between two fragments; 0: steps/fragments, rounded down",
     .least = 0,
     .most = kMostSteps},
    {.name = "pattern",
     .help = "choice of a fragment's layers: strided is every fragments-th, sequential neighbours",
     .words = kPatterns},
    {.name = "overlap",
     .help = "number of steps that continue without a fragment's mean; more: it may take longer, "
             "and is older",
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
    throw std::invalid_argument("local: overlap=" + std::to_string(overlap) +
                                " of steps=" + std::to_string(steps) +
                                ": a fragment's mean must arrive before it is synchronised again; "
                                "give an overlap of at most " +
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
    throw std::invalid_argument("local: fragments=" + std::to_string(fragments) +
                                " of a model of " + std::to_string(layers.names.size()) +
                                " layers: give at most that many; the layer of a gradient is that "
                                "of the model file, or else its name up to the first number");
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
  std::string text = "each rank trains alone for " + std::to_string(period(values)) +
                     " steps, then the changes of the weights are averaged";
  if (values[kOverlap] > 0) {
    text += ", and applied " + std::to_string(values[kOverlap]) +
            (values[kOverlap] == 1 ? " step late" : " steps late");
  }
  return text + ": measure the effect on your loss";
}

}  // namespace

namespace {
constexpr ScheduleAlias kAliases[] = {{"diloco", "local(steps=100)"},
                                      {"local_sgd", "local(steps=8)"},
                                      {"localsgd", "local(steps=8)"}};
}  // namespace

/// Local updates. With one fragment this is DiLoCo (Douillard et al., arXiv 2311.08105), with
/// several Streaming DiLoCo (arXiv 2501.18512). Every fragment is synchronised once in max(`steps`,
/// `fragments` · `every`) steps.
const ScheduleRow kLocal{
    .name = "local",
    .help =
        "several steps on each node alone, then the mean of the changes of the weights (DiLoCo)",
    .parameters = kParameters,
    .check = check,
    .timetable = timetable,
    .gives_up = gives_up,
    .aliases = kAliases};

}  // namespace hipress::casync
