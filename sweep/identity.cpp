#include "sweep/identity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "io/build_id.hpp"
#include "io/digest.hpp"
#include "io/file.hpp"
#include "io/version.hpp"
#include "kernels/codec/algorithm_list.hpp"
#include "models/model_file.hpp"
#include "plans/plan_file.hpp"

namespace hipress::sweep {
namespace {

constexpr std::string_view kSchema = "hipress.sweep_cache/1";

/// Axes that a baseline depends on, besides those of machines.
constexpr std::array kOfBaselines = {kModel, kComputeTime, kTopology, kNodes, kGpusPerNode};

/// Axes that a search depends on, besides those of baselines and machines.
constexpr std::array kOfSearches = {kPlan, kAlgorithm, kRank, kRatio};

}  // namespace

Identities::Identities(const SweepInputs& inputs, std::int64_t evaluations)
    : inputs_(inputs),
      evaluations_(evaluations),
      program_(fmt::format("{} {}", io::version(), io::build_id())) {
  for (const Axis axis : {kModel, kProfile, kCluster, kPlan, kAlgorithm, kMachine}) {
    read_contents(axis);
  }
  for (const std::string& name : inputs.spec.trust.named) {
    const auto file = kernels::program_file(name);
    if (file) programs_ += fmt::format("{} {}\n", name, io::fingerprint(io::read_file(*file)));
  }
}

void Identities::read_contents(Axis axis) {
  const SweepSpec& spec = inputs_.spec;
  for (std::uint32_t i = 0; i < spec.values[axis].size(); ++i) {
    std::string& content = contents_[{axis, i}];
    if (axis == kProfile) {
      content = inputs_.profiles()[i * spec.values[kMachine].size()].fingerprint;
      continue;
    }
    std::string file = spec.path(spec.values[axis][i]);
    if (axis == kModel) file = models::model_file(file);
    if (axis == kMachine && !file.empty()) file = costs::machine_file(file);
    if (axis == kAlgorithm) file = kernels::program_file(file).value_or("");
    std::error_code error;
    const auto kind = std::filesystem::status(file, error).type();
    if (kind == std::filesystem::file_type::regular) {
      content = io::fingerprint(io::read_file(file));
      // A machine file does not contain its kernels' costs; the profile does.
      if (axis == kMachine) content += inputs_.profiles()[i].fingerprint;
    } else if (kind == std::filesystem::file_type::fifo) {
      why_none_ = fmt::format("{} is a pipe, which can be read once", file);
    }
  }
}

std::string Identities::text(const Point& point, Axis axis) const {
  const auto content = contents_.find({axis, point[axis]});
  return fmt::format("{}={} {}\n", axes()[axis].name, inputs_.value(point, axis).text,
                     content == contents_.end() ? "" : content->second);
}

std::string Identities::outcome(const Point& point, Role role) const {
  std::string all = fmt::format("{}\n{}\nrole {}\n", kSchema, program_, static_cast<int>(role));
  if (role == Role::kPoint) {
    for (std::size_t axis = 0; axis < kGraphAxes; ++axis) {
      all += text(point, static_cast<Axis>(axis));
    }
    all += programs_;
    if (planner::is_searched(inputs_.value(point, kPlan).text)) {
      all += fmt::format("evaluations {}\n", evaluations_);
    }
    all += gives_schedule(inputs_.spec) ? "a schedule\n" : "";
  } else {
    for (const Axis axis : kOfBaselines) all += text(point, axis);
  }
  return io::to_hex(io::sha256(all + machines(point)));
}

std::string Identities::plan(const Point& point) const {
  std::string all =
      fmt::format("{}\n{}\nplan\nevaluations {}\n{}", kSchema, program_, evaluations_, programs_);
  for (const Axis axis : kOfBaselines) all += text(point, axis);
  for (const Axis axis : kOfSearches) all += text(point, axis);
  return io::to_hex(io::sha256(all + machines(point)));
}

std::string Identities::machines(const Point& point) const {
  std::string all;
  for (std::size_t axis = kGraphAxes; axis < kAxes; ++axis) {
    all += text(point, static_cast<Axis>(axis));
  }
  return all;
}

std::vector<std::string> Identities::provenance() const {
  std::vector<std::string> lines = {fmt::format("hipress {}", io::version())};
  for (const auto& [value, content] : contents_) {
    if (content.empty()) continue;
    lines.push_back(fmt::format("{} {}: {}", axes()[value.first].name,
                                inputs_.spec.values[value.first][value.second].text, content));
  }
  return lines;
}

}  // namespace hipress::sweep
