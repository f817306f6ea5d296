#pragma once

#include <string>

#include "kernels/codec/codec.hpp"
#include "tests/kernels/device_memory.hpp"

/// Runs steps of a staged codec on a GPU, real or emulated, and on a CPU, and compares them.
namespace hipress::kernels::testing {

/// One gradient of each given shape, on both devices. Both have the same values, messages and
/// states before every stage.
class StagedPair {
 public:
  StagedPair(const std::string& algorithm, std::vector<std::vector<std::int64_t>> shapes,
             ValueType type)
      : on_gpu_(make_codec(algorithm, Device::kCuda)),
        on_cpu_(make_codec(algorithm)),
        type_(type),
        shapes_(std::move(shapes)) {
    for (const std::vector<std::int64_t>& shape : shapes_) {
      Arrays& arrays = arrays_.emplace_back();
      for (const Stage& stage : on_cpu_->stages(shape)) {
        arrays.factors.emplace_back(static_cast<std::size_t>(stage.bytes / 4));
      }
      for (const StateArray& state : on_cpu_->states(shape)) {
        arrays.states.emplace_back(static_cast<std::size_t>(state.elements));
      }
    }
  }

  /// Runs a step for all gradients in one batch; all bits must be the same. Values are drawn with
  /// `seed` and multiplied by `scale`. `bad`, if not 0, replaces one value of the first gradient.
  void step(std::uint32_t seed, float scale, float bad = 0) {
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      std::vector<float> values = gaussian(elements_of(shapes_[i]), seed + 10 * i);
      for (float& value : values) value *= scale;
      if (i == 0 && bad != 0) values[values.size() / 2] = bad;
      arrays_[i].values = stored(type_, values);
    }
    for (int stage = 0; stage <= on_cpu_->traits().stages; ++stage) require_same(stage);
    ++step_;
  }

 private:
  struct Arrays {
    Stored values{ValueType::kFloat32, {}};
    std::vector<std::vector<float>> factors, states;
  };

  struct DeviceArrays {
    DeviceGradient values;
    std::vector<DeviceArray<float>> factors, states;
    std::vector<float*> factor_pointers, state_pointers;

    explicit DeviceArrays(const Arrays& arrays) : values(arrays.values, 1) {
      for (const auto& factor : arrays.factors) factors.emplace_back(factor);
      for (const auto& state : arrays.states) states.emplace_back(state);
      for (const auto& factor : factors) factor_pointers.push_back(factor.data());
      for (const auto& state : states) state_pointers.push_back(state.data());
    }
  };

  static std::vector<float*> pointers(std::vector<std::vector<float>>& arrays) {
    std::vector<float*> made;
    for (std::vector<float>& array : arrays) made.push_back(array.data());
    return made;
  }

  StagedSlice slice(std::size_t i, void* values, std::span<float* const> factors,
                    std::span<float* const> states) const {
    return {.shape = shapes_[i],
            .values = values,
            .type = type_,
            .factors = factors,
            .states = states,
            .key = {.seed = 3, .step = step_, .gradient = static_cast<std::uint32_t>(i)}};
  }

  void require_same(int stage) {
    std::vector<DeviceArrays> device;
    std::vector<std::vector<float*>> factors, states;
    std::vector<StagedSlice> gpu_slices, cpu_slices;
    for (const Arrays& arrays : arrays_) device.emplace_back(arrays);
    for (Arrays& arrays : arrays_) {
      factors.push_back(pointers(arrays.factors));
      states.push_back(pointers(arrays.states));
    }
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      gpu_slices.push_back(
          slice(i, device[i].values.data(), device[i].factor_pointers, device[i].state_pointers));
      cpu_slices.push_back(slice(i, arrays_[i].values.bytes.data(), factors[i], states[i]));
    }
    if (stage < on_cpu_->traits().stages) {
      on_gpu_->encode_stage(stage, gpu_slices);
      on_cpu_->encode_stage(stage, cpu_slices);
    } else {
      on_gpu_->decode_stages(gpu_slices);
      on_cpu_->decode_stages(cpu_slices);
    }
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      INFO("stage " << stage << ", gradient " << i);
      REQUIRE(device[i].values.on_host().bytes == arrays_[i].values.bytes);
      for (std::size_t k = 0; k < factors[i].size(); ++k) {
        REQUIRE(same_bits(device[i].factors[k].on_host(), arrays_[i].factors[k]));
      }
      for (std::size_t k = 0; k < states[i].size(); ++k) {
        REQUIRE(same_bits(device[i].states[k].on_host(), arrays_[i].states[k]));
      }
    }
  }

  std::unique_ptr<Codec> on_gpu_, on_cpu_;
  ValueType type_;
  std::uint64_t step_ = 0;
  std::vector<std::vector<std::int64_t>> shapes_;
  std::vector<Arrays> arrays_;
};

}  // namespace hipress::kernels::testing
