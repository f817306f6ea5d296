#include "tests/training/training.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "io/file.hpp"
#include "tests/kernels/round_trip.hpp"

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
  // The four equally likely draws; they add up to nothing.
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
  std::vector<float> features;  ///< and a 1 for the bias
  float label;
};

std::vector<Sample> read_samples() {
  std::vector<Sample> samples;
  const auto lines =
      io::read_lines(std::string(HIPRESS_SOURCE_DIR) + "/tests/data/breast_cancer.csv");
  for (std::size_t i = 1; i < lines.size(); ++i) {  // the first says what there is
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
  // Each feature with mean 0 and deviation 1 over the training data.
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

double loss(const std::vector<float>& weights, const Sample& sample) {
  const double margin = (sample.label > 0.5f ? 1 : -1) * score(weights, sample);
  return margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
}

double mean_loss(const std::vector<float>& weights, const std::vector<Sample>& samples,
                 std::size_t first, std::size_t last) {
  double sum = 0;
  for (std::size_t i = first; i < last; ++i) sum += loss(weights, samples[i]);
  return sum / static_cast<double>(last - first);
}

/// The gradient of one node's batch.
std::vector<float> gradient_of(const std::vector<float>& weights,
                               const std::vector<Sample>& samples, int node, int step) {
  constexpr std::size_t kShare = kTrained / kNodes;
  std::vector<float> gradient(kWeights);
  for (int b = 0; b < kBatch; ++b) {
    const std::size_t place = static_cast<std::size_t>(step * kBatch + b) % kShare;
    const Sample& sample = samples[static_cast<std::size_t>(node) * kShare + place];
    const double error = 1 / (1 + std::exp(-score(weights, sample))) - sample.label;
    for (int i = 0; i < kWeights; ++i) {
      gradient[i] += static_cast<float>(error * sample.features[i] / kBatch);
    }
  }
  return gradient;
}

}  // namespace

Curve train_classifier(const Compression& compression) {
  const std::vector<Sample> samples = read_samples();
  Synchroniser synchroniser(compression, kNodes, kWeights);
  std::vector<float> weights(kWeights);
  Curve curve;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<std::vector<float>> gradients;
    for (int node = 0; node < kNodes; ++node) {
      gradients.push_back(gradient_of(weights, samples, node, step));
    }
    const std::vector<float> update = synchroniser.mean(gradients);
    const float rate = 0.2f / (1 + static_cast<float>(step) / 100) / compression.gain();
    for (int i = 0; i < kWeights; ++i) weights[i] -= rate * update[i];
    curve.loss.push_back(mean_loss(weights, samples, 0, kTrained));
  }
  curve.test_loss = mean_loss(weights, samples, kTrained, samples.size());
  const auto right = std::count_if(samples.begin() + kTrained, samples.end(), [&](const Sample& s) {
    return (score(weights, s) > 0) == (s.label > 0.5f);
  });
  curve.test_accuracy = static_cast<double>(right) / static_cast<double>(samples.size() - kTrained);
  return curve;
}

}  // namespace hipress::training
