// Measures codecs in GB/s of fp32 gradient: on one core, compared with memcpy of the same gradient;
// on a GPU, compared with the GPU's own copy and the necessary memory traffic.

#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <random>

#include "bench/compressors.hpp"
#include "bench/device_rows.hpp"
#include "bench/handwritten/programs.hpp"
#include "bench/report.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "kernels/codec/codec.hpp"
#include "kernels/frames/typed_values.hpp"
#include "kernels/host/isa.hpp"
#include "runtime/device.hpp"
#include "tests/runtime/fake_device.hpp"
#include "tools/frame.hpp"
#include "tools/validators.hpp"

namespace {

using namespace hipress;

struct Options {
  std::string json;
  double mebibytes = 64;
  double budget_s = 1.0;
  std::string only;
  std::string device = "cpu";
  bench::DeviceRowOptions on_device = {};
};

/// Memory that is aligned to 64 bytes, as frameworks allocate it.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::int64_t count)
      : data_(static_cast<T*>(std::aligned_alloc(64, (count * sizeof(T) + 63) / 64 * 64))),
        count_(count) {
    if (data_ == nullptr) throw std::bad_alloc();
    std::memset(static_cast<void*>(data_.get()), 0, count * sizeof(T));
  }
  T* data() const { return data_.get(); }
  std::int64_t bytes() const { return count_ * static_cast<std::int64_t>(sizeof(T)); }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };
  std::unique_ptr<T, Free> data_;
  std::int64_t count_;
};

/// One slice, with all memory that its encode and decode use.
struct Workspace {
  explicit Workspace(std::int64_t count)
      : elements(count),
        gradient(count),
        copy(count),
        residual(2 * count),  // the largest number of arrays that an algorithm keeps
        message(count * 4 + count / 1024 + 1024) {  // the largest lossless message
    std::minstd_rand generator(1);
    std::normal_distribution<float> values(0.0f, 0.4f);
    std::vector<float> pool(1 << 16);
    for (float& value : pool) value = values(generator);
    for (std::int64_t i = 0; i < count; ++i) {
      gradient.data()[i] = pool[generator() % pool.size()];
    }
  }

  void encode(const kernels::Codec& codec, float* state) {
    kernels::EncodeItem item;
    item.values = gradient.data();
    item.elements = elements;
    item.state = {state, elements, &deferred};
    item.message = message.data();
    item.message_bytes = &message_bytes;
    codec.encode({&item, 1});
  }

  void decode(const kernels::Codec& codec, kernels::DecodeMode mode) {
    const std::byte* messages[] = {message.data()};
    const std::int64_t lengths[] = {message_bytes};
    kernels::DecodeItem item;
    item.messages = messages;
    item.message_bytes = lengths;
    item.elements = elements;
    item.values = copy.data();
    item.mode = mode;
    codec.decode({&item, 1});
  }

  std::int64_t elements;
  Buffer<float> gradient, copy, residual;
  Buffer<std::byte> message;
  std::int64_t message_bytes = 0;  ///< bytes of the last encode's message
  kernels::Deferred deferred;
};

/// Verifies that the fast code gives the same bits as the scalar code in two encodes with
/// residuals, a decode and a decode-and-add. Throws if they differ.
void verify(std::string_view algorithm) {
  constexpr std::int64_t kElements = 1000003;
  Workspace fast(kElements), plain(kElements);
  const auto fast_codec = kernels::make_codec(algorithm);
  const auto plain_codec = kernels::make_codec_for(algorithm, kernels::Isa::kScalar);
  const auto require_equal = [&](const auto& a, const auto& b, const char* what) {
    if (std::memcmp(a.data(), b.data(), a.bytes()) != 0) {
      throw io::RunError(fmt::format("{}: {} differs from the plain path's", algorithm, what));
    }
  };
  for (int step = 0; step < 2; ++step) {
    fast.encode(*fast_codec, fast.residual.data());
    plain.encode(*plain_codec, plain.residual.data());
    require_equal(fast.message, plain.message, "message");
    require_equal(fast.residual, plain.residual, "residual");
  }
  for (const auto mode : {kernels::DecodeMode::kOverwrite, kernels::DecodeMode::kAdd}) {
    fast.decode(*fast_codec, mode);
    plain.decode(*plain_codec, mode);
    require_equal(fast.copy, plain.copy, "decoded gradient");
  }
}

/// Measures all cases of one algorithm. Sparsifiers start with a threshold from earlier encodes.
void measure(const kernels::AlgorithmRow& row, Workspace& work, const Options& options,
             bench::Report& report) {
  const auto codec = kernels::make_codec(row.name);
  work.deferred = {};
  std::memset(work.residual.data(), 0, work.residual.bytes());
  const auto add = [&](const char* operation, const auto& subject) {
    const std::string name = fmt::format("{}.{}", row.name, operation);
    if (name.find(options.only) == std::string::npos) return;
    const auto copy = [&] {
      std::memcpy(work.copy.data(), work.gradient.data(), work.gradient.bytes());
    };
    const bench::PairedTiming times = bench::compare(subject, copy, {.budget_s = options.budget_s});
    const double gigabytes = static_cast<double>(work.gradient.bytes()) / 1e9;
    report.add({name, "GB/s", gigabytes / times.subject.median_s, "memcpy",
                gigabytes / times.reference.median_s});
  };
  add("encode", [&] { work.encode(*codec, nullptr); });
  if (codec->traits().error_feedback) {
    add("encode_ef", [&] { work.encode(*codec, work.residual.data()); });
  }
  work.encode(*codec, nullptr);  // makes the message to decode, even if no encode was requested
  add("decode", [&] { work.decode(*codec, kernels::DecodeMode::kOverwrite); });
  add("decode_add", [&] { work.decode(*codec, kernels::DecodeMode::kAdd); });
}

/// Compares generated encoders with hand-written ones in the same frame (kernels/frames).
void compare_with_handwritten(const kernels::AlgorithmRow& row, Workspace& work,
                              const Options& options, bench::Report& report) {
  const auto handwritten = bench::handwritten::make_codec(row.name);
  const std::string name = fmt::format("{}.encode_generated", row.name);
  if (handwritten == nullptr || name.find(options.only) == std::string::npos) return;
  const auto generated = kernels::make_codec(row.name);
  const bench::PairedTiming times =
      bench::compare([&] { work.encode(*generated, nullptr); },
                     [&] { work.encode(*handwritten, nullptr); }, {.budget_s = options.budget_s});
  const double gigabytes = static_cast<double>(work.gradient.bytes()) / 1e9;
  report.add({name, "GB/s", gigabytes / times.subject.median_s, "handwritten",
              gigabytes / times.reference.median_s});
}

/// Lossless codec or compressor of bytes, applied to numbers of one type.
struct ByteCodec {
  std::string name;
  std::function<std::size_t()>
      encode;  ///< encodes the whole array; returns the bytes of the message
  std::function<void(std::size_t bytes)> decode;
};

/// Normally distributed numbers of one type, and memory for their messages.
struct TypedWorkspace {
  TypedWorkspace(kernels::ValueType of, const Workspace& work)
      : type(of),
        elements(work.gradient.bytes() / kernels::bytes_per_value(of)),
        values(work.gradient.bytes()),
        copy(work.gradient.bytes()),
        message(2 * work.gradient.bytes() + 1024) {
    for (std::int64_t i = 0; i < elements; ++i) {
      kernels::store_value(values.data(), type, i, work.gradient.data()[i % work.elements]);
    }
  }

  ByteCodec own(const kernels::Codec& codec) {
    return {"lossless",
            [this, &codec] {
              std::int64_t bytes = 0;
              kernels::EncodeItem item;
              item.values = values.data();
              item.type = type;
              item.elements = elements;
              item.message = message.data();
              item.message_bytes = &bytes;
              codec.encode({&item, 1});
              return static_cast<std::size_t>(bytes);
            },
            [this, &codec](std::size_t bytes) {
              const std::byte* messages[] = {message.data()};
              const std::int64_t lengths[] = {static_cast<std::int64_t>(bytes)};
              kernels::DecodeItem item;
              item.messages = messages;
              item.message_bytes = lengths;
              item.elements = elements;
              item.values = copy.data();
              item.type = type;
              codec.decode({&item, 1});
            }};
  }

  ByteCodec other(const bench::Compressor& by) {
    return {by.name,
            [this, &by] {
              const auto room = static_cast<std::size_t>(message.bytes());
              return by.compress(values.data(), static_cast<std::size_t>(values.bytes()),
                                 static_cast<int>(kernels::bytes_per_value(type)), message.data(),
                                 room);
            },
            [this, &by](std::size_t bytes) {
              by.decompress(message.data(), bytes, copy.data(),
                            static_cast<std::size_t>(copy.bytes()));
            }};
  }

  kernels::ValueType type;
  std::int64_t elements;
  Buffer<std::byte> values, copy, message;
};

/// Measures encode and decode of all lossless codecs and compressors, in GB/s of unencoded numbers,
/// and the ratio of the encoded to the unencoded size.
void compare_lossless(const Workspace& work, const Options& options, bench::Report& report) {
  const auto codec = kernels::make_codec("lossless");
  std::vector<std::string> skipped;
  const std::vector<bench::Compressor> others = bench::compressors(skipped);
  for (const std::string& reason : skipped) fmt::print(stderr, "skipped: {}\n", reason);
  for (const auto& [type, type_name] : {std::pair(kernels::ValueType::kFloat32, "fp32"),
                                        std::pair(kernels::ValueType::kBfloat16, "bf16")}) {
    TypedWorkspace typed(type, work);
    std::vector<ByteCodec> all = {typed.own(*codec)};
    for (const bench::Compressor& other : others) all.push_back(typed.other(other));
    for (const ByteCodec& one : all) {
      const auto name = [&one, type_name = type_name](const char* what) {
        return fmt::format("{}.{}.{}", one.name, type_name, what);
      };
      const auto asked = [&](const char* what) {
        return name(what).find(options.only) != std::string::npos;
      };
      if (!asked("encode") && !asked("decode") && !asked("ratio")) continue;
      const std::size_t bytes = one.encode();
      std::memset(typed.copy.data(), 0, typed.copy.bytes());
      one.decode(bytes);
      if (bytes == 0 ||
          std::memcmp(typed.copy.data(), typed.values.data(), typed.values.bytes()) != 0) {
        throw io::RunError(
            fmt::format("{}: {} does not give back what it was given", one.name, type_name));
      }
      const auto copy = [&] {
        std::memcpy(typed.copy.data(), typed.values.data(), typed.values.bytes());
      };
      const double gigabytes = static_cast<double>(typed.values.bytes()) / 1e9;
      const auto add = [&](const char* what, const auto& subject) {
        const bench::PairedTiming times =
            bench::compare(subject, copy, {.budget_s = options.budget_s});
        report.add({name(what), "GB/s", gigabytes / times.subject.median_s, "memcpy",
                    gigabytes / times.reference.median_s});
      };
      add("encode", [&] { one.encode(); });
      add("decode", [&] { one.decode(bytes); });
      report.add({name("ratio"), "x", gigabytes * 1e9 / static_cast<double>(bytes), "raw", 1});
    }
  }
}

/// Writes the rows. Without rows, the error names examples of cases for --only: `names`.
int finish(const bench::Report& report, const Options& options, const char* names) {
  if (report.empty()) {
    throw io::InputError(fmt::format("--only: no case's name contains '{}'; such names are {}",
                                     options.only, names));
  }
  report.write(options.json);
  return 0;
}

/// Measures a GPU; or a device that the host imitates, to test that the rows can be made.
int run_on_device(const Options& options) {
  bench::Report report;
  const bool fake = options.device == "fake";
  constexpr std::int64_t kFakeMemory = std::int64_t{1} << 30;
  const std::unique_ptr<runtime::Device> device =
      fake ? std::make_unique<runtime::FakeDevice>(
                 runtime::FakeDeviceOptions{.free_bytes = kFakeMemory})
           : runtime::make_cuda_device(0);
  bench::DeviceRowOptions rows = options.on_device;
  rows.only = options.only;
  if (rows.rows % 64 != 0) {
    throw io::InputError(fmt::format("--rows: {} is no multiple of 64; give {}", rows.rows,
                                     (rows.rows / 64 + 1) * 64));
  }
  fmt::print(stderr, "{}\n", device->name());
  bench::add_device_rows(report, *device, rows, !fake);
  return finish(report, options, "onebit.encode.2^20 and launch.host");
}

int run(const Options& options) {
  if (!options.json.empty()) io::require_writable(options.json);
  if (options.device != "cpu") return run_on_device(options);
  bench::Report report;
  Workspace work(static_cast<std::int64_t>(options.mebibytes * (1 << 20) / sizeof(float)));
  fmt::print(stderr, "instruction set {}, {} MiB of fp32 gradient, one core, medians\n",
             kernels::to_string(kernels::best_isa()), options.mebibytes);
  for (const kernels::AlgorithmRow& row : kernels::algorithms()) {
    if (row.additive) continue;  // such a codec has no encode() to time
    verify(row.name);
    measure(row, work, options, report);
    compare_with_handwritten(row, work, options, report);
  }
  compare_lossless(work, options, report);
  return finish(report, options, "onebit.encode and dgc.decode_add");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return tools::run_tool(
      argc, argv,
      {"bench_codecs",
       "Codecs on one core beside memcpy, first verified, then timed in turns; or on a GPU.",
       "bench_codecs --json codecs.json"},
      [&](CLI::App& app) {
        app.add_option("--json", options.json, "write the rows to this file");
        app.add_option("--size", options.mebibytes, "size of the gradient in MiB")
            ->check(tools::number_from(0.001, 65536))
            ->capture_default_str();
        app.add_option("--budget", options.budget_s, "seconds per case")
            ->check(tools::number_from(0, 3600))
            ->capture_default_str();
        app.add_option("--device", options.device,
                       "cpu; cuda: the first GPU; fake: a device that the host plays, to test the "
                       "rows of a GPU (its figures mean nothing)")
            ->check(CLI::IsMember({"cpu", "cuda", "fake"}))
            ->capture_default_str();
        app.add_option("--elements", options.on_device.elements,
                       "sizes of the gradient on a device, in elements, with commas between")
            ->delimiter(',')
            ->check(tools::count_from(64, 1 << 30))
            ->capture_default_str();
        app.add_option("--overlap-elements", options.on_device.overlap_elements,
                       "elements coded beside a matrix product on a device")
            ->check(tools::count_from(64, 1 << 30))
            ->capture_default_str();
        app.add_option("--rows", options.on_device.rows,
                       "rows of that product's square matrices, in steps of 64")
            ->check(tools::count_from(64, 1 << 16))
            ->capture_default_str();
        app.add_option("--bursts", options.on_device.bursts,
                       "on a device, a median goes over eight times as many tasks")
            ->check(tools::count_from(1, 1000))
            ->capture_default_str();
        app.add_option("--only", options.only, "cases whose name contains this");
      },
      [&] { return run(options); });
}
