// Implements hipress_read_sharded_plan(), for programs that send shards with their own collectives.

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "casync/plan.hpp"
#include "io/document.hpp"
#include "io/error.hpp"
#include "io/yaml.hpp"
#include "kernels/codec/codec.hpp"
#include "models/model.hpp"
#include "plans/plan_file.hpp"
#include "runtime/c_interface.hpp"
#include "runtime/engine.hpp"
#include "runtime/hipress.h"

using namespace hipress;
using io::Document;
using runtime::guarded;
using runtime::required;
using runtime::text_of;

namespace {

const char* name_of(casync::Prefetch prefetch) {
  if (prefetch == casync::Prefetch::kPre) return "pre";
  return prefetch == casync::Prefetch::kPost ? "post" : "none";
}

/// Reason why gathers cannot use an algorithm; empty if they can. Gathers have no error feedback.
std::string refusal_of_gather(const std::string& algorithm, const kernels::CodecTraits& traits) {
  const kernels::AlgorithmRow* const row = kernels::find_algorithm(algorithm);
  const bool lossless = row != nullptr && row->lossless;
  const bool in_blocks = kernels::parameter_value(algorithm, "block").has_value();
  if (in_blocks || lossless || traits.half_precision) return {};
  return fmt::format(
      "parameters are gathered as {}, and no error feedback corrects its errors; gather raw, or by "
      "a block format, a cast or a lossless codec",
      algorithm);
}

/// Reason why reductions cannot use an algorithm; empty if they can.
std::string refusal_of_reduction(const std::string& algorithm, const kernels::CodecTraits& traits) {
  if (!traits.additive && traits.stages == 1 && !traits.own_optimizer) return {};
  return fmt::format(
      "gradients are reduced by {}, which {}; take an algorithm that compresses "
      "slices, such as int4block",
      algorithm, traits.own_optimizer ? "is an optimizer of its own" : "takes whole gradients");
}

/// The plan's YAML, for line numbers in errors. Named plans and other formats have no lines.
class Lines {
 public:
  Lines(std::string plan, bool is_named) : plan_(std::move(plan)) {
    if (!is_named && io::is_yaml_name(plan_)) root_ = io::YamlNode::load(plan_);
  }

  [[noreturn]] void refuse_schedule(const std::string& why) const {
    if (!root_) throw io::InputError(plan_, 0, why);
    root_->find("schedule").value_or(*root_).fail(why);
  }

  /// `key` is the refused key of the gradient's entry.
  [[noreturn]] void refuse(const std::string& gradient, std::string_view key,
                           const std::string& why) const {
    const std::string label = "gradient " + io::quote(gradient);
    if (root_) {
      for (const io::YamlNode& item : root_->at("gradients").items()) {
        if (item.at("name").text() == gradient) item.named(label).at(key).fail(why);
      }
    }
    throw io::InputError(fmt::format("plan {}: {}: {}", plan_, label, why));
  }

 private:
  std::string plan_;
  std::optional<io::YamlNode> root_;
};

using Refusal = std::string (*)(const std::string&, const kernels::CodecTraits&);

/// Name of a gradient's algorithm; null: raw.
Document algorithm_of(const plans::ResolvedPlan& resolved, std::int8_t algorithm,
                      Refusal refusal_of,
                      const std::function<void(const std::string& why)>& refuse) {
  if (algorithm == casync::kRaw) return nullptr;
  const auto place = static_cast<std::size_t>(algorithm);
  const std::string& name = resolved.plan.algorithms[place].name;
  const std::string refusal = refusal_of(name, resolved.codecs[place]->traits());
  if (!refusal.empty()) refuse(refusal);
  return name;
}

/// Model of the gradients. Each is a layer of its own, as the caller does the grouping.
models::Model model_of(const hipress_gradient* gradients, std::size_t count) {
  models::Model model = runtime::model_of(runtime::gradients_of(gradients, count, nullptr));
  for (models::Gradient& gradient : model.gradients) gradient.layer = gradient.name;
  return model;
}

void require_sharded(const Lines& lines, const casync::Schedule& schedule) {
  if (schedule.row().sharded) return;
  lines.refuse_schedule(fmt::format(
      "the plan is for schedule {}, and here parameters are in shards: plan for schedule fsdp or "
      "hsdp, or train with DistributedDataParallel",
      schedule.text()));
}

Document described_gradients(const plans::ResolvedPlan& resolved, const models::Model& model,
                             const Lines& lines) {
  Document::List gradients;
  for (std::uint32_t g = 0; g < model.gradients.size(); ++g) {
    const std::string& name = model.gradients[g].name;
    const casync::Plan& plan = resolved.plan;
    gradients.push_back(Document(
        {{"algorithm",
          algorithm_of(resolved, plan.decisions[g].algorithm, refusal_of_reduction,
                       [&](const std::string& why) { lines.refuse(name, "algorithm", why); })},
         {"gather",
          algorithm_of(resolved, plan.gather_of(g), refusal_of_gather,
                       [&](const std::string& why) { lines.refuse(name, "gather", why); })}}));
  }
  return Document::list(std::move(gradients));
}

Document described(const std::string& plan, const plans::PlanContext& context) {
  const plans::ResolvedPlan resolved = plans::resolve_plan(plan, context);
  const bool named = plans::is_named_plan(plan, context);
  const Lines lines(plan, named);
  if (!named) require_sharded(lines, resolved.plan.schedule);
  const casync::Timetable table = resolved.plan.schedule.timetable(context.model);
  const casync::Sharding sharding = table.sharding.value_or(casync::Sharding{});
  const std::uint32_t nodes = context.nodes;
  return {{"schedule", named ? Document(nullptr) : Document(resolved.plan.schedule.text())},
          {"named", named},
          {"shard", sharding.shards(nodes)},
          {"reshard", sharding.stays_whole() ? 1 : sharding.gathers_among(nodes)},
          {"prefetch", name_of(sharding.prefetch)},
          {"in_flight", sharding.in_flight},
          {"separate_communicators", sharding.separate_communicators},
          {"exchange_within", resolved.plan.exchange_within},
          {"gradients", described_gradients(resolved, context.model, lines)}};
}

}  // namespace

extern "C" {

hipress_status hipress_read_sharded_plan(const char* plan, const char* algorithm, int ranks,
                                         const hipress_gradient* gradients, size_t count,
                                         char** result) {
  if (result != nullptr) *result = nullptr;
  return guarded([&] {
    required(result, "result");
    if (ranks < 1) throw std::invalid_argument(fmt::format("{} ranks: give 1 or more", ranks));
    const std::string file = &required(plan, "plan");
    const models::Model model = model_of(gradients, count);
    const std::optional<std::string> topology = plans::topology_of_plan(file);
    const plans::PlanContext context{.model = model,
                                     .topology = topology.value_or("ring"),
                                     .nodes = static_cast<std::uint32_t>(ranks),
                                     .algorithm = text_of(algorithm)};
    *result = runtime::copy_of(described(file, context).print());
    if (*result == nullptr) throw std::bad_alloc();
  });
}

}  // extern "C"
