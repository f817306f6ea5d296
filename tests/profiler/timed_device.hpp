#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "costs/overlap.hpp"
#include "kernels/codec/codec.hpp"
#include "runtime/device.hpp"

namespace hipress::profiler {

/// Speed of a timed device. Defaults have a GPU's orders of magnitude.
struct TimedDeviceOptions {
  double launch_s = 10e-6;   ///< time of the host to enqueue one piece of work
  double flops = 30e12;      ///< operations per second of products
  double memory_Bps = 2e12;  ///< rate of kernels and copies, reads and writes counted
  double cache_Bps = 6e12;   ///< rate for data that fits into the cache
  std::int64_t cache_bytes = 50'000'000;
  double link_Bps = 50e9;  ///< between device and host
  /// Factors by which two kinds of work slow each other.
  double compute_codec = 1, compute_transfer = 1, codec_transfer = 1;
  std::optional<costs::OverlapMatrix> matrix = {};  ///< replaces these
};

/// A device that computes nothing, but counts the time that its work would take, and the host's
/// time to enqueue it, so tests know exact results. Work is simulated only when the host waits for
/// the device; functions that a stream calls run then, too.
class TimedDevice : public runtime::Device {
 public:
  using Stream = runtime::Stream;
  using Event = runtime::Event;

  explicit TimedDevice(const TimedDeviceOptions& options) : options_(options) {
    for (std::size_t s = 0; s < runtime::kStreams; ++s) handles_[s] = {this, s};
  }

  std::string name() override { return "a timed device"; }
  std::shared_ptr<const kernels::Codec> codec(const std::string& algorithm) override {
    return std::make_shared<Codec>(kernels::make_codec(algorithm));
  }
  Memory memory() override { return {std::int64_t{40} << 30, std::int64_t{40} << 30}; }
  /// Returns addresses that must not be accessed.
  std::byte* allocate(std::int64_t bytes) override {
    auto* const memory = reinterpret_cast<std::byte*>(next_address_);
    next_address_ += static_cast<std::uintptr_t>((bytes + 255) / 256 * 256);
    return memory;
  }
  std::byte* allocate_pinned(std::int64_t bytes) override { return allocate(bytes); }
  void reserve_temporary(std::int64_t, std::span<const Stream>) override {}
  void* handle(Stream stream) override { return &handles_[static_cast<std::size_t>(stream)]; }

  void copy(void*, const void*, std::int64_t bytes, Stream stream) override {
    const bool out = stream == Stream::kOutbound || stream == Stream::kInbound;
    if (out)
      return enqueue(stream, Kind::kTransfer, static_cast<double>(bytes) / options_.link_Bps);
    touch(stream, 2 * bytes);
  }
  void clear(void*, std::int64_t bytes, Stream stream) override { touch(stream, bytes); }
  void merge(const float*, std::int64_t elements, float*, float, float, Stream stream) override {
    touch(stream, 12 * elements);
  }
  void compute(models::ComputeClass what, const float*, const float*, float*, std::int64_t n,
               Stream stream) override {
    const auto rows = static_cast<double>(n);
    const bool multiplies = what == models::ComputeClass::kGemm;
    const bool attends = what == models::ComputeClass::kAttention;
    const double seconds = multiplies || attends
                               ? (attends ? 4 : 2) * rows * rows * rows / options_.flops
                               : 12 * rows * rows / options_.memory_Bps;
    enqueue(stream, Kind::kCompute, seconds, what);
  }
  void call(std::function<void()> function, Stream stream) override {
    queue(stream).push_back({.function = std::move(function), .since_s = host_s_});
  }
  void drain() noexcept override { run(); }

  Event make_event() override {
    events_.push_back({});
    return static_cast<Event>(events_.size() - 1);
  }
  void record(Event event, Stream stream) override {
    queue(stream).push_back(
        {.records = event, .number = ++events_[event].recorded, .since_s = host_s_});
  }
  void wait(Event event, Stream stream) override {
    queue(stream).push_back(
        {.awaits = event, .number = events_[event].recorded, .since_s = host_s_});
  }
  void wait_foreign(void*, Stream) override {}
  bool done(Event event) override {
    run();
    return events_[event].reached == events_[event].recorded;
  }
  double seconds_between(Event from, Event to) override {
    return events_[to].at_s - events_[from].at_s;
  }

 private:
  enum class Kind : std::uint8_t { kNothing, kCompute, kCodec, kTransfer };
  struct Handle {
    TimedDevice* device = nullptr;
    std::size_t stream = 0;
  };
  struct Piece {
    Kind kind = Kind::kNothing;
    models::ComputeClass what = {};  ///< for kCompute
    double left_s = 0;
    std::optional<Event> records = {}, awaits = {};
    std::uint64_t number = 0;  ///< number of the event's recording, to make or to wait for
    std::function<void()> function = {};
    double since_s = 0;  ///< time at which the host has enqueued it
  };
  struct Record {
    std::uint64_t recorded = 0, reached = 0;
    double at_s = 0;
  };

  class Codec : public kernels::Codec {
   public:
    explicit Codec(std::unique_ptr<kernels::Codec> host) : host_(std::move(host)) {}
    const kernels::CodecTraits& traits() const override { return host_->traits(); }
    std::int64_t encoded_bytes(std::int64_t elements) const override {
      return host_->encoded_bytes(elements);
    }
    void encode(std::span<const kernels::EncodeItem> items, void* stream) const override {
      for (const kernels::EncodeItem& item : items) code(item.elements, stream);
    }
    void decode(std::span<const kernels::DecodeItem> items, void* stream) const override {
      for (const kernels::DecodeItem& item : items) code(item.elements, stream);
    }

   private:
    static void code(std::int64_t elements, void* stream) {
      const Handle& handle = *static_cast<Handle*>(stream);
      handle.device->touch(static_cast<Stream>(handle.stream), 12 * elements);
    }
    std::unique_ptr<kernels::Codec> host_;
  };

  std::deque<Piece>& queue(Stream stream) { return queues_[static_cast<std::size_t>(stream)]; }

  void enqueue(Stream stream, Kind kind, double seconds, models::ComputeClass what = {}) {
    host_s_ += options_.launch_s;
    queue(stream).push_back({.kind = kind, .what = what, .left_s = seconds, .since_s = host_s_});
  }
  /// Enqueues work that reads and writes `bytes` bytes in all.
  void touch(Stream stream, std::int64_t bytes) {
    const double rate = bytes <= options_.cache_bytes ? options_.cache_Bps : options_.memory_Bps;
    enqueue(stream, Kind::kCodec, static_cast<double>(bytes) / rate);
  }

  /// Simulates the streams until all are empty, or wait for work that has not been enqueued.
  void run() {
    for (;;) {
      while (pass_heads()) {
      }
      const double step_s = next_change();
      if (step_s == kNever) break;
      for (auto& queue : queues_) {
        if (is_running(queue)) queue.front().left_s -= step_s * speed_of(queue.front());
      }
      now_s_ += step_s;
      for (auto& queue : queues_) {
        if (is_running(queue) && queue.front().left_s <= kMin_s) queue.pop_front();
      }
    }
    host_s_ = std::max(host_s_, now_s_);  // the host waited for the device
  }

  static constexpr double kNever = std::numeric_limits<double>::infinity();
  /// Smaller differences are rounding errors.
  static constexpr double kMin_s = 1e-13;

  bool is_there(const std::deque<Piece>& queue) const {
    return !queue.empty() && queue.front().since_s <= now_s_ + kMin_s;
  }
  bool is_running(const std::deque<Piece>& queue) const {
    return is_there(queue) && queue.front().kind != Kind::kNothing;
  }

  /// Handles events and functions at the heads of streams. True if there was one to handle.
  bool pass_heads() {
    bool passed = false;
    for (auto& queue : queues_) {
      if (!is_there(queue) || queue.front().kind != Kind::kNothing) continue;
      Piece& head = queue.front();
      if (head.awaits && events_[*head.awaits].reached < head.number) continue;
      if (head.records) {
        events_[*head.records].reached = head.number;
        events_[*head.records].at_s = now_s_;
      }
      if (head.function) {
        head.function();
        head.function = {};
        head.since_s = host_s_;  // the time of its return
      } else {
        queue.pop_front();
      }
      passed = true;
    }
    return passed;
  }

  /// Seconds until a work ends, or until the host has enqueued the next one.
  double next_change() const {
    double soonest_s = kNever;
    for (const auto& queue : queues_) {
      if (queue.empty()) continue;
      const Piece& head = queue.front();
      if (!is_there(queue)) {
        soonest_s = std::min(soonest_s, head.since_s - now_s_);
      } else if (head.kind != Kind::kNothing) {
        soonest_s = std::min(soonest_s, head.left_s / speed_of(head));
      }
    }
    return soonest_s;
  }

  /// Speed of a piece beside all others that run.
  double speed_of(const Piece& piece) const {
    double speed = 1;
    for (const auto& queue : queues_) {
      if (is_running(queue)) speed /= factor(piece, queue.front());
    }
    return speed;
  }
  /// Factor by which `b` slows `a`.
  double factor(const Piece& a, const Piece& b) const {
    const costs::OverlapFactors factors{.compute_codec = options_.compute_codec,
                                        .compute_transfer = options_.compute_transfer,
                                        .codec_transfer = options_.codec_transfer,
                                        .matrix = options_.matrix};
    models::Mix mix{};
    mix[static_cast<std::size_t>((a.kind == Kind::kCompute ? a : b).what)] = 1;
    const costs::DirectedFactors by_kind = costs::directed(factors, mix);
    const auto are = [&](Kind x, Kind y) { return a.kind == x && b.kind == y; };
    if (are(Kind::kCompute, Kind::kCodec)) return by_kind.compute_beside_codec;
    if (are(Kind::kCompute, Kind::kTransfer)) return by_kind.compute_beside_transfer;
    if (are(Kind::kCodec, Kind::kCompute)) return by_kind.codec_beside_compute;
    if (are(Kind::kCodec, Kind::kTransfer)) return by_kind.codec_beside_transfer;
    if (are(Kind::kTransfer, Kind::kCompute)) return by_kind.transfer_beside_compute;
    if (are(Kind::kTransfer, Kind::kCodec)) return by_kind.transfer_beside_codec;
    return 1;
  }

  const TimedDeviceOptions options_;
  std::array<Handle, runtime::kStreams> handles_;
  std::array<std::deque<Piece>, runtime::kStreams> queues_;
  std::vector<Record> events_;
  std::uintptr_t next_address_ = 1 << 20;
  double host_s_ = 0, now_s_ = 0;
};

}  // namespace hipress::profiler
