// Measures the operators of low-rank codecs on one core, in GB/s of matrix, compared with Eigen's
// products of the same matrices in the same run.

#include <Eigen/Dense>
#include <random>

#include "bench/report.hpp"
#include "io/error.hpp"
#include "kernels/host/isa.hpp"
#include "kernels/lowrank/operators.hpp"
#include "tools/frame.hpp"
#include "tools/validators.hpp"

namespace {

using namespace hipress;
using kernels::lowrank::Matrix;
using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ColumnMajor = Eigen::MatrixXf;

struct Options {
  std::string json;
  std::int64_t rows = 4096, columns = 4096;
  std::vector<int> ranks = {1, 2, 4, 8, 32};
  double budget_s = 1.0;
};

/// Draws numbers with a standard deviation of about 1. They are the same in every run.
template <class Numbers>
Numbers drawn(std::int64_t rows, std::int64_t columns) {
  std::minstd_rand generator(static_cast<unsigned>(rows + columns));
  std::normal_distribution<float> values;
  Numbers numbers(rows, columns);
  for (Eigen::Index i = 0; i < numbers.size(); ++i) numbers.data()[i] = values(generator);
  return numbers;
}

/// Throws if our result differs from Eigen's by more than the fp32 rounding of sums of `terms`
/// products.
template <class Ours, class Theirs>
void require_equal(const std::string& what, const Ours& ours, const Theirs& theirs, double terms) {
  const double error = (ours - theirs).norm() / theirs.norm();
  if (!(error <= 1e-7 * std::sqrt(terms))) {
    throw io::RunError(
        fmt::format("{}: {:.2g} of its norm from Eigen's: it is not timed", what, error));
  }
}

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        operators_(kernels::lowrank::make_host_operators(kernels::best_isa())),
        matrix_(drawn<RowMajor>(options.rows, options.columns)),
        residual_(RowMajor::Zero(options.rows, options.columns)) {}

  const bench::Report& run() {
    for (const int rank : options_.ranks) run_rank(rank);
    return report_;
  }

 private:
  Matrix matrix(float* residual) {
    return {.values = matrix_.data(),
            .rows = options_.rows,
            .columns = options_.columns,
            .residual = residual};
  }

  void run_rank(int rank) {
    const auto right = drawn<ColumnMajor>(options_.columns, rank);
    const auto left = drawn<ColumnMajor>(options_.rows, rank);
    ColumnMajor tall(options_.rows, rank), wide(options_.columns, rank);
    ColumnMajor eigen_tall(options_.rows, rank), eigen_wide(options_.columns, rank);
    for (float* const residual : {static_cast<float*>(nullptr), residual_.data()}) {
      const std::string ending = fmt::format(".rank{}{}", rank, residual ? "+residual" : "");
      const kernels::lowrank::Product product{matrix(residual), right.data(), rank, tall.data()};
      const kernels::lowrank::Product transposed{matrix(residual), left.data(), rank, wide.data()};
      // Eigen cannot multiply the sum of matrix and residual without a copy of it. The residual is
      // 0 here, so Eigen multiplies the matrix alone.
      compare(
          "multiply" + ending, rank, tall, eigen_tall, options_.columns,
          [&] {
            operators_->multiply({&product, 1}, nullptr);
          },
          [&] { eigen_tall.noalias() = matrix_ * right; });
      compare(
          "transposed" + ending, rank, wide, eigen_wide, options_.rows,
          [&] {
            operators_->multiply_transposed({&transposed, 1}, nullptr);
          },
          [&] { eigen_wide.noalias() = matrix_.transpose() * left; });
    }
    reconstruct(rank, left, right);
  }

  void reconstruct(int rank, const ColumnMajor& left, const ColumnMajor& right) {
    RowMajor values(options_.rows, options_.columns), eigen(options_.rows, options_.columns);
    const kernels::lowrank::Reconstruction item{
        .matrix = {.values = values.data(), .rows = options_.rows, .columns = options_.columns},
        .left = left.data(),
        .right = right.data(),
        .rank = rank,
        .mean = right.data(),
        .mean_entries = right.size()};
    compare(
        fmt::format("reconstruct.rank{}", rank), rank, values, eigen, rank,
        [&] {
          operators_->reconstruct({&item, 1}, nullptr);
        },
        [&] { eigen.noalias() = left * right.transpose(); });
  }

  /// Compares results, then times. `ours` writes `result`, and `eigen` writes `expected`; both are
  /// sums of `terms` products.
  void compare(const std::string& name, int rank, const auto& result, const auto& expected,
               std::int64_t terms, const auto& ours, const auto& eigen) {
    ours();
    eigen();
    require_equal(name, result, expected, static_cast<double>(terms));
    const bench::PairedTiming times =
        bench::compare(ours, eigen, {.budget_s = options_.budget_s / (1 + rank / 8)});
    const double gigabytes = 4e-9 * static_cast<double>(matrix_.size());
    report_.add({name, "GB/s", gigabytes / times.subject.median_s, "Eigen",
                 gigabytes / times.reference.median_s});
  }

  Options options_;
  std::unique_ptr<kernels::lowrank::Operators> operators_;
  RowMajor matrix_, residual_;
  bench::Report report_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return tools::run_tool(
      argc, argv,
      {"bench_lowrank",
       "Products and reconstruction of low rank on one core beside Eigen's: first verified, then "
       "timed in turns.",
       "bench_lowrank --ranks 1,4 --json lowrank.json"},
      [&](CLI::App& app) {
        app.add_option("--json", options.json, "write the rows to this file");
        app.add_option("--rows", options.rows, "of the matrix")
            ->check(CLI::Range(1, 1 << 20))
            ->capture_default_str();
        app.add_option("--columns", options.columns, "of the matrix")
            ->check(CLI::Range(1, 1 << 20))
            ->capture_default_str();
        app.add_option("--ranks", options.ranks, "columns of factors, separated by commas")
            ->delimiter(',')
            ->check(CLI::Range(1, 128))
            ->capture_default_str();
        app.add_option("--budget", options.budget_s, "seconds per case")
            ->check(tools::number_from(0, 3600))
            ->capture_default_str();
      },
      [&] {
        if (!options.json.empty()) io::require_writable(options.json);
        Bench(options).run().write(options.json);
        return 0;
      });
}
