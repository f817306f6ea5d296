#include "sim/jitter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string_view>

#include "io/error.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"

namespace hipress::sim {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr double kUnit = 0x1p32;
constexpr double kMaxFactor = 1000;
constexpr int kQuantiles =
    4096;  // factors that stand for a continuous distribution: the medians of equally likely parts

// The functions below use only IEEE additions, multiplications and divisions: the exp and erf of
// different libraries differ in their last bits.

/// Computes e^x for |x| <= 64: the series at x/256, squared eight times.
double exponential(double x) {
  const double small = x / 256;
  double sum = 1, term = 1;
  for (int n = 1; n < 16; ++n) {
    term *= small / n;
    sum += term;
  }
  for (int squared = 0; squared < 8; ++squared) sum *= sum;
  return sum;
}

/// The normal distribution function at x >= 0: 1/2 + density(x) · (x + x³/3 + x⁵/(3·5) + …).
double normal_probability(double x) {
  constexpr double kInverseRootOfTwoPi = 0.3989422804014327;
  double sum = x, term = x;
  for (int n = 3; n < 200; n += 2) {
    term *= x * x / n;
    sum += term;
  }
  return 0.5 + kInverseRootOfTwoPi * exponential(-x * x / 2) * sum;
}

/// Quantile of the standard normal distribution by bisection; `probability` is 0.5 to 1 − 2^-16.
double normal_quantile(double probability) {
  double low = 0, high = 6;
  for (int step = 0; step < 52; ++step) {
    const double middle = (low + high) / 2;
    (normal_probability(middle) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

std::vector<double> lognormal(double deviation) {
  std::vector<double> factors(kQuantiles);
  double sum = 0;
  constexpr std::size_t kHalf = kQuantiles / 2;
  for (std::size_t i = 0; i < kHalf; ++i) {
    const double quantile = normal_quantile(0.5 + (static_cast<double>(i) + 0.5) / kQuantiles);
    const double above = exponential(deviation * quantile);
    factors[kHalf + i] = above;
    factors[kHalf - 1 - i] = 1 / above;
    sum += above + 1 / above;
  }
  for (double& factor : factors) factor /= sum / kQuantiles;
  return factors;
}

std::vector<double> uniform(double half_width) {
  std::vector<double> factors;
  for (int i = 0; i < kQuantiles; ++i) {
    factors.push_back(1 + half_width * ((2 * i + 1.0) / kQuantiles - 1));
  }
  return factors;
}

/// Parses a number from 0 to `most`.
double parse_factor(std::string_view text, std::string_view what, double most) {
  double value = -1;
  try {
    value = io::parse_number(text, what);
  } catch (const io::InputError&) {
    // Reported below, with the range.
  }
  if (!(value >= 0 && value <= most)) {
    throw io::InputError(
        fmt::format("{} must be a number from 0 to {:g}, got {}", what, most, io::quote(text)));
  }
  return value;
}

std::string_view without_blanks(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t") - first + 1);
}

std::vector<double> read_samples(const std::string& path) {
  std::vector<double> factors;
  int number = 0;
  for (const std::string& line : io::read_lines(path)) {
    ++number;
    const std::string_view text = without_blanks(line);
    if (text.empty() || text.front() == '#') continue;
    try {
      factors.push_back(parse_factor(text, "a factor", kMaxFactor));
    } catch (const io::InputError& error) {
      throw io::InputError(path, number, error.what());
    }
  }
  if (factors.empty()) {
    throw io::InputError(fmt::format("{}: has no factors; give one a line, such as 1.05", path));
  }
  return factors;
}

}  // namespace

std::uint64_t mix(std::uint64_t bits) {
  for (int round = 0; round < 2; ++round) {
    bits += 0x9e3779b97f4a7c15u;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    bits ^= bits >> 31;
  }
  return bits;
}

Jitter::Jitter(const std::vector<double>& factors) {
  if (factors.empty()) throw io::InputError("jitter needs at least one factor");
  for (const double factor : factors) {
    if (!(factor >= 0 && factor <= kMaxFactor)) {
      throw io::InputError(
          fmt::format("a jitter factor must be 0 to {:g}, got {}", kMaxFactor, factor));
    }
    factors_.push_back(static_cast<std::uint64_t>(factor * kUnit + 0.5));
  }
}

Jitter Jitter::parse(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string value = colon == std::string::npos ? "" : text.substr(colon + 1);
  const auto parameter = [&](double most) {
    return parse_factor(value, fmt::format("jitter {}: what is behind the colon", io::quote(text)),
                        most);
  };
  if (kind == "lognormal") return Jitter(lognormal(parameter(2)));
  if (kind == "uniform") return Jitter(uniform(parameter(1)));
  if (kind == "samples") return Jitter(read_samples(value));
  throw io::InputError(fmt::format(
      "unknown jitter {}; known are lognormal:S, uniform:W, samples:FILE", io::quote(text)));
}

std::optional<double> Jitter::constant() const {
  const auto other = std::adjacent_find(factors_.begin(), factors_.end(), std::not_equal_to<>());
  if (other != factors_.end()) return std::nullopt;
  return static_cast<double>(factors_.front()) / kUnit;
}

std::int64_t Jitter::apply(std::int64_t work, const Draws& draws, std::uint32_t task) const {
  const std::uint64_t stream = mix(mix(draws.seed) ^ draws.replica);
  const std::uint64_t draw = mix(stream ^ (std::uint64_t{task} << 32));
  const auto index = static_cast<std::size_t>((Wide{draw} * factors_.size()) >> 64);
  const Wide exact = Wide{static_cast<std::uint64_t>(work)} * factors_[index];
  constexpr Wide kMax = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min((exact + (Wide{1} << 31)) >> 32, kMax));
}

}  // namespace hipress::sim
