#include <atomic>
#include <utility>
#include <vector>

#include "runtime/mover.hpp"

namespace hipress::runtime {
namespace {

using casync::Kind;
using transport::NcclOperation;

constexpr Stream kStream = Stream::kOutbound;  // stream of all NCCL operations

transport::NcclValues nccl_values(const kernels::Codec* cast) {
  using enum kernels::ValueType;
  if (cast == nullptr) return transport::NcclValues::kFloat32;
  return cast->traits().message_values == kFloat16 ? transport::NcclValues::kFloat16
                                                   : transport::NcclValues::kBfloat16;
}

class NcclMover final : public Mover {
 public:
  NcclMover(transport::Endpoint& endpoint, DeviceWork& work, MoverEvents& events,
            const NcclOptions& options)
      : rank_(endpoint.rank()),
        work_(work),
        events_(events),
        options_(options),
        round_of_(work.program.tasks().size(), kNoIndex),
        communicator_(std::make_unique<transport::NcclCommunicator>(endpoint, *options.library,
                                                                    options.timeout_s)) {}

  void start() override {
    for (const Round& round : derive_rounds(work_.program.graph(), options_.rounds)) {
      LocalRound mine = part_of(round);
      if (mine.tasks.empty()) continue;
      const auto number = static_cast<std::uint32_t>(rounds_.size());
      for (const std::uint32_t index : mine.tasks) round_of_[index] = number;
      rounds_.push_back(std::move(mine));
    }
    waits_.resize(rounds_.size());
  }

  void begin(std::uint64_t /*iteration*/) override {
    for (std::size_t round = 0; round < rounds_.size(); ++round) {
      waits_[round] = static_cast<std::uint32_t>(rounds_[round].tasks.size());
    }
    next_ = 0;
    first_awaited_ = 0;
  }

  void issue(std::uint32_t index) override {
    --waits_[round_of_[index]];
    while (next_ < rounds_.size() && waits_[next_] == 0) issue_round(rounds_[next_++]);
  }

  bool orders_receives() const override { return true; }
  bool needs_looks() const override { return true; }

  void look() override {
    const std::uint32_t before = first_awaited_;
    while (first_awaited_ < next_ &&
           work_.schedule.is_done(rounds_[first_awaited_].tasks.front())) {
      ++first_awaited_;
    }
    if (first_awaited_ != before) events_.happened();
    communicator_->check(awaited());
  }

  bool may_be_blamed(std::chrono::nanoseconds quiet) override {
    if (first_awaited_ == next_) return true;
    if (quiet < patience(options_.timeout_s, Blame::kSender, rank_)) return false;
    communicator_->give_up(awaited());
    return true;
  }

  std::uint32_t waiting() const override {
    const std::uint32_t round = first_awaited_;
    return round < rounds_.size() ? rounds_[round].tasks.front() : kNoIndex;
  }

  void interrupt() override {}

  void end(bool under_way) override {
    if (under_way) communicator_->abandon();
    communicator_.reset();  // ends operations that block the device's streams
  }

 private:
  /// One rank's part of a round.
  struct LocalRound {
    /// Sends, Recvs and AllReduces, in the order common to all ranks
    std::vector<std::uint32_t> tasks;
    std::vector<NcclOperation> operations;
  };

  LocalRound part_of(const Round& round) const {
    const casync::TaskGraph& graph = work_.program.graph();
    LocalRound mine;
    for (const casync::TaskId send : round.sends) {
      add(mine, NcclOperation::Kind::kSend, send);
      add(mine, NcclOperation::Kind::kReceive, receive_of(graph, send));
    }
    for (const auto& reduce : round.reduces) {
      for (const casync::TaskId task : reduce) add(mine, NcclOperation::Kind::kAllReduce, task);
    }
    return mine;
  }

  /// Adds the task if it belongs to this rank.
  void add(LocalRound& mine, NcclOperation::Kind kind, casync::TaskId id) const {
    const casync::TaskGraph& graph = work_.program.graph();
    const std::uint32_t index = work_.program.index_of(id);
    if (index == kNoIndex) return;
    const LocalTask& local = work_.program.tasks()[index];
    const bool sends = kind == NcclOperation::Kind::kSend;
    const std::span<std::byte> memory = work_.memory.payload(local);
    mine.tasks.push_back(index);
    mine.operations.push_back({.kind = kind,
                               .peer = static_cast<int>(graph.peer(local.task)),
                               .tag = sends ? receive_of(graph, id) : id,
                               .memory = memory.data(),
                               .bytes = kind == NcclOperation::Kind::kAllReduce
                                            ? static_cast<std::int64_t>(memory.size())
                                            : work_.memory.most_bytes(local),
                               .values = nccl_values(work_.program.cast_of(local))});
  }

  void issue_round(const LocalRound& round) {
    const Program& program = work_.program;
    work_.schedule.enqueue(kStream, round.tasks, [&] {
      for (const std::uint32_t index : round.tasks) {
        work_.run_cast(program.tasks()[index], Kind::kEncode, kStream);
      }
      communicator_->issue(round.operations, work_.device.handle(kStream));
      for (const std::uint32_t index : round.tasks) {
        const LocalTask& local = program.tasks()[index];
        work_.run_cast(local, Kind::kDecode, kStream);
        if (local.task.kind != Kind::kAllReduce || casync::casts(local.task)) continue;
        const std::span<float> values = work_.memory.slice(local);
        work_.device.merge(nullptr, static_cast<std::int64_t>(values.size()), values.data(), 1,
                           static_cast<float>(program.graph().divisor), kStream);
      }
    });
    std::int64_t sent = 0;
    for (const std::uint32_t index : round.tasks) {
      const casync::Task& task = program.tasks()[index].task;
      if (task.kind != Kind::kRecv) sent += casync::bytes_sent(program.graph(), task);
    }
    events_.count(sent);
    for (const std::uint32_t index : round.tasks) events_.issued(index);
  }

  std::span<const NcclOperation> awaited() const {
    if (first_awaited_ >= rounds_.size()) return {};
    return rounds_[first_awaited_].operations;
  }

  const int rank_;
  DeviceWork& work_;
  MoverEvents& events_;
  const NcclOptions options_;
  std::vector<LocalRound> rounds_;
  std::vector<std::uint32_t> round_of_;  ///< per task; kNoIndex: no round
  std::vector<std::uint32_t> waits_;  ///< per round: number of its tasks that cannot be issued yet
  std::uint32_t next_ = 0;
  std::atomic<std::uint32_t> first_awaited_ = 0;  ///< first round not known to be done
  std::unique_ptr<transport::NcclCommunicator> communicator_;
};

}  // namespace

std::unique_ptr<Mover> make_nccl_mover(transport::Endpoint& endpoint, DeviceWork& work,
                                       MoverEvents& events, const NcclOptions& options) {
  return std::make_unique<NcclMover>(endpoint, work, events, options);
}

}  // namespace hipress::runtime
