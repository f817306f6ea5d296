#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io/error.hpp"
#include "runtime/computation.hpp"
#include "runtime/device.hpp"
#include "runtime/operations.hpp"
#include "transport/nccl_library.hpp"

namespace hipress::runtime {

struct FakeDeviceOptions {
  unsigned seed = 1;  ///< seed of the order in which it serves its streams
  std::int64_t free_bytes = std::int64_t{1} << 40;
  /// True: streams do not wait for events, as if the runtime had forgotten the waits.
  bool ignores_waits = false;
  /// Class of computation for which compute() throws, as on a device without a kernel for it.
  std::optional<models::ComputeClass> cannot_compute = {};
  std::string fails_at_codec = {};  ///< codec call that throws: "encode" or "decode"
  std::function<void()> before_encode = {}, before_decode = {};  ///< called in the stream
  std::function<std::int64_t()> taken_bytes = {};  ///< part of free_bytes that other programs take
};

/// A stream of a fake device: a queue of work. The first piece is called until it returns true.
class FakeStream {
 public:
  virtual ~FakeStream() = default;
  virtual void enqueue(std::function<bool()> work) = 0;
};

/// A device with the host's memory and codecs. It runs its streams in any order that their events
/// allow, and now and then delays one: work that the runtime forgot to order sometimes goes wrong.
class FakeDevice : public Device {
 public:
  explicit FakeDevice(const FakeDeviceOptions& options) : options_(options), random_(options.seed) {
    for (auto& stream : streams_) stream.device = this;
    worker_ = std::thread([this] { work(); });
  }
  ~FakeDevice() override {
    drain();
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  std::string name() override { return "a fake"; }
  std::shared_ptr<const kernels::Codec> codec(const std::string& algorithm) override {
    return std::make_shared<Codec>(kernels::make_codec(algorithm), options_);
  }
  Memory memory() override {
    const std::int64_t taken = options_.taken_bytes ? options_.taken_bytes() : 0;
    return {options_.free_bytes - taken, options_.free_bytes};
  }
  std::byte* allocate(std::int64_t bytes) override { return take(bytes); }
  std::byte* allocate_pinned(std::int64_t bytes) override { return take(bytes); }
  void reserve_temporary(std::int64_t bytes, std::span<const Stream> streams) override {
    reserved.emplace_back(bytes, std::vector<Stream>(streams.begin(), streams.end()));
  }
  void* handle(Stream stream) override { return static_cast<FakeStream*>(&on(stream)); }

  void copy(void* to, const void* from, std::int64_t bytes, Stream stream) override {
    run(stream, [=] { std::memcpy(to, from, static_cast<std::size_t>(bytes)); });
  }
  void clear(void* memory, std::int64_t bytes, Stream stream) override {
    run(stream, [=] { std::memset(memory, 0, static_cast<std::size_t>(bytes)); });
  }
  void merge(const float* y, std::int64_t elements, float* x, float own_divisor, float sum_divisor,
             Stream stream) override {
    run(stream, [=] {
      const std::size_t others = y != nullptr ? 1 : 0;
      kernels::merge(std::span(&y, others), elements, x, own_divisor, sum_divisor);
    });
  }
  void compute(models::ComputeClass what, const float* a, const float* b, float* c, std::int64_t n,
               Stream stream) override {
    if (what == options_.cannot_compute) throw io::RunError("GPU: no kernel for this device");
    run(stream, [=] { compute_on_host(what, a, b, c, n); });
  }
  void call(std::function<void()> function, Stream stream) override {
    run(stream, std::move(function));
  }
  void drain() noexcept override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      return std::ranges::all_of(streams_, [](const Queue& queue) { return queue.work.empty(); });
    });
  }

  Event make_event() override {
    const std::lock_guard lock(mutex_);
    events_.emplace_back();
    return static_cast<Event>(events_.size() - 1);
  }
  void record(Event event, Stream stream) override {
    std::uint64_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = ++events_[event].recorded;
    }
    run(stream, [=, this] {
      const std::lock_guard lock(mutex_);
      events_[event].reached = number;
      events_[event].at = std::chrono::steady_clock::now();
    });
  }
  void wait(Event event, Stream stream) override {
    ++waits;
    if (options_.ignores_waits) return;
    std::uint64_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = events_[event].recorded;
    }
    on(stream).enqueue([=, this] {
      const std::lock_guard lock(mutex_);
      return events_[event].reached >= number;
    });
  }
  /// A foreign event is a std::atomic<bool> that becomes true.
  void wait_foreign(void* event, Stream stream) override {
    on(stream).enqueue([event] { return static_cast<std::atomic<bool>*>(event)->load(); });
  }
  bool done(Event event) override {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw io::RunError("GPU: " + failure_);
    return events_[event].reached == events_[event].recorded;
  }
  double seconds_between(Event from, Event to) override {
    const std::lock_guard lock(mutex_);
    return std::chrono::duration<double>(events_[to].at - events_[from].at).count();
  }

  std::atomic<int> waits = 0;
  std::vector<std::pair<std::int64_t, std::vector<Stream>>> reserved;  ///< per call

 private:
  struct Queue : FakeStream {
    void enqueue(std::function<bool()> piece) override {
      {
        const std::lock_guard lock(device->mutex_);
        work.push_back(std::move(piece));
      }
      device->changed_.notify_all();
    }
    FakeDevice* device = nullptr;
    std::deque<std::function<bool()>> work;
    std::chrono::steady_clock::time_point late_until;
  };
  struct FakeEvent {
    std::uint64_t recorded = 0, reached = 0;
    std::chrono::steady_clock::time_point at;
  };

  /// The host's codec, run when its turn in the stream comes.
  class Codec : public kernels::Codec {
   public:
    Codec(std::unique_ptr<kernels::Codec> host, const FakeDeviceOptions& options)
        : host_(std::move(host)), options_(options) {}
    const kernels::CodecTraits& traits() const override { return host_->traits(); }
    std::int64_t encoded_bytes(std::int64_t elements) const override {
      return host_->encoded_bytes(elements);
    }
    void encode(std::span<const kernels::EncodeItem> items, void* stream) const override {
      if (options_.fails_at_codec == "encode") throw std::runtime_error("out of order");
      std::vector<kernels::EncodeItem> kept(items.begin(), items.end());
      enqueue(stream, [this, kept] {
        if (options_.before_encode) options_.before_encode();
        host_->encode(kept);
      });
    }
    void decode(std::span<const kernels::DecodeItem> items, void* stream) const override {
      if (options_.fails_at_codec == "decode") throw std::runtime_error("out of order");
      for (kernels::DecodeItem item : items) {
        const std::vector<const std::byte*> messages(item.messages.begin(), item.messages.end());
        const std::vector<std::int64_t> bytes(item.message_bytes.begin(), item.message_bytes.end());
        enqueue(stream, [this, item, messages, bytes]() mutable {
          if (options_.before_decode) options_.before_decode();
          item.messages = messages;
          item.message_bytes = bytes;
          host_->decode({&item, 1});
        });
      }
    }

   private:
    static void enqueue(void* stream, std::function<void()> work) {
      static_cast<FakeStream*>(stream)->enqueue([work = std::move(work)] {
        work();
        return true;
      });
    }
    std::unique_ptr<kernels::Codec> host_;
    FakeDeviceOptions options_;
  };

  Queue& on(Stream stream) { return streams_[static_cast<std::size_t>(stream)]; }
  void run(Stream stream, std::function<void()> work) {
    on(stream).enqueue([work = std::move(work)] {
      work();
      return true;
    });
  }

  /// Allocates memory filled with garbage, so that code that relies on zeros fails.
  std::byte* take(std::int64_t bytes) {
    constexpr std::size_t kAlignment = 256;
    const std::size_t rounded =
        (static_cast<std::size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
    std::memset(memory, 0xa5, rounded);
    memory_.emplace_back(memory, std::free);
    return memory;
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      if (serve_one(lock)) continue;
      const bool idle =
          std::ranges::all_of(streams_, [](const Queue& queue) { return queue.work.empty(); });
      if (idle) {
        changed_.wait(lock);
      } else {
        changed_.wait_for(lock, std::chrono::microseconds(50));
      }
    }
  }

  bool serve_one(std::unique_lock<std::mutex>& lock) {
    const std::size_t first = random_() % kStreams;
    const auto now = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < kStreams; ++i) {
      Queue& queue = streams_[(first + i) % kStreams];
      if (queue.work.empty() || now < queue.late_until) continue;
      const std::function<bool()>& piece = queue.work.front();
      lock.unlock();
      bool done = true;
      std::string failure;
      try {
        done = piece();
      } catch (const std::exception& error) {
        failure = error.what();
      }
      lock.lock();
      if (!failure.empty()) failure_ = failure;
      if (!done) continue;
      queue.work.pop_front();
      if (random_() % 16 == 0) {
        streams_[random_() % kStreams].late_until =
            now + std::chrono::microseconds(random_() % 300);
      }
      changed_.notify_all();
      return true;
    }
    return false;
  }

  const FakeDeviceOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Queue, kStreams> streams_;
  std::deque<FakeEvent> events_;
  std::mt19937 random_;
  bool stopping_ = false;
  std::string failure_;  ///< error of enqueued work
  std::vector<std::unique_ptr<std::byte, void (*)(void*)>> memory_;
  std::thread worker_;
};

/// An NCCL for fake devices. A message ends at both ends at the same time, as with buffers that are
/// too small for it, so ranks with different orders deadlock.
class FakeNccl : public transport::NcclLibrary {
 public:
  int version() const override { return version_of ? version_of() : 22809; }
  std::string new_id() override {
    using namespace std::string_literals;
    return "the id, with \n and \0 in it"s;
  }
  std::unique_ptr<transport::NcclLink> join(const std::string& id, int rank, int size) override {
    if (id != new_id()) throw std::runtime_error("another id than rank 0's");
    ++joined;
    return std::make_unique<Link>(*this, rank, size);
  }

  std::function<int()> version_of;
  std::atomic<int> silent = -1;   ///< a rank whose groups are never run
  std::atomic<int> failing = -1;  ///< a rank whose NCCL fails at its third group
  std::atomic<int> joined = 0;    ///< number of ranks that have joined
  std::atomic<int> groups = 0;    ///< number of groups issued by all ranks
  std::atomic<int> aborted = 0;   ///< number of aborted links

 private:
  struct Parcel {
    std::vector<std::byte> bytes;
    bool taken = false;
  };
  struct Collective {
    int ranks = 0, fetched = 0;
    std::vector<std::vector<std::byte>> parts;  ///< input of each rank
  };

  class Link : public transport::NcclLink {
   public:
    Link(FakeNccl& nccl, int rank, int size)
        : nccl_(nccl), rank_(rank), size_(size), life_(std::make_shared<Life>()) {}
    ~Link() override {
      if (!finished_ && !life_->over) abort();
    }
    transport::NcclStatus status() override {
      if (fails_) return {transport::NcclState::kFailed, "a fault of this test's", false};
      if (busy_ > 0 && --busy_ >= 0) return {transport::NcclState::kBusy, {}};
      return {};
    }
    transport::NcclStatus issue(std::span<const transport::NcclOperation> group,
                                void* stream) override {
      ++nccl_.groups;
      fails_ = nccl_.failing == rank_ && ++issued_ == 3;
      auto kept = std::make_shared<Group>();
      kept->operations.assign(group.begin(), group.end());
      kept->matched.resize(group.size());
      static_cast<FakeStream*>(stream)->enqueue(
          [nccl = &nccl_, rank = rank_, size = size_, life = life_, kept] {
            return life->over || nccl->run(*kept, rank, size, *life);
          });
      busy_ = 1;
      return status();
    }
    transport::NcclStatus finish() override {
      finished_ = true;
      return {};
    }
    void abort() noexcept override {
      if (!life_->over.exchange(true)) ++nccl_.aborted;
    }

    struct Life {
      std::atomic<bool> over = false;
      int collectives = 0;
    };
    struct Group {
      std::vector<transport::NcclOperation> operations;
      std::vector<bool> matched;
      std::vector<std::shared_ptr<Parcel>> sent;
      bool posted = false;
      std::vector<int> collectives;  ///< numbers of its collectives
    };

   private:
    FakeNccl& nccl_;
    int rank_, size_, issued_ = 0, busy_ = 3;
    bool finished_ = false, fails_ = false;
    std::shared_ptr<Life> life_;
  };

  using Kind = transport::NcclOperation::Kind;

  static bool is_collective(const transport::NcclOperation& operation) {
    return operation.kind != Kind::kSend && operation.kind != Kind::kReceive;
  }

  bool run(Link::Group& group, int rank, int size, Link::Life& life) {
    if (silent == rank) return false;
    const std::lock_guard lock(mutex_);
    if (!group.posted) post(group, rank, size, life);
    bool done = true;
    std::size_t collective = 0;
    for (std::size_t i = 0; i < group.operations.size(); ++i) {
      const transport::NcclOperation& operation = group.operations[i];
      const int number = is_collective(operation) ? group.collectives[collective++] : 0;
      if (!group.matched[i]) {
        group.matched[i] = operation.kind == Kind::kSend      ? true
                           : operation.kind == Kind::kReceive ? receive(operation, rank)
                                                              : fetch(operation, number, rank);
      }
      // Messages of one peer arrive in order.
      done = done && group.matched[i];
      if (!group.matched[i] && operation.kind == Kind::kReceive) break;
    }
    for (const auto& parcel : group.sent) done = done && parcel->taken;
    return done;
  }

  void post(Link::Group& group, int rank, int size, Link::Life& life) {
    group.posted = true;
    for (const transport::NcclOperation& operation : group.operations) {
      const auto* const memory = static_cast<const std::byte*>(operation.memory);
      if (operation.kind == Kind::kSend) {
        auto parcel = std::make_shared<Parcel>();
        parcel->bytes.assign(memory, memory + operation.bytes);
        group.sent.push_back(parcel);
        parcels_[{rank, operation.peer}].push_back(parcel);
      } else if (is_collective(operation)) {
        group.collectives.push_back(life.collectives);
        Collective& all = collectives_[life.collectives++];
        all.parts.resize(static_cast<std::size_t>(size));
        all.parts[static_cast<std::size_t>(rank)].assign(memory, memory + operation.bytes);
        ++all.ranks;
      }
    }
  }

  bool receive(const transport::NcclOperation& operation, int rank) {
    auto& waiting = parcels_[{operation.peer, rank}];
    if (waiting.empty()) return false;
    Parcel& parcel = *waiting.front();
    if (static_cast<std::int64_t>(parcel.bytes.size()) != operation.bytes) std::abort();
    std::memcpy(operation.memory, parcel.bytes.data(), parcel.bytes.size());
    parcel.taken = true;
    waiting.pop_front();
    return true;
  }

  static const transport::Addition& addition_of(transport::NcclValues values) {
    static const auto fp16 = kernels::make_codec("fp16"), bf16 = kernels::make_codec("bf16");
    using enum transport::NcclValues;
    return addition(values == kFloat32 ? nullptr : values == kFloat16 ? fp16.get() : bf16.get());
  }

  bool fetch(const transport::NcclOperation& operation, int number, int rank) {
    Collective& all = collectives_[number];
    const std::size_t size = all.parts.size();
    if (static_cast<std::size_t>(all.ranks) < size) return false;
    if (operation.bytes > 0) take_part(operation, all.parts, static_cast<std::size_t>(rank));
    if (static_cast<std::size_t>(++all.fetched) == size) collectives_.erase(number);
    return true;
  }

  /// Writes a collective's result into the rank's memory.
  static void take_part(const transport::NcclOperation& operation,
                        const std::vector<std::vector<std::byte>>& parts, std::size_t rank) {
    const std::size_t shard = static_cast<std::size_t>(operation.bytes) / parts.size();
    auto* const memory = static_cast<std::byte*>(operation.memory);
    auto* const into = static_cast<std::byte*>(operation.into);
    switch (operation.kind) {
      case Kind::kAllGather:
        for (std::size_t of = 0; of < parts.size(); ++of) {
          std::memcpy(memory + of * shard, &parts[of][of * shard], shard);
        }
        return;
      case Kind::kReduceScatter:
        return add(operation, parts, rank * shard, shard);
      case Kind::kAllToAll:
        for (std::size_t of = 0; of < parts.size(); ++of) {
          std::memcpy(into + of * shard, &parts[of][rank * shard], shard);
        }
        return;
      default:
        return add(operation, parts, 0, parts.front().size());
    }
  }

  /// Writes the sum of all parts, for `bytes` bytes at `from`, into the memory.
  static void add(const transport::NcclOperation& operation,
                  const std::vector<std::vector<std::byte>>& parts, std::size_t from,
                  std::size_t bytes) {
    const transport::Addition& how = addition_of(operation.values);
    std::vector<std::byte> total(&parts.front()[from], &parts.front()[from] + bytes);
    for (std::size_t rank = 1; rank < parts.size(); ++rank) {
      how.add(total.data(), &parts[rank][from], bytes / how.value_bytes);
    }
    std::memcpy(static_cast<std::byte*>(operation.memory) + from, total.data(), bytes);
  }

  std::mutex mutex_;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Parcel>>> parcels_;
  std::map<int, Collective> collectives_;
};

}  // namespace hipress::runtime
