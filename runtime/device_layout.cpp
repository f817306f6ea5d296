#include "runtime/device_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "io/error.hpp"
#include "runtime/operations.hpp"

namespace hipress::runtime {
namespace {

using casync::Kind;

/// Alignment in the arenas: that of a GPU's memory transactions, which is more than codecs need.
constexpr std::int64_t kDeviceAlignment = 256;

std::int64_t device_aligned(std::int64_t bytes) {
  return casync::round_up(bytes, kDeviceAlignment);
}

void place_units(const Program& program, DeviceLayout& layout) {
  for (const casync::Unit& unit : program.layout().units) {
    const bool kept = !unit.members.empty();
    layout.units.push_back(kept ? layout.unit_bytes : -1);
    const auto bytes = unit.elements * static_cast<std::int64_t>(sizeof(float));
    if (kept) layout.unit_bytes += device_aligned(bytes);
  }
}

/// Places residuals, one per unit and role. A slice has the same offset in the residual as in the
/// unit.
void place_states(const Program& program, DeviceLayout& layout) {
  const std::size_t tasks = program.tasks().size();
  layout.states.assign(tasks, -1);
  layout.strides.assign(tasks, 0);
  layout.deferred.assign(tasks, -1);
  std::map<std::pair<std::uint32_t, casync::Role>, std::int64_t> arrays;
  std::map<std::tuple<std::uint32_t, casync::Role, std::int64_t>, std::int64_t> deferred;
  std::int64_t end = layout.state_begin;
  const auto take = [&end](std::int64_t bytes) {
    return std::exchange(end, end + device_aligned(bytes));
  };
  for (std::size_t index = 0; index < tasks; ++index) {
    const LocalTask& local = program.tasks()[index];
    if (local.task.kind != Kind::kEncode) continue;
    const auto algorithm = static_cast<std::size_t>(local.task.algorithm);
    const int count = state_arrays(*program.plan().codecs[algorithm]);
    if (count == 0) continue;
    const casync::Unit& unit = program.layout().units[local.task.gradient];
    // Each array is aligned like the unit, so that a slice that begins at a multiple of 32 elements
    // is 16-byte aligned.
    const std::int64_t stride =
        device_aligned(unit.elements * static_cast<std::int64_t>(sizeof(float)));
    const auto [array, new_array] = arrays.try_emplace({local.task.gradient, local.task.role}, 0);
    if (new_array) array->second = take(stride * count);
    const auto [place, new_place] =
        deferred.try_emplace({local.task.gradient, local.task.role, local.slice.begin}, 0);
    if (new_place) place->second = take(sizeof(kernels::Deferred));
    layout.states[index] =
        array->second + local.slice.begin * static_cast<std::int64_t>(sizeof(float));
    layout.strides[index] = stride;
    layout.deferred[index] = place->second;
  }
  layout.state_bytes = end - layout.state_begin;
}

std::int64_t bytes_of_lengths(const Program& program) {
  return device_aligned(
      static_cast<std::int64_t>(program.messages().size() * sizeof(std::int64_t)));
}

/// Places one length per message, after the messages, if a codec's messages vary in length. With
/// NCCL, the upper bound is sent instead, because the host must know the length.
void place_lengths(const Program& program, DeviceLayout& layout) {
  const auto& codecs = program.plan().codecs;
  const bool varies = std::any_of(codecs.begin(), codecs.end(),
                                  [](const auto& codec) { return codec->traits().varies; });
  if (!varies) return;
  layout.lengths = layout.messages + layout.message_bytes;
  layout.message_bytes += bytes_of_lengths(program);
}

std::int64_t temporary_bytes_alone(const Program& program, const LocalTask& local) {
  if (local.task.kind != Kind::kEncode && local.task.kind != Kind::kDecode) return 0;
  const kernels::Codec& codec =
      *program.plan().codecs[static_cast<std::size_t>(local.task.algorithm)];
  // Not task.amount: that of a leader is its whole batch's.
  return codec.temporary_bytes(local.slice.elements,
                               static_cast<std::int64_t>(program.gathered(local).size()));
}

/// Temporary memory of a batch: its one call of the codec allocates for all members at once.
std::int64_t temporary_bytes(const Program& program, const LocalTask& leader) {
  std::int64_t bytes = temporary_bytes_alone(program, leader);
  for (const std::uint32_t member : program.members(leader)) {
    bytes += temporary_bytes_alone(program, program.tasks()[member]);
  }
  return bytes;
}

/// Places staging copies; Sends of the same bytes share one.
class StagingPlaces {
 public:
  StagingPlaces(const Program& program, DeviceLayout& layout)
      : program_(program), layout_(layout), before_(program.tasks().size()) {
    layout.staging_of.assign(program.tasks().size(), kNoIndex);
    for (std::uint32_t index = 0; index < before_.size(); ++index) {
      for (const std::uint32_t next : program.successors(program.tasks()[index])) {
        before_[next].push_back(index);
      }
    }
  }

  void place() {
    for (std::uint32_t index = 0; index < before_.size(); ++index) {
      const LocalTask& local = program_.tasks()[index];
      const Kind kind = local.task.kind;
      if (kind != Kind::kSend && kind != Kind::kRecv && kind != Kind::kAllReduce) continue;
      layout_.staging_of[index] =
          local.message != kNoIndex ? of_message(local) : of_slice(index, local);
      if (kind == Kind::kRecv) layout_.staging[layout_.staging_of[index]].comes_in = true;
    }
  }

 private:
  std::uint32_t add(std::int64_t bytes) {
    layout_.staging.push_back({.offset = layout_.pinned_bytes, .bytes = bytes});
    layout_.pinned_bytes += device_aligned(bytes);
    return static_cast<std::uint32_t>(layout_.staging.size() - 1);
  }

  std::uint32_t of_message(const LocalTask& local) {
    const auto [known, is_new] = messages_.try_emplace(local.message, 0);
    if (is_new) known->second = add(program_.messages()[local.message].capacity);
    return known->second;
  }

  /// Staging of a raw slice. The slice's values change, but not between Sends with the same
  /// predecessors, so these share a copy.
  std::uint32_t of_slice(std::uint32_t index, const LocalTask& local) {
    const std::int64_t bytes = local.slice.elements * static_cast<std::int64_t>(sizeof(float));
    if (local.task.kind != Kind::kSend) return add(bytes);
    const auto [known, is_new] =
        slices_.try_emplace({local.task.gradient, local.task.partition, before_[index]}, 0);
    if (is_new) known->second = add(bytes);
    return known->second;
  }

  const Program& program_;
  DeviceLayout& layout_;
  std::vector<std::vector<std::uint32_t>> before_;  ///< per task: its predecessors on this rank
  std::map<std::uint32_t, std::uint32_t> messages_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::vector<std::uint32_t>>, std::uint32_t>
      slices_;
};

}  // namespace

DeviceLayout make_device_layout(const Program& program, DeviceTransport transport) {
  if (!program.layout().factors.empty()) {
    throw io::InputError(fmt::format(
        "gradient {} is compressed in stages, which run on CPUs only for now; plan without such "
        "algorithms, or replay on CPUs",
        io::quote(program.layout().units[program.layout().factors.front().unit].name)));
  }
  DeviceLayout layout;
  place_units(program, layout);
  layout.messages = layout.unit_bytes;
  layout.message_bytes = device_aligned(program.arena_bytes());
  if (transport == DeviceTransport::kPinned) place_lengths(program, layout);
  layout.state_begin = layout.unit_bytes + layout.message_bytes;
  place_states(program, layout);
  for (const LocalTask& local : program.tasks()) {
    layout.temporary_bytes = std::max(layout.temporary_bytes, temporary_bytes(program, local));
  }
  layout.staging_of.assign(program.tasks().size(), kNoIndex);
  if (transport == DeviceTransport::kPinned) {
    StagingPlaces(program, layout).place();
    if (layout.lengths >= 0) {
      layout.pinned_lengths = layout.pinned_bytes;
      layout.pinned_bytes += bytes_of_lengths(program);
    }
  }
  return layout;
}

void require_memory(const DeviceLayout& layout, std::int64_t free_bytes, std::int64_t total_bytes,
                    std::uint32_t rank) {
  if (layout.device_bytes() <= free_bytes) return;
  const auto mib = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  throw io::RunError(fmt::format(
      "rank {} needs {:.1f} MiB of GPU memory: gradients {:.1f}, messages {:.1f}, residuals "
      "{:.1f}, "
      "codecs' temporary memory {:.1f}; {:.1f} of {:.1f} MiB are free. Let fewer ranks share a "
      "GPU, "
      "or plan an algorithm without error feedback",
      rank, mib(layout.device_bytes()), mib(layout.unit_bytes), mib(layout.message_bytes),
      mib(layout.state_bytes), mib(2 * layout.temporary_bytes), mib(free_bytes), mib(total_bytes)));
}

}  // namespace hipress::runtime
