#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/codec/codec.hpp"

/// Small trainings that synchronise their gradients with real codecs as the topology ps does: every
/// node encodes, the server decodes the messages one after the other, encodes the mean, and all
/// nodes decode that; of a staged codec, factors are averaged.
namespace hipress::training {

/// How gradients are compressed. "none" sends them as they are.
struct Compression {
  std::string algorithm = "none";
  bool error_feedback = true;  ///< where the algorithm has it
};

/// Synchronises the gradients of some nodes; keeps their residuals and the server's.
class Synchroniser {
 public:
  Synchroniser(const Compression& compression, int nodes, std::int64_t elements);

  /// The mean over nodes as all of them receive it.
  std::vector<float> mean(const std::vector<std::vector<float>>& gradients);

 private:
  struct Encoder {
    std::vector<float> state;
    std::uint32_t node, role;
  };
  std::vector<float> through(const std::vector<float>& gradient, Encoder& encoder);

  std::unique_ptr<kernels::Codec> codec_;  ///< null: none
  bool feedback_ = false;
  std::vector<Encoder> workers_;
  Encoder server_;
  std::uint64_t step_ = 0;
};

/// Distance from the optimum after each four steps of stochastic gradient descent on |x - x*|² / 2
/// in two dimensions with the noise that training_test.cpp describes, whose period is four.
std::vector<double> descend_quadratic(const Compression& compression, int steps);

/// What a training leaves behind.
struct Curve {
  std::vector<double> loss;  ///< on the training data, per step
  double test_loss = 0;
  double test_accuracy = 0;
};

/// Logistic regression on the Wisconsin breast cancer data (tests/data), four nodes with a quarter
/// of the training data each, batches of 16 per node, 600 steps.
Curve train_classifier(const Compression& compression);

/// The same data and nodes, but a network with 16 hidden units, whose 16 x 31 matrix of weights is
/// what a staged codec compresses ("none": nothing does); the other 17 weights are averaged as they
/// are.
Curve train_network(const std::string& algorithm);

}  // namespace hipress::training
