#include "kernels/lowrank/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "kernels/lowrank/order.hpp"

namespace hipress::kernels::lowrank {

namespace {

constexpr std::string_view kRank = "rank", kFeedback = "ef";

/// Minimal compression: factors must have less than half of a matrix's numbers, as in PyTorch
/// (min_compression_rate 2).
constexpr std::int64_t kLeastSaving = 2;

/// Number of entries; in double, so that no shape overflows.
double entries(const MatrixShape& shape) {
  return static_cast<double>(shape.rows) * static_cast<double>(shape.columns);
}

CodecTraits make_traits(int stages, Feedback feedback) {
  CodecTraits traits;
  traits.error_feedback = feedback != Feedback::kNone;
  traits.state_arrays = traits.error_feedback ? 1 : 0;
  traits.additive = true;
  traits.stages = stages;
  return traits;
}

bool has_null(std::span<float* const> pointers) {
  return std::find(pointers.begin(), pointers.end(), nullptr) != pointers.end();
}

}  // namespace

std::vector<Parameter> parameters() {
  return {{.name = kRank, .value = 4, .least = 1, .most = kMaxRank, .whole = true},
          {.name = kFeedback, .value = 1, .least = 0, .most = 2, .whole = true}};
}

LowRankCodec::LowRankCodec(std::string_view name, int stages, const Values& values,
                           std::unique_ptr<const Operators> operators)
    : name_(name),
      rank_(static_cast<int>(values.at(std::string(kRank)))),
      feedback_(static_cast<Feedback>(values.at(std::string(kFeedback)))),
      traits_(make_traits(stages, feedback_)),
      operators_(std::move(operators)) {}

std::int64_t LowRankCodec::encoded_bytes(std::int64_t elements) const {
  return elements * static_cast<std::int64_t>(sizeof(float));
}

void LowRankCodec::encode(std::span<const EncodeItem> /*items*/, void* /*stream*/) const {
  throw std::logic_error(
      fmt::format("{} works on whole gradients of a shape: call encode_stage()", name_));
}

void LowRankCodec::decode(std::span<const DecodeItem> /*items*/, void* /*stream*/) const {
  throw std::logic_error(
      fmt::format("{} works on whole gradients of a shape: call decode_stages()", name_));
}

MatrixShape LowRankCodec::matrix_of(Shape shape) const {
  MatrixShape matrix;
  if (!shape.empty()) {
    matrix.rows = shape.front();
    matrix.columns = elements_of(shape.subspan(1));
  }
  matrix.rank = static_cast<int>(
      std::max<std::int64_t>(0, std::min({matrix.rows, matrix.columns, std::int64_t{rank_}})));
  return matrix;
}

std::string LowRankCodec::refusal(Shape shape) const {
  const MatrixShape matrix = matrix_of(shape);
  const auto sides = static_cast<double>(matrix.rows) + static_cast<double>(matrix.columns);
  if (sides * matrix.rank * kLeastSaving < entries(matrix)) return {};
  if (shape.size() < 2) return "it is a vector, and has no factors of low rank";
  return fmt::format("factors of rank {} have more than half as many numbers as its {} x {}",
                     matrix.rank, matrix.rows, matrix.columns);
}

std::vector<StateArray> LowRankCodec::states(Shape shape) const {
  const MatrixShape matrix = matrix_of(shape);
  std::vector<StateArray> arrays;
  if (feedback_ != Feedback::kNone) {
    arrays.push_back({.name = "residual", .elements = matrix.rows * matrix.columns});
  }
  for (const StateArray& factor : factors(matrix)) arrays.push_back(factor);
  if (feedback_ == Feedback::kOwn) {
    arrays.push_back({.name = "own", .elements = last_entries(matrix)});
  }
  return arrays;
}

std::vector<LowRankCodec::Work> LowRankCodec::works_of(std::span<const StagedSlice> slices) const {
  std::vector<Work> works;
  for (const StagedSlice& slice : slices) {
    const MatrixShape shape = matrix_of(slice.shape);
    if (shape.rows < 0 || shape.columns < 0) {
      throw std::invalid_argument(
          fmt::format("{}: a gradient of {} x {}", name_, shape.rows, shape.columns));
    }
    const bool has_residual = feedback_ != Feedback::kNone, has_own = feedback_ == Feedback::kOwn;
    const std::size_t around = (has_residual ? 1 : 0) + (has_own ? 1 : 0);
    const std::size_t kept = factors(shape).size();
    if (slice.factors.size() != static_cast<std::size_t>(traits_.stages) ||
        slice.states.size() != kept + around) {
      throw std::invalid_argument(fmt::format(
          "{}: a slice with {} messages and {} states; it has "
          "{} of the former and {} of the latter",
          name_, slice.factors.size(), slice.states.size(), traits_.stages, kept + around));
    }
    if (shape.rank == 0) continue;
    if (slice.values == nullptr || has_null(slice.factors) || has_null(slice.states)) {
      throw std::invalid_argument(fmt::format(
          "{}: a slice without values, or without room for a message or a state", name_));
    }
    works.push_back({.slice = slice,
                     .shape = shape,
                     .matrix = {.values = slice.values,
                                .type = slice.type,
                                .rows = shape.rows,
                                .columns = shape.columns,
                                .residual = has_residual ? slice.states.front() : nullptr},
                     .factors = slice.states.subspan(has_residual ? 1 : 0, kept),
                     .own = has_own ? slice.states.back() : nullptr});
  }
  return works;
}

void LowRankCodec::encode_stage(int stage, std::span<const StagedSlice> slices,
                                void* stream) const {
  if (stage < 0 || stage >= traits_.stages) {
    throw std::invalid_argument(
        fmt::format("{} has {} stages; there is no stage {}", name_, traits_.stages, stage));
  }
  const std::vector<Work> works = works_of(slices);
  if (!works.empty()) encode_matrices(stage, works, stream);
}

void LowRankCodec::decode_stages(std::span<const StagedSlice> slices, void* stream) const {
  const std::vector<Work> works = works_of(slices);
  if (!works.empty()) decode_matrices(works, stream);
}

}  // namespace hipress::kernels::lowrank
