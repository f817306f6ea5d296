#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <string>

#include "casync/layout.hpp"
#include "planner/analysis/verdict.hpp"
#include "plans/plan_builder.hpp"

namespace hipress::planner {
namespace {

/// Describes the size of a message: "1 bit a value", "4.5 bits a value", or "low rank".
std::string bits_of(const casync::Algorithm& algorithm) {
  if (algorithm.is_additive()) return "low rank";
  constexpr std::int64_t kElements = 1 << 20;
  const double bits =
      8 * static_cast<double>(algorithm.message_bytes(kElements)) / static_cast<double>(kElements);
  const std::string text = fmt::format("{:.2g}", bits);
  return text + (text == "1" ? " bit a value" : " bits a value");
}

/// True for embedding tables, by their names in models of public libraries.
bool is_embedding(const models::Gradient& gradient) {
  if (gradient.shape.size() == 1) return false;  // weights of a norm, or a bias
  std::string name = gradient.name;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::array kWords = {"embed", "wte", "tok_emb", "emb_", "lookup"};
  return std::ranges::any_of(
      kWords, [&](const char* word) { return name.find(word) != std::string::npos; });
}

/// First matrix in the order of backward: that of the last layer.
const models::Gradient* last_layer(const models::Model& model) {
  for (const std::uint32_t g : casync::backward_order(model)) {
    if (model.gradients[g].shape.size() > 1) return &model.gradients[g];
  }
  return nullptr;
}

/// Counts compressed gradients by algorithm, for one kind of message.
class Count {
 public:
  Count(const models::Model& model, const casync::Plan& plan) : model_(model), plan_(plan) {}

  void add(std::size_t g, std::int8_t index) {
    if (plans::is_raw(model_.gradients[g], plan_, {.algorithm = index})) return;
    ++counts_[index];
    const casync::Algorithm& algorithm = plan_.algorithms[static_cast<std::size_t>(index)];
    if (algorithm.half_precision) return;
    const models::Gradient& gradient = model_.gradients[g];
    const bool larger = embedding_ == nullptr || embedding_->elements < gradient.elements;
    if (larger && is_embedding(gradient)) embedding_ = &gradient;
    if (&gradient == last_layer(model_)) last_ = &gradient;
  }

  /// Describes the counts: "onebit (1 bit a value) for 12 of 38 gradients"; empty without counts.
  std::string text(std::string_view of) const {
    std::string made;
    for (const auto& [index, count] : counts_) {
      const casync::Algorithm& algorithm = plan_.algorithms[static_cast<std::size_t>(index)];
      const std::string bits = algorithm.half_precision ? "" : " (" + bits_of(algorithm) + ")";
      made += fmt::format("{}{}{} for {}", made.empty() ? "" : ", ", algorithm.name, bits, count);
    }
    if (made.empty()) return made;
    return fmt::format("{} of {} {}", made, model_.gradients.size(), of);
  }

  const models::Gradient* embedding() const { return embedding_; }
  const models::Gradient* last() const { return last_; }

 private:
  const models::Model& model_;
  const casync::Plan& plan_;
  std::map<std::int8_t, std::size_t> counts_;
  const models::Gradient* embedding_ = nullptr;
  const models::Gradient* last_ = nullptr;
};

}  // namespace

std::string what_is_compressed(const Problem& problem, const casync::Plan& plan) {
  const models::Model& model = problem.model;
  Count gathers(model, plan), gradients(model, plan);
  for (std::size_t g = 0; g < plan.decisions.size(); ++g) {
    gathers.add(g, plan.gather_of(static_cast<std::uint32_t>(g)));
    gradients.add(g, plan.decisions[g].algorithm);
  }
  const std::string gathered = gathers.text("gathers");
  const bool in_shards = kind_of(plan.schedule) == JobKind::kSharding;
  const std::string reduced = gradients.text(in_shards ? "reductions" : "gradients");
  std::string text = gathered + (gathered.empty() || reduced.empty() ? "" : ", ") + reduced;
  const auto* const embedding =
      gathers.embedding() != nullptr ? gathers.embedding() : gradients.embedding();
  const auto* const last = gathers.last() != nullptr ? gathers.last() : gradients.last();
  if (embedding != nullptr) text += fmt::format(", the embedding ({})", embedding->name);
  if (last != nullptr && last != embedding) {
    text += fmt::format("{} the last layer ({})", embedding != nullptr ? " and" : ",", last->name);
  }
  return text + (embedding != nullptr || last != nullptr ? " among them" : "");
}

}  // namespace hipress::planner
