#include "requests/report_table.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "casync/layout.hpp"
#include "report/page.hpp"

namespace hipress::requests {

using namespace planner;

namespace {

using casync::Picoseconds;
using Json = io::Document;

/// Gradients of the table, in input order: all of them, or the largest.
std::vector<std::uint32_t> shown_gradients(const models::Model& model, const PageRoom& room) {
  std::vector<std::uint32_t> shown(model.gradients.size());
  std::iota(shown.begin(), shown.end(), 0u);
  if (shown.size() <= room.gradients) return shown;
  std::ranges::stable_sort(shown, std::greater{},
                           [&](std::uint32_t g) { return model.gradients[g].elements; });
  shown.resize(room.gradients);
  std::ranges::sort(shown);
  return shown;
}

/// List of distinct texts, which grows as texts are looked up. Returns the index of each.
class Words {
 public:
  int place(const std::string& word) {
    const auto found = std::ranges::find(words_, word);
    if (found != words_.end()) return static_cast<int>(found - words_.begin());
    words_.push_back(word);
    return static_cast<int>(words_.size()) - 1;
  }
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::vector<std::string> words_;
};

/// The plan as columns with one entry per gradient.
class PlanTable {
 public:
  PlanTable(const Planned& planned, const std::vector<std::uint32_t>& shown,
            const report::TextRoom& room)
      : model_(planned.advice.problem->model),
        plan_(planned.advice.found.plan),
        layout_(casync::make_layout(model_, plan_)),
        explanation_(planned.advice.analysis.explanation),
        shown_(shown),
        room_(room) {}

  Json json(const PlanSimulation* simulated) const {
    const std::vector<std::uint32_t> unit_of = units();
    std::vector<std::string> names;
    Words algorithms, dtypes;
    Json elements = Json::list(), algorithm = Json::list(), dtype = Json::list(),
         partitions = Json::list(), unit = Json::list(), ready = Json::list();
    for (const std::uint32_t g : shown_) {
      const models::Gradient& gradient = model_.gradients[g];
      const casync::Decision& decision = plan_.decisions[g];
      names.push_back(report::cut_text(gradient.name, room_));
      elements.push_back(gradient.elements);
      const casync::Algorithm* const by =
          casync::algorithm_at(plan_.algorithms, decision.algorithm);
      algorithm.push_back(
          algorithms.place(by == nullptr ? "none" : report::cut_text(by->name, room_)));
      dtype.push_back(dtypes.place(models::to_string(gradient.dtype)));
      partitions.push_back(decision.partitions);
      unit.push_back(std::int64_t{unit_of[g]});
      ready.push_back(nanoseconds(casync::from_seconds(gradient.ready_s)));
    }
    Json made = {{"all", model_.gradients.size()},
                 {"index", shown_.size() == model_.gradients.size() ? Json() : indices()},
                 {"names", report::front_coded(names)},
                 {"elements", elements},
                 {"algorithms", algorithms.words()},
                 {"algorithm", algorithm},
                 {"dtypes", dtypes.words()},
                 {"dtype", dtype},
                 {"K", partitions},
                 {"unit", unit},
                 {"ready_ns", ready},
                 {"groups", groups()}};
    if (simulated != nullptr) made["done_ns"] = done(*simulated, unit_of);
    if (explanation_) made.update(reasons());
    return made;
  }

 private:
  Json indices() const {
    Json list = Json::list();
    for (const std::uint32_t g : shown_) list.push_back(std::int64_t{g});
    return list;
  }

  /// Unit of each gradient: the gradient itself, or its bulk group.
  std::vector<std::uint32_t> units() const {
    std::vector<std::uint32_t> unit_of(model_.gradients.size());
    std::iota(unit_of.begin(), unit_of.end(), 0u);
    for (std::uint32_t unit = 0; unit < layout_.units.size(); ++unit) {
      if (!layout_.is_group(unit)) continue;
      for (const std::uint32_t member : layout_.units[unit].members) unit_of[member] = unit;
    }
    return unit_of;
  }

  /// Number of bulk groups. Their unit numbers follow those of the gradients.
  std::int64_t groups() const {
    std::int64_t count = 0;
    for (std::uint32_t unit = 0; unit < layout_.units.size(); ++unit) {
      if (layout_.is_group(unit)) ++count;
    }
    return count;
  }

  Json done(const PlanSimulation& simulated, const std::vector<std::uint32_t>& unit_of) const {
    const std::vector<Picoseconds> ends = ends_of_units(simulated, layout_.units.size());
    Json list = Json::list();
    for (const std::uint32_t g : shown_) list.push_back(nanoseconds(ends[unit_of[g]]));
    return list;
  }

  /// Explanations of the decisions, one per gradient.
  Json reasons() const {
    std::vector<std::string> of_gradient(model_.gradients.size());
    for (const GradientRow& row : explanation_->rows) {
      of_gradient[row.gradient] = report::cut_text(sentence(row.why()), room_);
    }
    Words words;
    Json why = Json::list();
    for (const std::uint32_t g : shown_) why.push_back(words.place(of_gradient[g]));
    return {{"whys", words.words()}, {"why", why}};
  }

  const models::Model& model_;
  const casync::Plan& plan_;
  const casync::Layout layout_;
  const std::optional<Explanation>& explanation_;  ///< set with `explain`
  const std::vector<std::uint32_t>& shown_;
  const report::TextRoom room_;
};

}  // namespace

io::Document plan_table_json(const Planned& planned, const PlanSimulation* simulated,
                             const PageRoom& room) {
  const std::vector<std::uint32_t> shown = shown_gradients(planned.advice.problem->model, room);
  return PlanTable(planned, shown, room.texts).json(simulated);
}

}  // namespace hipress::requests
