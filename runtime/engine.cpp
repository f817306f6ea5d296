#include "runtime/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <future>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "casync/topology.hpp"
#include "io/error.hpp"
#include "io/thread_variables.hpp"
#include "models/shape.hpp"
#include "runtime/values.hpp"

namespace hipress::runtime {

// ------------------------------------------------------------------------------------ compile

namespace {

void require_shape(const Gradient& gradient) {
  if (gradient.shape.empty()) return;
  try {
    models::check_shape(gradient.shape, gradient.elements);
  } catch (const io::InputError& error) {
    throw io::InputError(fmt::format("gradient {}: {}", io::quote(gradient.name), error.what()));
  }
}

}  // namespace

models::Model model_of(std::vector<Gradient> gradients) {
  models::Model model{.name = "of this job", .source = {}, .unit = {}, .gradients = {}};
  std::set<std::string> names;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Gradient& gradient = gradients[i];
    if (gradient.name.empty()) {
      throw io::InputError(fmt::format("gradient {} has no name", i));
    }
    if (gradient.elements < 1 || gradient.elements > models::kMaxElements) {
      throw io::InputError(fmt::format("gradient {}: elements must be from 1 to 2^48, got {}",
                                       io::quote(gradient.name), gradient.elements));
    }
    if (!names.insert(gradient.name).second) {
      throw io::InputError(fmt::format("two gradients are named {}; each needs a name of its own",
                                       io::quote(gradient.name)));
    }
    require_shape(gradient);
    if (!(gradient.ready_s >= 0 && gradient.ready_s <= models::kLongestTime_s)) {
      throw io::InputError(fmt::format("gradient {}: it is ready after {} s; give 0 to {:g}",
                                       io::quote(gradient.name), gradient.ready_s,
                                       models::kLongestTime_s));
    }
    model.gradients.push_back({.name = std::move(gradient.name),
                               .elements = gradient.elements,
                               .ready_s = gradient.ready_s,
                               .dtype = gradient.type,
                               .shape = std::move(gradient.shape)});
  }
  return model;
}

namespace {

/// Throws io::InputError unless the plan averages, because callers would take the result of any
/// other operation for a mean.
void require_mean(const casync::Plan& plan) {
  if (plan.schedule.row().sharded) {
    throw io::InputError("the plan's schedule " + plan.schedule.text() +
                         " gathers parameters and scatters means, and an engine averages: shard "
                         "the model (in PyTorch by fully_shard(model)), or take a plan of schedule "
                         "ddp");
  }
  for (const std::string& name : {plan.topology, plan.raw_topology}) {
    if (name.empty()) continue;
    const casync::Operation operation = casync::find_topology(name).operation;
    if (operation == casync::Operation::kMean) continue;
    throw io::InputError(fmt::format(
        "the plan's topology '{}' does a {}, and an engine averages: take one of {}", name,
        casync::to_string(operation), casync::topology_names(casync::Operation::kMean)));
  }
}

/// Groups small gradients that are raw or in half precision. These are coded value by value, so
/// grouping changes no value.
void group_small(const models::Model& model, std::int64_t most_bytes, casync::Plan& plan) {
  std::vector<std::uint32_t> group;
  std::int64_t bytes = 0;
  const auto close = [&] {
    if (group.size() > 1) plan.bulk_groups.push_back(group);
    group.clear();
    bytes = 0;
  };
  for (std::uint32_t g = 0; g < model.gradients.size(); ++g) {
    const models::Gradient& gradient = model.gradients[g];
    const std::int64_t own = gradient.elements * models::size_of(gradient.dtype);
    const casync::Decision& decision = plan.decisions[g];
    const casync::Algorithm* const algorithm =
        casync::algorithm_at(plan.algorithms, decision.algorithm);
    if (algorithm != nullptr && !algorithm->half_precision) continue;
    if (own >= most_bytes) continue;
    const bool fits = !group.empty() && bytes + own <= most_bytes &&
                      plan.decisions[group.back()].algorithm == decision.algorithm;
    if (!fits) close();
    group.push_back(g);
    bytes += own;
  }
  close();
}

using Fragment = std::optional<std::uint32_t>;

std::vector<Fragment> fragments_of(std::span<const Gradient> gradients) {
  std::vector<Fragment> fragments;
  for (const Gradient& gradient : gradients) fragments.push_back(gradient.fragment);
  return fragments;
}

/// Drops the schedule, because the caller decides when to submit. Throws io::InputError if the plan
/// has a schedule other than ddp and no gradient has a fragment (local updates).
void drop_schedule(std::span<const Fragment> fragments, casync::Plan& plan) {
  const bool is_local = std::ranges::any_of(fragments, &Fragment::has_value);
  if (plan.schedule != casync::Schedule() && !is_local) {
    throw io::InputError(fmt::format(
        "the plan is for schedule {}, and here every step is averaged: train by local updates "
        "(docs/local-updates.md), or plan for schedule ddp",
        plan.schedule.text()));
  }
  plan.schedule = {};
}

/// Splits the plan's bulk groups by fragment. A group waits for its last member, so one with two
/// fragments would never be complete.
void cut_groups(const models::Model& model, std::span<const Fragment> fragments,
                casync::Plan& plan) {
  if (std::ranges::adjacent_find(fragments, std::ranges::not_equal_to()) == fragments.end()) return;
  const casync::Layout layout = casync::make_layout(model, plan);
  std::vector<std::vector<std::uint32_t>> groups;
  for (std::uint32_t unit = layout.gradients; unit < layout.first_factor; ++unit) {
    std::map<Fragment, std::vector<std::uint32_t>> parts;
    for (const std::uint32_t member : layout.units[unit].members) {
      parts[fragments[member]].push_back(member);
    }
    for (auto& [fragment, members] : parts) {
      if (members.size() > 1) groups.push_back(std::move(members));
    }
  }
  plan.bulk = {};
  plan.bulk_groups = std::move(groups);
}

std::shared_ptr<const Compiled> compile(models::Model model, std::span<const Fragment> fragments,
                                        plans::ResolvedPlan plan) {
  require_mean(plan.plan);
  drop_schedule(fragments, plan.plan);
  cut_groups(model, fragments, plan.plan);
  auto made = std::make_shared<Compiled>();
  made->model = std::move(model);
  made->plan = std::move(plan);
  made->plan.plan.batch = {};
  made->plan.plan.pipelining = true;
  made->graph = casync::expand_to_run(made->model, made->plan.plan);
  casync::check(made->graph);
  made->fingerprint = plans::plan_fingerprint(made->model, made->plan.plan);
  return made;
}

}  // namespace

std::shared_ptr<const Compiled> compile(std::vector<Gradient> gradients, plans::ResolvedPlan plan) {
  const std::vector<Fragment> fragments = fragments_of(gradients);
  return compile(model_of(std::move(gradients)), fragments, std::move(plan));
}

std::shared_ptr<const Compiled> compile(std::vector<Gradient> gradients, const PlanChoice& choice) {
  const std::vector<Fragment> fragments = fragments_of(gradients);
  models::Model model = model_of(std::move(gradients));
  const plans::PlanContext context{.model = model,
                                   .topology = choice.topology,
                                   .nodes = choice.nodes,
                                   .algorithm = choice.algorithm,
                                   .trust = choice.trust};
  plans::ResolvedPlan plan = plans::resolve_plan(choice.plan, context);
  if (plans::is_named_plan(choice.plan, context)) group_small(model, choice.group_bytes, plan.plan);
  return compile(std::move(model), fragments, std::move(plan));
}

// --------------------------------------------------------------------------------------- work

struct Work::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::exception_ptr error;
  std::vector<std::function<void(std::exception_ptr)>> callbacks;

  void end(const std::exception_ptr& why) {
    std::vector<std::function<void(std::exception_ptr)>> all;
    {
      const std::lock_guard lock(mutex);
      done = true;
      error = why;
      all = std::exchange(callbacks, {});
      changed.notify_all();
    }
    for (const auto& callback : all) callback(why);
  }
};

void Work::wait() const {
  if (!state_) throw std::logic_error("a Work that was not submitted is waited for");
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->done; });
  if (state_->error) std::rethrow_exception(state_->error);
}

bool Work::done() const {
  if (!state_) return false;
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

bool Work::wait_until(transport::Clock::time_point at) const {
  if (!state_) throw std::logic_error("a Work that was not submitted is waited for");
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_until(lock, at, [this] { return state_->done; });
}

void Work::then(std::function<void(std::exception_ptr error)> callback) const {
  if (!state_) throw std::logic_error("a Work that was not submitted is waited for");
  std::exception_ptr error;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->done) return state_->callbacks.push_back(std::move(callback));
    error = state_->error;
  }
  callback(error);
}

// ------------------------------------------------------------------------------------- engine

namespace {

/// Role under which the store keeps a gradient's iteration count: 64 bits as four 16-bit digits,
/// lowest first, each exact in a float.
constexpr std::uint32_t kCountRole = UINT32_MAX;
constexpr int kCountDigits = 4;
constexpr std::uint64_t kCountBase = 1 << 16;

void write_count(std::uint64_t count, float* digits) {
  for (int i = 0; i < kCountDigits; ++i, count /= kCountBase) {
    digits[i] = static_cast<float>(count % kCountBase);
  }
}

std::uint64_t read_count(const float* digits) {
  std::uint64_t count = 0;
  for (int i = kCountDigits - 1; i >= 0; --i) {
    // A file may hold any number here; clamp it to a valid digit.
    const float digit = std::clamp(digits[i], 0.0f, static_cast<float>(kCountBase - 1));
    count = count * kCountBase + static_cast<std::uint64_t>(digit);
  }
  return count;
}

const Compiled& fitting(const std::shared_ptr<const Compiled>& compiled,
                        const transport::Endpoint& endpoint) {
  if (static_cast<std::uint32_t>(endpoint.size()) == compiled->graph.nodes) return *compiled;
  throw std::invalid_argument(fmt::format("the plan is for {} ranks, the job has {}",
                                          compiled->graph.nodes, endpoint.size()));
}

}  // namespace

Engine::Engine(transport::Endpoint& endpoint, std::shared_ptr<const Compiled> compiled,
               const EngineOptions& options)
    : endpoint_(endpoint),
      compiled_(std::move(compiled)),
      program_(fitting(compiled_, endpoint).graph, compiled_->model, compiled_->plan,
               static_cast<std::uint32_t>(endpoint.rank())),
      device_(options.device) {
  lay_out();
  runtime_ = std::make_unique<UnitRuntime>(
      endpoint_, program_, unit_memory_, states_,
      RuntimeOptions{.seed = options.seed, .timeout_s = options.timeout_s});
  finisher_ = io::start_thread([this] { take_ended(); });
}

Engine::~Engine() { close(); }

void Engine::lay_out() {
  const casync::Layout& layout = program_.layout();
  slots_.resize(compiled_->model.gradients.size());
  units_.resize(layout.units.size());
  // Round up, so that every unit is aligned like the first.
  const auto taken = [](const casync::Unit& unit) {
    return static_cast<std::size_t>(unit.members.empty() ? 0 : (unit.elements + 15) / 16 * 16);
  };
  std::size_t elements = 0;
  for (const casync::Unit& unit : layout.units) elements += taken(unit);
  memory_.resize(elements);
  std::size_t next = 0;
  for (std::uint32_t u = 0; u < layout.units.size(); ++u) {
    const casync::Unit& unit = layout.units[u];
    const std::size_t length = unit.members.empty() ? 0 : static_cast<std::size_t>(unit.elements);
    const std::span<float> memory = std::span(memory_).subspan(next, length);
    next += taken(unit);
    unit_memory_.push_back(memory);
    std::size_t used = 0;
    for (const casync::Member& member : casync::places(unit, compiled_->model)) {
      const auto count = static_cast<std::size_t>(member.elements);
      Slot& slot = slots_[member.gradient];
      slot.unit = u;
      slot.memory = memory.subspan(static_cast<std::size_t>(member.first), count);
      used += count;
      if (device_ == nullptr) continue;
      const models::Dtype type = compiled_->model.gradients[member.gradient].dtype;
      slot.staging = device_->allocate_pinned(member.elements * models::size_of(type));
    }
    units_[u].padding = memory.subspan(std::min(used, length));
  }
}

void Engine::check(std::uint32_t gradient, const Tensor& tensor) const {
  const std::vector<models::Gradient>& all = compiled_->model.gradients;
  if (gradient >= all.size()) {
    throw std::invalid_argument(fmt::format(
        "gradient {} is submitted; there are {}, counted from 0", gradient, all.size()));
  }
  const models::Gradient& expected = all[gradient];
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument(fmt::format("gradient {}: {}", io::quote(expected.name), what));
  };
  if (tensor.elements != expected.elements) {
    refuse(fmt::format("the tensor has {} elements, the gradient {}", tensor.elements,
                       expected.elements));
  }
  if (tensor.type != expected.dtype) {
    refuse(fmt::format("the tensor is of {}, the gradient of {}", models::to_string(tensor.type),
                       models::to_string(expected.dtype)));
  }
  if (tensor.data == nullptr) refuse("the tensor has no memory");
  if (tensor.on_device && device_ == nullptr) {
    refuse("the tensor is on a GPU, and the engine was made without one");
  }
}

Work Engine::submit(std::uint32_t gradient, const Tensor& tensor) {
  check(gradient, tensor);
  Slot& slot = slots_[gradient];
  auto state = std::make_shared<Work::State>();
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw std::logic_error("a gradient is submitted to an engine that is closed");
    if (failure_) std::rethrow_exception(failure_);
    if (slot.work) {
      throw std::logic_error(
          fmt::format("gradient {} is submitted again, and its last Work is not done yet",
                      io::quote(compiled_->model.gradients[gradient].name)));
    }
    slot.work = state;
    slot.tensor = tensor;
    slot.revocable = false;
    UnitState& unit = units_[slot.unit];
    if (++unit.submitted == program_.layout().units[slot.unit].members.size()) ++under_way_;
  }
  if (tensor.on_device) {
    try {
      copy_from_device(gradient);
    } catch (...) {
      runtime_->fail(std::current_exception());  // ends all works, this one included
      throw;
    }
  } else {
    widen(tensor.data, tensor.type, slot.memory);
    copied(gradient);
  }
  return Work(std::move(state));
}

void Engine::copied(std::uint32_t gradient) {
  const std::uint32_t number = slots_[gradient].unit;
  UnitState& unit = units_[number];
  std::uint64_t iteration = 0, step = 0;
  {
    const std::lock_guard lock(mutex_);
    if (++unit.copied < program_.layout().units[number].members.size()) return;
    iteration = unit.iteration++;
    step = unit.step++;
  }
  std::ranges::fill(unit.padding, 0.0f);
  runtime_->begin_unit(number, iteration, step);
}

void Engine::copy_from_device(std::uint32_t gradient) {
  constexpr Stream kStream = Stream::kOutbound;
  const Slot& slot = slots_[gradient];
  const Tensor& tensor = slot.tensor;
  const std::lock_guard lock(device_mutex_);
  if (tensor.event != nullptr) device_->wait_foreign(tensor.event, kStream);
  device_->copy(slot.staging, tensor.data, tensor.elements * models::size_of(tensor.type), kStream);
  device_->call(
      [this, gradient] {
        const Slot& arrived = slots_[gradient];
        widen(arrived.staging, arrived.tensor.type, arrived.memory);
        copied(gradient);
      },
      kStream);
}

void Engine::copy_to_tensors(std::span<const std::uint32_t> gradients) {
  constexpr Stream kStream = Stream::kInbound;
  bool on_device = false;
  for (const std::uint32_t gradient : gradients) {
    Slot& slot = slots_[gradient];
    const Tensor& tensor = slot.tensor;
    const bool finite =
        narrow(slot.memory, tensor.type, tensor.on_device ? slot.staging : tensor.data);
    {
      const std::lock_guard lock(mutex_);  // all_finite() may be called at any time
      slot.finite = finite;
    }
    if (!tensor.on_device) continue;
    on_device = true;
    const std::lock_guard lock(device_mutex_);
    device_->copy(tensor.data, slot.staging, tensor.elements * models::size_of(tensor.type),
                  kStream);
  }
  if (!on_device) return;
  // Shared, because this thread or the device's callback may be its last user.
  const auto there = std::make_shared<std::promise<void>>();
  {
    const std::lock_guard lock(device_mutex_);
    device_->call([there] { there->set_value(); }, kStream);
  }
  there->get_future().wait();
}

void Engine::take_ended() {
  try {
    for (;;) {
      const std::uint32_t unit = runtime_->wait_for_unit();
      if (unit == kNoIndex) return;
      end_unit(unit);
    }
  } catch (const transport::PeerError& error) {
    endpoint_.abort(error.culprit, error.what());
    fail(std::current_exception());
  } catch (const std::exception& error) {
    // Only this rank knows of the failure: abort, so that the others do not wait.
    endpoint_.abort(endpoint_.rank(), fmt::format("rank {}: {}", endpoint_.rank(), error.what()));
    fail(std::current_exception());
  }
}

void Engine::end_unit(std::uint32_t unit) {
  const std::vector<std::uint32_t>& members = program_.layout().units[unit].members;
  copy_to_tensors(members);
  std::vector<std::shared_ptr<Work::State>> ended;
  {
    const std::lock_guard lock(mutex_);
    // Reset all members before any Work is done, since a waiter may submit again at once.
    for (const std::uint32_t member : members) {
      ended.push_back(std::move(slots_[member].work));
      slots_[member].revocable = true;
    }
    units_[unit].submitted = units_[unit].copied = units_[unit].discarded = 0;
  }
  for (const auto& work : ended) work->end(nullptr);
  const std::lock_guard lock(mutex_);
  if (--under_way_ == 0) idle_.notify_all();
}

void Engine::fail(const std::exception_ptr& error) {
  if (device_ != nullptr) device_->drain();  // ends copies from and to the caller's memory
  std::vector<std::shared_ptr<Work::State>> ended;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = error;
    for (Slot& slot : slots_) {
      if (slot.work) ended.push_back(std::move(slot.work));
    }
    idle_.notify_all();
  }
  for (const auto& work : ended) work->end(error);
}

void Engine::abort(const std::string& reason) noexcept {
  const int rank = endpoint_.rank();
  endpoint_.abort(rank, reason);
  runtime_->fail(std::make_exception_ptr(transport::PeerError(rank, reason)));
}

void Engine::require_idle() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return under_way_ == 0 || failure_; });
  if (failure_) std::rethrow_exception(failure_);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].work) continue;
    throw std::logic_error(
        fmt::format("gradient {} is submitted, and others of its bulk group are not: states are "
                    "saved and loaded between iterations",
                    io::quote(compiled_->model.gradients[i].name)));
  }
}

bool Engine::all_finite() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(slots_, &Slot::finite);
}

void Engine::discard(std::span<const std::uint32_t> gradients) {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  for (const std::uint32_t gradient : gradients) {
    if (gradient >= slots_.size()) {
      throw std::invalid_argument(fmt::format(
          "gradient {} is discarded; there are {}, counted from 0", gradient, slots_.size()));
    }
    if (!slots_[gradient].work) continue;
    throw std::logic_error(fmt::format(
        "gradient {} is under way, and what it had last can no longer be discarded: do it before "
        "the next iteration",
        io::quote(compiled_->model.gradients[gradient].name)));
  }
  for (const std::uint32_t gradient : gradients) {
    Slot& slot = slots_[gradient];
    if (!std::exchange(slot.revocable, false)) continue;
    slot.finite = true;
    const std::int64_t first = slot.memory.data() - unit_memory_[slot.unit].data();
    runtime_->take_back(slot.unit, first, static_cast<std::int64_t>(slot.memory.size()));
    UnitState& unit = units_[slot.unit];
    if (++unit.discarded == program_.layout().units[slot.unit].members.size()) --unit.step;
  }
}

std::string Engine::notes() const {
  std::string notes;
  const plans::ResolvedPlan& plan = compiled_->plan;
  for (std::size_t i = 0; i < plan.codecs.size(); ++i) {
    if (!plan.codecs[i]->traits().own_optimizer) continue;
    notes += kernels::optimizer_note(plan.plan.algorithms[i].name) + "\n";
  }
  return notes;
}

float* Engine::count_of(std::uint32_t gradient) {
  return states_.get(compiled_->model.gradients[gradient].name, kCountRole, kCountDigits, 1);
}

std::vector<double> Engine::squared_residuals() {
  require_idle();
  std::vector<double> squares;
  for (const models::Gradient& gradient : compiled_->model.gradients) {
    double sum = -1;
    for (const auto& [name, role] : {std::pair{gradient.name, casync::Role::kWorker},
                                     {gradient.name, casync::Role::kHop},
                                     {gradient.name, casync::Role::kServer},
                                     {gradient.name + " residual", casync::Role::kWorker}}) {
      const double one = states_.squared_norm(name, static_cast<std::uint32_t>(role));
      if (one >= 0) sum = std::max(sum, 0.0) + one;
    }
    squares.push_back(sum);
  }
  return squares;
}

void Engine::take_residual(std::uint32_t gradient, std::span<float> values) {
  require_idle();
  if (gradient >= slots_.size() || values.size() != slots_[gradient].memory.size()) {
    throw std::invalid_argument(
        fmt::format("gradient {} of {} with {} elements has no residual: give a gradient's number, "
                    "and its elements",
                    gradient, slots_.size(), values.size()));
  }
  const Slot& slot = slots_[gradient];
  std::span<float> memory = unit_memory_[slot.unit];
  std::vector<float>& taken = taken_[slot.unit];
  if (taken.empty()) taken.assign(memory.size(), 0.0f);
  runtime_->take_residuals(slot.unit, taken);
  runtime_->forget();
  for (Slot& each : slots_) each.revocable = false;
  const auto first = static_cast<std::size_t>(slot.memory.data() - memory.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::exchange(taken[first + i], 0.0f);
  }
}

void Engine::save_state(const std::string& path) {
  require_idle();
  for (std::uint32_t g = 0; g < slots_.size(); ++g) {
    write_count(units_[slots_[g].unit].step, count_of(g));
  }
  states_.save(path);
}

void Engine::load_state(const std::string& path) {
  require_idle();
  for (std::uint32_t g = 0; g < slots_.size(); ++g) count_of(g);
  states_.restore(path);
  runtime_->forget();
  for (std::uint32_t g = 0; g < slots_.size(); ++g) {
    UnitState& unit = units_[slots_[g].unit];
    unit.iteration = unit.step = read_count(count_of(g));
    slots_[g].revocable = false;
  }
}

void Engine::close() noexcept {
  {
    std::unique_lock lock(mutex_);
    if (std::exchange(closed_, true)) return;
    idle_.wait(lock, [this] { return under_way_ == 0 || failure_; });
  }
  runtime_->stop_waiting();
  if (finisher_.joinable()) finisher_.join();
  if (device_ != nullptr) device_->drain();  // its callbacks use this object
  runtime_.reset();
  fail(std::make_exception_ptr(
      std::logic_error("the engine was closed before all gradients of the unit were submitted")));
}

}  // namespace hipress::runtime
