// Prints the curves of the trainings as CSV for `scripts/plot.py training`, with the columns
// problem, algorithm, feedback, step and value.

#include <fmt/format.h>

#include "tests/training/training.hpp"

namespace {

using namespace hipress::training;

void print(const char* problem, const Compression& compression, const std::vector<double>& values) {
  for (std::size_t step = 0; step < values.size(); ++step) {
    fmt::print("{},{},{},{},{}\n", problem, compression.algorithm,
               compression.error_feedback ? "with" : "without", step, values[step]);
  }
}

}  // namespace

int main() {
  fmt::print("problem,algorithm,feedback,step,value\n");
  std::vector<Compression> all = {{"none", false}};
  for (const hipress::kernels::AlgorithmRow& row : hipress::kernels::algorithms()) {
    if (row.additive) continue;  // these compress matrices, and this model has none
    const std::string name(row.name);
    all.push_back({name, true});
    if (hipress::kernels::make_codec(name)->traits().error_feedback) all.push_back({name, false});
  }
  for (const Compression& compression : all) {
    if (compression.algorithm == "none" || compression.algorithm == "onebit") {
      print("quadratic", compression, descend_quadratic(compression, 2000));
    }
    print("classifier", compression, train_classifier(compression).loss);
  }
}
