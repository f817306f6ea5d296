#include "runtime/computation.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hipress::runtime {
namespace {

void multiply(const float* a, const float* b, float* c, std::int64_t n) {
  std::fill(c, c + n * n, 0.0F);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t k = 0; k < n; ++k) {
      for (std::int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
  }
}

/// Softmax of one query's products with all keys. `query` and `keys` point to the head's first
/// column.
std::vector<double> shares_of_keys(const float* query, const float* keys, std::int64_t n) {
  std::vector<double> shares(static_cast<std::size_t>(n));
  for (std::int64_t key = 0; key < n; ++key) {
    double product = 0;
    for (std::int64_t i = 0; i < kHeadColumns; ++i) product += query[i] * keys[key * n + i];
    shares[static_cast<std::size_t>(key)] = product / std::sqrt(kHeadColumns);
  }
  const double most = *std::ranges::max_element(shares);
  double sum = 0;
  for (double& share : shares) sum += share = std::exp(share - most);
  for (double& share : shares) share /= sum;
  return shares;
}

void attend(const float* a, const float* b, float* c, std::int64_t n) {
  for (std::int64_t head = 0; head < n; head += kHeadColumns) {
    for (std::int64_t row = 0; row < n; ++row) {
      const std::vector<double> shares = shares_of_keys(a + row * n + head, b + head, n);
      for (std::int64_t i = 0; i < kHeadColumns; ++i) {
        double sum = 0;
        for (std::int64_t key = 0; key < n; ++key) {
          sum += shares[static_cast<std::size_t>(key)] * b[key * n + head + i];
        }
        c[row * n + head + i] = static_cast<float>(sum);
      }
    }
  }
}

void activate(const float* a, const float* b, float* c, std::int64_t n) {
  for (std::int64_t i = 0; i < n * n; ++i) c[i] = a[i] / (1 + std::exp(-a[i])) + b[i];
}

void sum_rows(const float* a, const float* /*b*/, float* c, std::int64_t n) {
  for (std::int64_t row = 0; row < n; ++row) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += a[row * n + i];
    c[row] = static_cast<float>(sum);
  }
}

void normalise(const float* a, const float* b, float* c, std::int64_t n) {
  for (std::int64_t row = 0; row < n; ++row) {
    const float* const values = a + row * n;
    double mean = 0, variance = 0;
    for (std::int64_t i = 0; i < n; ++i) mean += values[i];
    mean /= static_cast<double>(n);
    for (std::int64_t i = 0; i < n; ++i) variance += (values[i] - mean) * (values[i] - mean);
    const double scale = 1 / std::sqrt(variance / static_cast<double>(n) + 1e-5);
    for (std::int64_t i = 0; i < n; ++i) {
      c[row * n + i] = static_cast<float>(b[i] * (values[i] - mean) * scale + b[n + i]);
    }
  }
}

}  // namespace

void compute_on_host(models::ComputeClass what, const float* a, const float* b, float* c,
                     std::int64_t n) {
  using Function = void (*)(const float*, const float*, float*, std::int64_t);
  constexpr Function kFunctions[models::kComputeClasses] = {multiply, attend, activate, sum_rows,
                                                            normalise};
  kFunctions[static_cast<std::size_t>(what)](a, b, c, n);
}

}  // namespace hipress::runtime
