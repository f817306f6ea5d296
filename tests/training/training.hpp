#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/codec/codec.hpp"

/// Small trainings whose gradients are synchronised with real codecs, as by topology ps. Every node
/// encodes its gradient. The server decodes the messages in sequence and encodes the mean, which
/// all nodes decode. With a staged codec, the factors are averaged.
namespace hipress::training {

/// Way of compressing gradients. "none" sends them raw.
struct Compression {
  std::string algorithm = "none";
  bool error_feedback = true;  ///< has an effect only if the algorithm has error feedback
};

/// Synchronises the gradients of some nodes. Keeps the residuals of the nodes and of the server.
class Synchroniser {
 public:
  Synchroniser(const Compression& compression, int nodes, std::int64_t elements);

  /// Mean over the nodes, as all of them receive it.
  std::vector<float> mean(const std::vector<std::vector<float>>& gradients);

 private:
  struct Encoder {
    std::vector<float> state;
    std::uint32_t node, role;
  };
  std::vector<float> through(const std::vector<float>& gradient, Encoder& encoder);

  std::unique_ptr<kernels::Codec> codec_;  ///< null: no compression
  bool feedback_ = false;
  std::vector<Encoder> workers_;
  Encoder server_;
  std::uint64_t step_ = 0;
};

/// Stochastic gradient descent on |x - x*|² / 2 in two dimensions, with the noise that
/// training_test.cpp describes, which has period four. Returns the distance from the optimum after
/// every fourth step.
std::vector<double> descend_quadratic(const Compression& compression, int steps);

/// Results of a training.
struct Curve {
  std::vector<double> loss;  ///< loss on the training data, by step
  double test_loss = 0;
  double test_accuracy = 0;
};

/// Logistic regression on the Wisconsin breast cancer data (tests/data). Each of four nodes has a
/// quarter of the training data. Trains 600 steps with batches of 16 per node.
Curve train_classifier(const Compression& compression);

/// Trains a network with 16 hidden units on the same data and nodes. `algorithm`, a staged codec or
/// "none", compresses its 16 x 31 matrix of weights. The other 17 weights are averaged raw.
Curve train_network(const std::string& algorithm);

}  // namespace hipress::training
