#include "tests/training/training.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <random>

#include "io/file.hpp"
#include "tests/kernels/round_trip.hpp"
#include "tests/kernels/staged_cluster.hpp"

namespace hipress::training {

Synchroniser::Synchroniser(const Compression& compression, int nodes, std::int64_t elements) {
  if (compression.algorithm == "none") return;
  codec_ = kernels::make_codec(compression.algorithm);
  const kernels::CodecTraits& traits = codec_->traits();
  feedback_ = traits.error_feedback && compression.error_feedback;
  const auto floats = static_cast<std::size_t>(feedback_ ? traits.state_arrays * elements : 0);
  for (int node = 0; node < nodes; ++node) {
    workers_.push_back({std::vector<float>(floats), static_cast<std::uint32_t>(node), 0});
  }
  server_ = {std::vector<float>(floats), 0, 1};
}

std::vector<float> Synchroniser::through(const std::vector<float>& gradient, Encoder& encoder) {
  kernels::State state;
  if (feedback_) state = {encoder.state.data(), static_cast<std::int64_t>(gradient.size())};
  const kernels::DrawKey key = {
      .seed = 5, .step = step_, .node = encoder.node, .role = encoder.role};
  return kernels::testing::round_trip(*codec_, gradient, key, state);
}

std::vector<float> Synchroniser::mean(const std::vector<std::vector<float>>& gradients) {
  std::vector<float> sum(gradients[0].size());
  for (std::size_t node = 0; node < gradients.size(); ++node) {
    const std::vector<float> received =
        codec_ == nullptr ? gradients[node] : through(gradients[node], workers_[node]);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += received[i];
  }
  for (float& value : sum) value /= static_cast<float>(gradients.size());
  if (codec_ != nullptr) sum = through(sum, server_);
  ++step_;
  return sum;
}

std::vector<double> descend_quadratic(const Compression& compression, int steps) {
  // The four equally likely draws of the noise, whose sum is 0.
  constexpr float kNoise[4][2] = {{4, 1}, {-3, 1.5f}, {-3, 1.5f}, {2, -4}};
  constexpr float kRate = 0.005f;
  Synchroniser synchroniser(compression, 1, 2);
  std::vector<float> distance = {0, 0};
  std::vector<double> far;
  for (int step = 0; step < steps; ++step) {
    const float* noise = kNoise[step % 4];
    const std::vector<float> update =
        synchroniser.mean({{distance[0] + noise[0], distance[1] + noise[1]}});
    for (int i : {0, 1}) distance[i] -= kRate * update[i];
    if (step % 4 == 3) far.push_back(std::hypot(distance[0], distance[1]));
  }
  return far;
}

namespace {

constexpr int kFeatures = 30;
constexpr int kWeights = kFeatures + 1;
constexpr int kNodes = 4;
constexpr int kBatch = 16;
constexpr int kSteps = 600;
constexpr std::size_t kTrained = 400;

struct Sample {
  std::vector<float> features;  ///< the last one is 1, for the bias
  float label;
};

std::vector<Sample> read_samples() {
  std::vector<Sample> samples;
  const auto lines =
      io::read_lines(std::string(HIPRESS_SOURCE_DIR) + "/tests/data/breast_cancer.csv");
  for (std::size_t i = 1; i < lines.size(); ++i) {  // the first line names the columns
    Sample sample;
    for (const std::string_view field : io::split_fields(lines[i])) {
      sample.features.push_back(std::stof(std::string(field)));
    }
    sample.label = sample.features.back();
    sample.features.back() = 1;
    samples.push_back(std::move(sample));
  }
  std::mt19937 generator(1);
  for (std::size_t i = samples.size(); i > 1; --i) {
    std::swap(samples[i - 1], samples[generator() % i]);
  }
  // Scales each feature to mean 0 and deviation 1 over the training data.
  for (int f = 0; f < kFeatures; ++f) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < kTrained; ++i) {
      sum += samples[i].features[f];
      squares += double(samples[i].features[f]) * samples[i].features[f];
    }
    const double mean = sum / kTrained, deviation = std::sqrt(squares / kTrained - mean * mean);
    for (Sample& sample : samples) {
      sample.features[f] = static_cast<float>((sample.features[f] - mean) / deviation);
    }
  }
  return samples;
}

double score(const std::vector<float>& weights, const Sample& sample) {
  return std::inner_product(weights.begin(), weights.end(), sample.features.begin(), 0.0);
}

/// A model's log odds that a sample's label is 1.
using Score = std::function<double(const Sample&)>;

double loss(const Score& score, const Sample& sample) {
  const double margin = (sample.label > 0.5f ? 1 : -1) * score(sample);
  return margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
}

double mean_loss(const Score& score, const std::vector<Sample>& samples, std::size_t first,
                 std::size_t last) {
  double sum = 0;
  for (std::size_t i = first; i < last; ++i) sum += loss(score, samples[i]);
  return sum / static_cast<double>(last - first);
}

/// Sets loss and accuracy on the test data.
void test(Curve& curve, const Score& score, const std::vector<Sample>& samples) {
  curve.test_loss = mean_loss(score, samples, kTrained, samples.size());
  const auto right = std::count_if(samples.begin() + kTrained, samples.end(), [&](const Sample& s) {
    return (score(s) > 0) == (s.label > 0.5f);
  });
  curve.test_accuracy = static_cast<double>(right) / static_cast<double>(samples.size() - kTrained);
}

/// Sample at a place of a node's batch in a step.
const Sample& drawn(const std::vector<Sample>& samples, int node, int step, int place) {
  constexpr std::size_t kShare = kTrained / kNodes;
  const std::size_t at = static_cast<std::size_t>(step * kBatch + place) % kShare;
  return samples[static_cast<std::size_t>(node) * kShare + at];
}

float rate_of(int step) { return 0.2f / (1 + static_cast<float>(step) / 100); }

/// Gradient of one node's batch.
std::vector<float> gradient_of(const std::vector<float>& weights,
                               const std::vector<Sample>& samples, int node, int step) {
  std::vector<float> gradient(kWeights);
  for (int b = 0; b < kBatch; ++b) {
    const Sample& sample = drawn(samples, node, step, b);
    const double error = 1 / (1 + std::exp(-score(weights, sample))) - sample.label;
    for (int i = 0; i < kWeights; ++i) {
      gradient[i] += static_cast<float>(error * sample.features[i] / kBatch);
    }
  }
  return gradient;
}

/// A network with one hidden layer: 16 x 31 weights below it, and 16 + 1 above.
struct Network {
  static constexpr int kHidden = 16;
  std::vector<float> hidden, output;

  Network() : hidden(kHidden * kWeights), output(kHidden + 1) {
    std::mt19937 generator(2);
    std::normal_distribution<float> distribution(0, 1 / std::sqrt(float(kWeights)));
    for (float& weight : hidden) weight = distribution(generator);
    for (float& weight : output) weight = distribution(generator);
  }

  /// Activations of the hidden units, and 1 for the bias.
  std::array<double, kHidden + 1> activations(const Sample& sample) const {
    std::array<double, kHidden + 1> activations;
    for (int unit = 0; unit < kHidden; ++unit) {
      const auto weights = hidden.begin() + unit * kWeights;
      activations[unit] =
          std::tanh(std::inner_product(weights, weights + kWeights, sample.features.begin(), 0.0));
    }
    activations.back() = 1;
    return activations;
  }

  double score(const Sample& sample) const {
    const auto units = activations(sample);
    return std::inner_product(units.begin(), units.end(), output.begin(), 0.0);
  }

  /// Adds the gradient of a sample's loss, times `scale`, to the gradients of both layers.
  void add_gradient(const Sample& sample, double scale, std::vector<float>& of_hidden,
                    std::vector<float>& of_output) const {
    const auto units = activations(sample);
    const double score = std::inner_product(units.begin(), units.end(), output.begin(), 0.0);
    const double error = scale * (1 / (1 + std::exp(-score)) - sample.label);
    for (int unit = 0; unit <= kHidden; ++unit) {
      of_output[unit] += static_cast<float>(error * units[unit]);
      if (unit == kHidden) break;
      const double slope = error * output[unit] * (1 - units[unit] * units[unit]);
      for (int i = 0; i < kWeights; ++i) {
        of_hidden[unit * kWeights + i] += static_cast<float>(slope * sample.features[i]);
      }
    }
  }
};

std::vector<float> mean_of(const std::vector<std::vector<float>>& vectors) {
  std::vector<float> mean(vectors[0].size());
  for (const std::vector<float>& vector : vectors) {
    for (std::size_t i = 0; i < mean.size(); ++i) {
      mean[i] += vector[i] / static_cast<float>(vectors.size());
    }
  }
  return mean;
}

void descend(std::vector<float>& weights, const std::vector<float>& gradient, float rate) {
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= rate * gradient[i];
}

}  // namespace

Curve train_classifier(const Compression& compression) {
  const std::vector<Sample> samples = read_samples();
  Synchroniser synchroniser(compression, kNodes, kWeights);
  std::vector<float> weights(kWeights);
  const Score score_of = [&](const Sample& sample) { return score(weights, sample); };
  Curve curve;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<std::vector<float>> gradients;
    for (int node = 0; node < kNodes; ++node) {
      gradients.push_back(gradient_of(weights, samples, node, step));
    }
    const std::vector<float> update = synchroniser.mean(gradients);
    descend(weights, update, rate_of(step));
    curve.loss.push_back(mean_loss(score_of, samples, 0, kTrained));
  }
  test(curve, score_of, samples);
  return curve;
}

Curve train_network(const std::string& algorithm) {
  const std::vector<Sample> samples = read_samples();
  Network network;
  const Score score = [&](const Sample& sample) { return network.score(sample); };
  std::unique_ptr<kernels::Codec> codec;
  std::optional<kernels::testing::Cluster> cluster;
  if (algorithm != "none") {
    codec = kernels::make_codec(algorithm);
    cluster.emplace(*codec, kernels::testing::Dimensions{Network::kHidden, kWeights}, kNodes);
  }
  Curve curve;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<std::vector<float>> of_hidden, of_output;
    for (int node = 0; node < kNodes; ++node) {
      of_hidden.emplace_back(network.hidden.size());
      of_output.emplace_back(network.output.size());
      for (int b = 0; b < kBatch; ++b) {
        network.add_gradient(drawn(samples, node, step, b), 1.0 / kBatch, of_hidden.back(),
                             of_output.back());
      }
    }
    descend(network.hidden, cluster ? cluster->step(of_hidden) : mean_of(of_hidden), rate_of(step));
    descend(network.output, mean_of(of_output), rate_of(step));
    curve.loss.push_back(mean_loss(score, samples, 0, kTrained));
  }
  test(curve, score, samples);
  return curve;
}

}  // namespace hipress::training
