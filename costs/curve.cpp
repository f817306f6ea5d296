#include "costs/curve.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "costs/robust.hpp"

namespace hipress::costs {
namespace {

// Relative error below which a segment is not split: timers and schedulers are not more repeatable.
constexpr double kGoodEnough = 0.02;
// A split must lower the robust loss to below this fraction. Samples are medians of many
// repetitions, so a curve should follow them closely.
constexpr double kClearGain = 0.8;
// Minimum number of samples per piece, and in the last piece, which is extrapolated.
constexpr std::size_t kMinSamplesPerPiece = 2;
constexpr std::size_t kMinSamplesOfLast = 3;
constexpr std::size_t kMaxPieces = 6;

using Samples = std::span<const Sample>;

/// Constraint on a line's intercept: not negative in the first piece, which starts at 0; else free.
enum class Intercept { kNotNegative, kFree };

struct Line {
  double a = 0;
  double b = 0;
  double operator()(double x) const { return a + b * x; }
};

/// Line through samples [begin, end) of the sorted list, with the sum of its robust losses.
struct Segment {
  std::size_t begin = 0;
  std::size_t end = 0;
  Line line;
  double loss = 0;
};

double relative_residual(const Line& line, const Sample& sample) {
  return line(static_cast<double>(sample.x)) / sample.expected_s() - 1;
}

/// Minimises the sum of squares of weight·(A + B·x − y)/y with B >= 0 and, unless free, A >= 0. A
/// coefficient that is negative in the unconstrained optimum is 0 in the constrained one.
Line fit_weighted(Samples samples, const Eigen::VectorXd& weights, Intercept intercept) {
  const auto rows = static_cast<Eigen::Index>(samples.size());
  // Scale x to at most 1 for conditioning: elements are in the millions, seconds in the billionths.
  double scale = 1;
  for (const Sample& sample : samples) scale = std::max(scale, static_cast<double>(sample.x));
  Eigen::MatrixX2d matrix(rows, 2);
  for (Eigen::Index i = 0; i < rows; ++i) {
    const Sample& sample = samples[static_cast<std::size_t>(i)];
    const double weight = weights[i] / sample.expected_s();
    matrix(i, 0) = weight;
    matrix(i, 1) = weight * static_cast<double>(sample.x) / scale;
  }
  const auto alone = [&](Eigen::Index column) {
    const double norm = matrix.col(column).squaredNorm();
    return norm > 0 ? matrix.col(column).dot(weights) / norm : 0.0;
  };
  const bool one_size = std::all_of(samples.begin(), samples.end(),
                                    [&](const Sample& sample) { return sample.x == samples[0].x; });
  if (one_size) return {alone(0), 0};
  const Eigen::Vector2d best = matrix.colPivHouseholderQr().solve(weights);
  if (best[1] < 0) return {alone(0), 0};
  if (best[0] < 0 && intercept == Intercept::kNotNegative) return {0, alone(1) / scale};
  return {best[0], best[1] / scale};
}

/// Absolute relative residuals.
std::vector<double> residual_sizes(Samples samples, const Line& line) {
  std::vector<double> sizes;
  for (const Sample& sample : samples) sizes.push_back(std::abs(relative_residual(line, sample)));
  return sizes;
}

Line fit_line(Samples samples, Intercept intercept) {
  Eigen::VectorXd weights = Eigen::VectorXd::Ones(static_cast<Eigen::Index>(samples.size()));
  Line line = fit_weighted(samples, weights, intercept);
  for (int iteration = 0; iteration < 50; ++iteration) {
    const std::vector<double> sizes = residual_sizes(samples, line);
    const double bend = huber_bend(sizes);
    for (Eigen::Index i = 0; i < weights.size(); ++i)
      weights[i] = huber_weight(sizes[static_cast<std::size_t>(i)], bend);
    const Line next = fit_weighted(samples, weights, intercept);
    const bool settled = std::abs(next.a - line.a) <= 1e-9 * std::abs(line.a) &&
                         std::abs(next.b - line.b) <= 1e-9 * line.b;
    line = next;
    if (settled) break;
  }
  return line;
}

/// Sum of absolute relative residuals. Squares would let an outlier decide where to split.
double robust_loss(Samples samples, const Line& line) {
  double loss = 0;
  for (const Sample& sample : samples) loss += std::abs(relative_residual(line, sample));
  return loss;
}

Segment fit_segment(Samples samples, std::size_t begin, std::size_t end) {
  const Samples own = samples.subspan(begin, end - begin);
  const Line line = fit_line(own, begin == 0 ? Intercept::kNotNegative : Intercept::kFree);
  return {begin, end, line, robust_loss(own, line)};
}

/// Size x from which the right line applies: where the lines cross, if that is between the
/// neighbouring samples, else halfway between these.
double takeover(Samples samples, const Segment& left, const Segment& right) {
  const auto last = static_cast<double>(samples[left.end - 1].x);
  const auto first = static_cast<double>(samples[right.begin].x);
  const double crossing = (left.line.a - right.line.a) / (right.line.b - left.line.b);
  return crossing >= last && crossing <= first ? crossing : (last + first) / 2;
}

bool falls(Samples samples, const Segment& left, const Segment& right) {
  const double x = takeover(samples, left, right);
  return right.line(x) < left.line(x) * (1 - kGoodEnough);
}

double total_loss(const std::vector<Segment>& segments) {
  double loss = 0;
  for (const Segment& segment : segments) loss += segment.loss;
  return loss;
}

/// Best split of one of the segments into two; nullopt if no split is allowed.
std::optional<std::vector<Segment>> split_once(Samples samples,
                                               const std::vector<Segment>& segments) {
  std::optional<std::vector<Segment>> best;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const Segment& whole = segments[s];
    const std::size_t least_behind =
        whole.end == samples.size() ? kMinSamplesOfLast : kMinSamplesPerPiece;
    for (std::size_t cut = whole.begin + kMinSamplesPerPiece; cut + least_behind <= whole.end;
         ++cut) {
      if (samples[cut - 1].x == samples[cut].x) continue;
      std::vector<Segment> candidate = segments;
      candidate[s] = fit_segment(samples, whole.begin, cut);
      candidate.insert(candidate.begin() + static_cast<std::ptrdiff_t>(s) + 1,
                       fit_segment(samples, cut, whole.end));
      bool rising = true;
      for (std::size_t i = 0; i + 1 < candidate.size(); ++i) {
        rising = rising && !falls(samples, candidate[i], candidate[i + 1]);
      }
      if (rising && (!best || total_loss(candidate) < total_loss(*best)))
        best = std::move(candidate);
    }
  }
  return best;
}

std::vector<Segment> fit_segments(Samples samples) {
  std::vector<Segment> segments = {fit_segment(samples, 0, samples.size())};
  const auto count = static_cast<double>(samples.size());
  while (segments.size() < kMaxPieces && total_loss(segments) / count > kGoodEnough) {
    auto finer = split_once(samples, segments);
    if (!finer || total_loss(*finer) > kClearGain * total_loss(segments)) break;
    segments = std::move(*finer);
  }
  return segments;
}

void check(const std::vector<Sample>& samples) {
  if (samples.empty()) throw std::invalid_argument("fit_curve: needs at least one sample");
  for (const Sample& sample : samples) {
    if (!std::isfinite(sample.expected_s()) || sample.expected_s() <= 0 || sample.x < 0) {
      throw std::invalid_argument("fit_curve: sample at x = " + std::to_string(sample.x) +
                                  " needs x >= 0 and a positive, finite time");
    }
  }
}

}  // namespace

double Curve::at(double x) const {
  if (pieces.empty()) return 0;
  const Piece* piece = &pieces.front();
  for (const Piece& candidate : pieces) {
    if (x < candidate.from) break;
    piece = &candidate;
  }
  const double seconds = piece->a_s + piece->b_s * x;
  return seconds < floor_s ? floor_s : seconds;  // returns NaN for a NaN
}

Curve Curve::times(double factor) const {
  Curve scaled = *this;
  for (Piece& piece : scaled.pieces) {
    piece.a_s *= factor;
    piece.b_s *= factor;
  }
  scaled.floor_s *= factor;
  return scaled;
}

Curve between(const Curve& a, const Curve& b, double share) {
  // The result has a piece wherever either curve has one.
  const auto piece_at = [](const Curve& curve, double x) {
    Curve::Piece found;
    for (const Curve::Piece& piece : curve.pieces) {
      if (piece.from <= x || &piece == curve.pieces.data()) found = piece;
    }
    return found;
  };
  std::vector<double> starts;
  for (const Curve* const curve : {&a, &b}) {
    for (const Curve::Piece& piece : curve->pieces) starts.push_back(piece.from);
  }
  std::ranges::sort(starts);
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  Curve curve;
  for (const double from : starts) {
    const Curve::Piece of_a = piece_at(a, from), of_b = piece_at(b, from);
    curve.pieces.push_back({.from = from,
                            .a_s = of_a.a_s + share * (of_b.a_s - of_a.a_s),
                            .b_s = of_a.b_s + share * (of_b.b_s - of_a.b_s)});
  }
  curve.floor_s = a.floor_s + share * (b.floor_s - a.floor_s);
  return curve;
}

Fit fit_curve(const std::vector<Sample>& samples) {
  check(samples);
  std::vector<Sample> sorted = samples;
  std::sort(sorted.begin(), sorted.end(), [](const Sample& left, const Sample& right) {
    return left.x != right.x ? left.x < right.x : left.expected_s() < right.expected_s();
  });
  const std::vector<Segment> segments = fit_segments(sorted);

  Fit fit;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const double from = s == 0 ? 0 : takeover(sorted, segments[s - 1], segments[s]);
    fit.curve.pieces.push_back({from, segments[s].line.a, segments[s].line.b});
  }
  std::vector<double> residuals;
  for (const Sample& sample : sorted) {
    residuals.push_back(std::abs(fit.curve(sample.x) / sample.expected_s() - 1));
  }
  fit.median_relative_residual = median(residuals);
  fit.max_relative_residual = *std::max_element(residuals.begin(), residuals.end());
  return fit;
}

}  // namespace hipress::costs
