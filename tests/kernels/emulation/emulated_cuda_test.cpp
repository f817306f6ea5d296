// Tests that the kernels and launchers of the CUDA back end, run on the CPU, give the host codecs'
// bits (messages, residuals, decoded values), in any order of threads and blocks.

#include <cmath>
#include <limits>
#include <optional>
#include <random>

#include "kernels/cuda/codec.hpp"
#include "kernels/host/codec.hpp"
#include "tests/kernels/device_memory.hpp"
#include "tests/kernels/reference.hpp"

extern "C" const hipress::kernels::CompiledAlgorithm hipress_spread_scalar, hipress_logblock_scalar;

namespace hipress::kernels {

const CudaKernels& hipress_spread_cuda();
const CudaKernels& hipress_logblock_cuda();

namespace {

using namespace testing;

constexpr const char* kAlgorithms[] = {"onebit",
                                       "tbq",
                                       "terngrad(b=1)",
                                       "terngrad(b=2)",
                                       "terngrad(b=5)",
                                       "terngrad(b=8)",
                                       "fp16",
                                       "bf16",
                                       "spread",
                                       "logblock(b=1)",
                                       "logblock(b=3)",
                                       "logblock(b=4,rotate=1)",
                                       "logblock(b=7)",
                                       "logblock(b=8)",
                                       "dgc(rho=0.1)",
                                       "graddrop(rho=0.03)",
                                       "dgc(rho=0.1,packing=1)",
                                       "dgc(rho=0.05,packing=2)",
                                       "graddrop(rho=1,packing=2)",
                                       "int8block",
                                       "int8block(block=96,rotate=1)",
                                       "int4block",
                                       "int4block(block=2048,rotate=1,stochastic=0)",
                                       "fp8block",
                                       "fp8block(block=32,rotate=1,stochastic=1)",
                                       "fp4block",
                                       "fp4block(format=e2m1,block=96,stochastic=1)",
                                       "lossless"};
constexpr ValueType kTypes[] = {ValueType::kFloat32, ValueType::kFloat16, ValueType::kBfloat16};
/// Lengths around the boundaries of words (32), tiles (1024) and blocks of tiles (32768).
constexpr std::int64_t kElements[] = {1, 3, 31, 32, 33, 1000, 1025, 33000};
constexpr std::uint32_t kSchedules[] = {0, 1, 2, 3};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

void schedule(std::uint32_t seed) { emulation::Grid::instance().set_schedule(seed); }

/// An algorithm on both devices: one of the registry, or one of the tests' programs: "spread", with
/// two measuring passes and a residual, or "logblock(b=3)", with blocks and a residual.
struct Pair {
  explicit Pair(std::string_view algorithm) {
    constexpr double kSpread[] = {2, 3};  // width, b
    if (algorithm == "spread") {
      cuda = make_cuda_quantizer(hipress_spread_scalar, hipress_spread_cuda().quantizer, kSpread);
      plain = make_host_algorithm(hipress_spread_scalar, kSpread, Isa::kScalar);
    } else if (algorithm.starts_with("logblock(b=")) {
      const double bits = algorithm[11] - '0';
      const double values[] = {bits, 96, algorithm.ends_with("rotate=1)") ? 1.0 : 0.0};
      cuda = make_cuda_block_quantizer(hipress_logblock_scalar, hipress_logblock_cuda().blocks,
                                       values);
      plain = make_host_algorithm(hipress_logblock_scalar, values, Isa::kScalar);
    } else {
      cuda = make_codec(algorithm, Device::kCuda);
      plain = make_codec_for(algorithm, Isa::kScalar);
    }
  }
  std::unique_ptr<Codec> cuda, plain;
};

void require_same_encodes(const Pair& codecs, const Stored& inputs, int offset) {
  const DrawKey key{.seed = 5, .step = 6, .node = 7, .first_element = (std::int64_t{1} << 32) - 40};
  const std::int64_t elements = inputs.elements();
  for (const float divisor : {1.0f, 3.0f}) {
    REQUIRE(encode_on_gpu(*codecs.cuda, inputs, divisor, nullptr, key, offset) ==
            encode(*codecs.plain, inputs, divisor, nullptr, key));
    if (!codecs.plain->traits().error_feedback) continue;
    const int arrays = codecs.plain->traits().state_arrays;
    std::vector<float> on_gpu = gaussian(arrays * elements, 9), on_cpu = on_gpu;
    for (int step = 0; step < 2; ++step) {
      REQUIRE(encode_on_gpu(*codecs.cuda, inputs, divisor, &on_gpu, key, offset) ==
              encode(*codecs.plain, inputs, divisor, &on_cpu, key));
      REQUIRE(same_bits(on_gpu, on_cpu));
    }
  }
}

void require_same_decodes(const Pair& codecs, const Stored& x, int offset) {
  std::vector<std::vector<std::byte>> messages;
  for (std::uint32_t peer = 0; peer < 11; ++peer) {
    messages.push_back(
        encode(*codecs.plain, gaussian(x.elements(), peer), 1, nullptr, {.node = peer}));
  }
  REQUIRE(decode_on_gpu(*codecs.cuda, {messages[0]}, x, DecodeMode::kOverwrite, 1, 1, offset) ==
          decode(*codecs.plain, messages[0], x.elements(), x.type));
  for (const std::size_t peers : {0, 1, 3, 11}) {
    const std::vector<std::vector<std::byte>> some(messages.begin(), messages.begin() + peers);
    const float own = peers == 1 ? 1 : 3, sum = peers == 1 ? 1 : 7;
    REQUIRE(decode_on_gpu(*codecs.cuda, some, x, DecodeMode::kAdd, own, sum, offset) ==
            decode_add(*codecs.plain, some, x, own, sum));
  }
}

TEST_CASE("emulated kernels give the host's messages, residuals and decoded values", "[slow]") {
  const int launched = emulation::launches;
  for (const char* algorithm : kAlgorithms) {
    const Pair codecs(algorithm);
    for (const std::uint32_t seed : kSchedules) {
      schedule(seed);
      for (const ValueType type : kTypes) {
        for (const std::int64_t elements : kElements) {
          // To save time, a long slice runs once per type, under a different schedule each.
          if (elements > 2000 && seed != static_cast<std::uint32_t>(type) + 1) continue;
          INFO(algorithm << ", " << to_string(type) << ", " << elements << ", schedule " << seed);
          const Stored inputs = stored(type, gaussian(elements, 3));
          require_same_encodes(codecs, inputs, static_cast<int>(elements % 2));
          require_same_decodes(codecs, inputs, static_cast<int>(elements % 2));
        }
      }
    }
  }
  CHECK(emulation::launches > launched);
}

TEST_CASE("emulated kernels give the host's bits for special inputs", "[slow]") {
  constexpr float kLargest = std::numeric_limits<float>::max();
  constexpr std::int64_t kCount = 2500;
  for (const char* algorithm : kAlgorithms) {
    const Pair codecs(algorithm);
    for (const float special :
         {0.0f, -0.0f, 0.3f, kLargest, -kLargest, 1e-45f, kNan, -INFINITY, INFINITY}) {
      std::vector<float> everywhere(kCount, special), once = gaussian(kCount, 4);
      for (std::size_t i = 0; i < everywhere.size(); i += 2) everywhere[i] *= -0.5f;
      once[1999] = special;
      for (const auto& values : {everywhere, once}) {
        for (const ValueType type : kTypes) {
          INFO(algorithm << ", " << to_string(type) << ", " << special);
          schedule(static_cast<std::uint32_t>(type));
          const Stored inputs = stored(type, values);
          require_same_encodes(codecs, inputs, 0);
          const auto message = encode(*codecs.plain, inputs, 1, nullptr, {});
          REQUIRE(decode_on_gpu(*codecs.cuda, {message}, inputs, DecodeMode::kOverwrite, 1, 1) ==
                  decode(*codecs.plain, message, kCount, type));
          REQUIRE(decode_on_gpu(*codecs.cuda, {message, message}, inputs, DecodeMode::kAdd, 2, 3) ==
                  decode_add(*codecs.plain, {message, message}, inputs, 2, 3));
        }
      }
    }
  }
}

// ---- half-computed residuals ----

struct HostState {
  explicit HostState(std::int64_t elements) : data(gaussian(elements, 8)) {}
  State state() { return {data.data(), static_cast<std::int64_t>(data.size()), &deferred}; }
  std::vector<float> data;
  Deferred deferred;
};

struct DeviceState {
  explicit DeviceState(const HostState& host)
      : data(host.data), deferred(std::vector<Deferred>{host.deferred}) {}
  State state() const {
    return {data.data(), static_cast<std::int64_t>(data.on_host().size()), deferred.data()};
  }
  DeviceArray<float> data;
  DeviceArray<Deferred> deferred;
};

void require_same_states(const DeviceState& on_gpu, const HostState& on_cpu) {
  REQUIRE(same_bits(on_gpu.data.on_host(), on_cpu.data));
  const Deferred found = on_gpu.deferred.on_host()[0];
  REQUIRE(found.owed == on_cpu.deferred.owed);
  if (found.owed) {
    REQUIRE(std::equal(std::begin(found.wire), std::end(found.wire), on_cpu.deferred.wire));
  }
}

/// Encodes on both devices with a residual that may be left half computed.
void require_same_deferred_step(const Pair& codecs, const Stored& inputs, float divisor,
                                const DeviceState& on_gpu, HostState& on_cpu) {
  const std::int64_t bytes = codecs.plain->encoded_bytes(inputs.elements());
  const DeviceGradient values(inputs, 0);
  const DeviceArray<std::byte> message(std::vector<std::byte>(bytes, std::byte(0xa5)));
  struct alignas(16) Line {
    std::byte bytes[16];
  };
  std::vector<Line> expected(bytes / 16 + 1);
  EncodeItem item;
  item.values = values.data();
  item.type = inputs.type;
  item.elements = inputs.elements();
  item.divisor = divisor;
  item.state = on_gpu.state();
  item.message = message.data();
  codecs.cuda->encode({&item, 1});
  item.values = inputs.bytes.data();
  item.state = on_cpu.state();
  item.message = expected[0].bytes;
  codecs.plain->encode({&item, 1});
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  REQUIRE(message.on_host() == std::vector(expected[0].bytes, expected[0].bytes + bytes));
  require_same_states(on_gpu, on_cpu);
}

void require_same_settled(const Pair& codecs, const DeviceState& on_gpu, HostState& on_cpu) {
  const auto elements = static_cast<std::int64_t>(on_cpu.data.size());
  codecs.cuda->settle(on_gpu.state(), elements);
  codecs.plain->settle(on_cpu.state(), elements);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  require_same_states(on_gpu, on_cpu);
}

TEST_CASE("emulated kernels leave residuals half done as the host does", "[slow]") {
  // terngrad has no residual, and spread's cannot be half computed: both ignore `deferred`.
  for (const char* algorithm : {"onebit", "tbq", "terngrad", "spread"}) {
    const Pair codecs(algorithm);
    for (const std::uint32_t seed : kSchedules) {
      schedule(seed);
      for (const ValueType type : kTypes) {
        for (const std::int64_t elements : kElements) {
          HostState on_cpu(elements);
          const DeviceState on_gpu(on_cpu);
          for (std::uint32_t step = 0; step < 5; ++step) {
            INFO(algorithm << ", " << to_string(type) << ", " << elements << ", step " << step);
            std::vector<float> inputs = gaussian(elements, step);
            // Steps 1 and 2 have inputs that are not finite.
            if (step == 1) inputs[elements / 2] = kNan;
            if (step == 2) inputs[elements - 1] = INFINITY;
            // Step 4: sums overflow fp32.
            if (step == 4) std::fill(inputs.begin(), inputs.end(), 3e38f);
            require_same_deferred_step(codecs, stored(type, inputs), step < 3 ? 1.0f : 3.0f, on_gpu,
                                       on_cpu);
            if (step == 3) require_same_settled(codecs, on_gpu, on_cpu);
          }
          require_same_settled(codecs, on_gpu, on_cpu);
          require_same_settled(codecs, on_gpu, on_cpu);  // already settled
        }
      }
    }
  }
}

// ---- batches ----

/// One slice of a batch on the device; require_same() compares it with the host's results.
struct BatchSlice {
  BatchSlice(const Codec& plain, int i)
      : inputs(stored(kTypes[i % 3], inputs_of(i))),
        values(inputs, 0),
        message(std::vector<std::byte>(plain.encoded_bytes(inputs.elements()))),
        bytes(std::vector<std::int64_t>{-1}) {
    if (plain.traits().error_feedback && i % 4 != 0) {
      host.emplace(inputs.elements());
      device.emplace(*host);
    }
    defers = i % 4 == 3;
  }

  /// Inputs of slice i: 1 to 4001 elements; every seventh slice holds a NaN.
  static std::vector<float> inputs_of(int i) {
    std::vector<float> values = gaussian(1 + i * 397 % 4001, i);
    if (i % 7 == 5) values[values.size() / 2] = kNan;
    return values;
  }

  EncodeItem item() const {
    EncodeItem made;
    made.values = values.data();
    made.type = inputs.type;
    made.elements = inputs.elements();
    if (device) made.state = device->state();
    if (!defers) made.state.deferred = nullptr;
    made.message = message.data();
    made.message_bytes = bytes.data();
    return made;
  }

  void require_same(const Codec& plain) {
    const std::vector<std::byte> written = first_bytes(message, bytes.on_host()[0]);
    if (device && !defers) {
      REQUIRE(written == encode(plain, inputs, 1, &host->data, {}));
      REQUIRE(same_bits(device->data.on_host(), host->data));
    } else {
      std::vector<float> sum;
      if (device) sum = host->data;
      REQUIRE(written == encode(plain, inputs, 1, device ? &sum : nullptr, {}));
    }
  }

  Stored inputs;
  DeviceGradient values;
  DeviceArray<std::byte> message;
  DeviceArray<std::int64_t> bytes;
  std::optional<HostState> host;
  std::optional<DeviceState> device;
  bool defers = false;
};

/// Number of slices in a batch, more than one launch takes.
constexpr int kBatch = 61;

TEST_CASE("emulated kernels encode batches as the host does slices", "[slow]") {
  for (const char* algorithm :
       {"onebit", "tbq", "terngrad(b=5)", "bf16", "spread", "graddrop(rho=0.03)",
        "graddrop(rho=0.1,packing=2)", "int4block(rotate=1)", "fp4block(format=e2m1)"}) {
    const Pair codecs(algorithm);
    for (const std::uint32_t seed : kSchedules) {
      schedule(seed);
      std::vector<BatchSlice> slices;
      slices.reserve(kBatch);
      const DeviceArray<std::int64_t> bytes_of_nothing(std::vector<std::int64_t>{-1});
      std::vector<EncodeItem> items(2);  // slices without elements
      items[0].message_bytes = bytes_of_nothing.data();
      for (int i = 0; i < kBatch; ++i) {
        items.push_back(slices.emplace_back(*codecs.plain, i).item());
      }
      codecs.cuda->encode(items);
      REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
      REQUIRE(bytes_of_nothing.on_host()[0] == 0);
      for (int i = 0; i < kBatch; ++i) {
        INFO(algorithm << ", slice " << i << ", schedule " << seed);
        slices[i].require_same(*codecs.plain);
      }
    }
  }
}

TEST_CASE("emulated codecs refuse items that cannot be, before they write anything") {
  const std::byte* const messages[] = {nullptr, nullptr};
  const std::int64_t lengths[] = {16, 16};
  float nothing = 0;
  for (const char* algorithm : {"onebit", "dgc", "graddrop(packing=2)", "bf16", "lossless"}) {
    INFO(algorithm);
    const auto codec = make_codec(algorithm, Device::kCuda);
    std::vector<EncodeItem> encodes(2);
    const DeviceArray<std::int64_t> bytes(std::vector<std::int64_t>{-1});
    encodes[0].message_bytes = bytes.data();
    encodes[1].elements = -1;
    CHECK_THROWS_AS(codec->encode(encodes), std::invalid_argument);
    encodes[1].elements = 5;  // neither values nor room for a message
    CHECK_THROWS_AS(codec->encode(encodes), std::invalid_argument);
    CHECK(bytes.on_host()[0] == -1);

    DecodeItem item;
    item.elements = 1;
    item.values = &nothing;
    item.messages = messages;  // overwriting takes one message
    item.message_bytes = lengths;
    CHECK_THROWS_AS(codec->decode({&item, 1}), std::invalid_argument);
    item.messages = {};  // it needs one
    item.message_bytes = {};
    CHECK_THROWS_AS(codec->decode({&item, 1}), std::invalid_argument);
    item.mode = DecodeMode::kAdd;
    item.messages = messages;  // without lengths
    CHECK_THROWS_AS(codec->decode({&item, 1}), std::invalid_argument);
    item.message_bytes = lengths;
    item.elements = -1;
    CHECK_THROWS_AS(codec->decode({&item, 1}), std::invalid_argument);
  }
  EncodeItem long_slice;
  std::byte message[16];
  long_slice.elements = std::int64_t{1} << 32;
  long_slice.values = &nothing;
  long_slice.message = message;
  CHECK_THROWS_WITH(make_codec("dgc", Device::kCuda)->encode({&long_slice, 1}),
                    Catch::Contains("2^32 elements or more"));
}

/// A slice of a batch to decode, and its messages, on the device.
struct SumSlice {
  SumSlice(const Codec& plain, int i)
      : x(stored(kTypes[i % 3], gaussian(1 + i * 397 % 4001, i))), values(x, 0) {
    for (int peer = 0; peer < i % 12; ++peer) {
      messages.push_back(encode(plain, gaussian(x.elements(), i + peer), 1, nullptr, {}));
      copies.emplace_back(messages.back());
      pointers.push_back(copies.back().data());
      lengths.push_back(static_cast<std::int64_t>(messages.back().size()));
    }
  }

  DecodeItem item() const {
    DecodeItem made;
    made.messages = pointers;
    made.message_bytes = lengths;
    made.elements = x.elements();
    made.values = values.data();
    made.type = x.type;
    made.mode = DecodeMode::kAdd;
    made.own_divisor = 3;
    made.sum_divisor = 7;
    return made;
  }

  Stored x;
  DeviceGradient values;
  std::vector<std::vector<std::byte>> messages;
  std::vector<DeviceArray<std::byte>> copies;
  std::vector<const std::byte*> pointers;
  std::vector<std::int64_t> lengths;
};

TEST_CASE("emulated kernels decode batches as the host does slices", "[slow]") {
  for (const char* algorithm :
       {"onebit", "tbq", "terngrad(b=5)", "bf16", "spread", "fp8block(rotate=1)", "fp4block",
        "graddrop(packing=1)", "lossless"}) {
    const Pair codecs(algorithm);
    for (const std::uint32_t seed : kSchedules) {
      schedule(seed);
      std::vector<SumSlice> slices;
      slices.reserve(kBatch);
      for (int i = 0; i < kBatch; ++i) slices.emplace_back(*codecs.plain, i);
      std::vector<DecodeItem> items(1);  // a slice without elements and messages
      items[0].mode = DecodeMode::kAdd;
      for (const SumSlice& slice : slices) items.push_back(slice.item());
      codecs.cuda->decode(items);
      REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
      for (int i = 0; i < kBatch; ++i) {
        INFO(algorithm << ", slice " << i << ", schedule " << seed);
        REQUIRE(slices[i].values.on_host() ==
                decode_add(*codecs.plain, slices[i].messages, slices[i].x, 3, 7));
      }
    }
  }
}

// ---- damage ----

bool all_nan(const Stored& values) {
  const std::vector<float> all = loaded(values);
  return std::all_of(all.begin(), all.end(), [](float v) { return std::isnan(v); });
}

TEST_CASE("emulated kernels make NaN of a damaged message", "[slow]") {
  constexpr std::int64_t kCount = 1100;
  for (const char* algorithm : kAlgorithms) {
    const Pair codecs(algorithm);
    const auto sound = encode(*codecs.plain, gaussian(kCount, 1), 1, nullptr, {});
    std::vector<std::vector<std::byte>> damaged(2, sound);
    damaged[0].resize(sound.size() - 4);
    damaged[1].resize(sound.size() + 4);
    if (!codecs.plain->traits().half_precision) {
      for (const std::size_t at : {0, 4, 6, 7}) {  // elements, tag, planes, non_finite
        damaged.push_back(sound);
        damaged.back()[at] ^= std::byte(0x12);
      }
    }
    for (const ValueType type : kTypes) {
      const Stored x = stored(type, gaussian(kCount, 2));
      for (std::size_t i = 0; i < damaged.size(); ++i) {
        INFO(algorithm << ", " << to_string(type) << ", damage " << i);
        schedule(static_cast<std::uint32_t>(i));
        REQUIRE(
            all_nan(decode_on_gpu(*codecs.cuda, {damaged[i]}, x, DecodeMode::kOverwrite, 1, 1)));
        REQUIRE(all_nan(
            decode_on_gpu(*codecs.cuda, {sound, damaged[i], sound}, x, DecodeMode::kAdd, 1, 2)));
      }
    }
  }
}

/// The host's decoded values of a message; empty if the host refuses it.
std::optional<Stored> decoded_or_refused(const Codec& codec, const std::vector<std::byte>& message,
                                         const Stored& x) {
  try {
    return decode(codec, message, x.elements(), x.type);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

TEST_CASE("emulated kernels refuse the messages that the host refuses, bit by bit", "[slow]") {
  std::mt19937 generator(3);
  for (const char* algorithm :
       {"dgc(rho=0.1,packing=1)", "graddrop(rho=0.1,packing=2)", "lossless"}) {
    const Pair codecs(algorithm);
    const auto sound = encode(*codecs.plain, gaussian(700, 5), 1, nullptr, {});
    int refused = 0;
    for (int time = 0; time < 300; ++time) {
      std::vector<std::byte> damaged = sound;
      for (int bit = 0; bit < 1 + time % 3; ++bit) {
        damaged[generator() % damaged.size()] ^= std::byte(1u << (generator() % 8));
      }
      INFO(algorithm << ", damage " << time);
      schedule(static_cast<std::uint32_t>(time));
      const Stored x = stored(kTypes[time % 3], gaussian(700, 2));
      const auto expected = decoded_or_refused(*codecs.plain, damaged, x);
      const Stored found = decode_on_gpu(*codecs.cuda, {damaged}, x, DecodeMode::kOverwrite, 1, 1);
      if (expected) {
        REQUIRE(found == *expected);
      } else {
        REQUIRE(all_nan(found));
        ++refused;
      }
    }
    CHECK(refused > 30);
  }
}

TEST_CASE("emulated merges have the host's bits") {
  for (const std::uint32_t order : kSchedules) {
    schedule(order);
    for (const std::int64_t elements : {1, 255, 1024, 1025, 5000}) require_same_merges(elements);
  }
}

TEST_CASE("the emulated launchers give back their temporary memory") {
  const std::size_t before = emulation::DeviceMemory::instance().allocations();
  for (const char* algorithm : kAlgorithms) {
    const Pair codecs(algorithm);
    const Stored inputs = stored(ValueType::kFloat16, gaussian(3000, 1));
    require_same_encodes(codecs, inputs, 0);
    require_same_decodes(codecs, inputs, 0);
  }
  CHECK(emulation::DeviceMemory::instance().allocations() == before);
}

}  // namespace
}  // namespace hipress::kernels
