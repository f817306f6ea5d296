#include "runtime/hipress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/error.hpp"
#include "job/connect.hpp"
#include "job/exhaustion.hpp"
#include "models/model.hpp"
#include "runtime/c_interface.hpp"
#include "runtime/engine.hpp"
#include "runtime/links.hpp"
#include "transport/store.hpp"

using namespace hipress;
using runtime::dtype_of;
using runtime::gradients_of;
using runtime::guarded;
using runtime::list_of;
using runtime::required;
using runtime::text_of;

namespace {

/// Sentences from the transport's threads, kept until hipress_news() returns them.
struct News {
  std::mutex mutex;
  std::string lines;

  void add(const std::string& sentence) {
    const std::lock_guard lock(mutex);
    lines += sentence + "\n";
  }
  std::string take() {
    const std::lock_guard lock(mutex);
    return std::exchange(lines, {});
  }
};

}  // namespace

struct hipress_engine {
  const std::shared_ptr<News> news = std::make_shared<News>();
  std::string told;  // last result of hipress_news()
  std::unique_ptr<transport::Endpoint> endpoint;
  std::unique_ptr<runtime::Device> device;
  std::unique_ptr<runtime::Engine> engine;
  std::string notes;
  double timeout_s = 0;
};

struct hipress_work {
  runtime::Work work;
};

struct hipress_model {
  models::Model model;
  std::vector<hipress_gradient> gradients;  // names and shapes point into the model
};

namespace {

hipress_type type_of(models::Dtype dtype) {
  if (dtype == models::Dtype::kFloat16) return HIPRESS_FLOAT16;
  return dtype == models::Dtype::kBfloat16 ? HIPRESS_BFLOAT16 : HIPRESS_FLOAT32;
}

void check(const hipress_options& options) {
  if (options.bytes != sizeof(hipress_options)) {
    throw std::invalid_argument(
        "the options were not set by hipress_options_init() of this "
        "version of the library");
  }
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks) {
    throw std::invalid_argument(fmt::format("rank {} of {} ranks: ranks count from 0 to ranks - 1",
                                            options.rank, options.ranks));
  }
  // Limited, because every rank holds tasks for every other rank.
  constexpr int kMostRanks = 4096;
  if (options.ranks > kMostRanks) {
    throw std::invalid_argument(fmt::format(
        "{} ranks: at most {}, since every rank meets every other; let each host be one rank",
        options.ranks, kMostRanks));
  }
  const auto require = [](std::string_view name, double given_s) {
    if (given_s >= transport::kMinTimeout_s && given_s <= transport::kMaxTimeout_s) return;
    throw std::invalid_argument(fmt::format("{} is {}; it may be from {} to {}", name, given_s,
                                            transport::kMinTimeout_s, transport::kMaxTimeout_s));
  };
  require("timeout_s", options.timeout_s);
  require("silence_s", options.silence_s);
  constexpr std::size_t kShortest = 16, kLongest = std::size_t{64} << 10;
  if (options.group_bytes < 0) {
    throw std::invalid_argument(
        fmt::format("group_bytes is {}; give 0 or more", options.group_bytes));
  }
  const bool automatic = options.automatic != 0;
  if (const std::string plan = text_of(options.plan); automatic && plan != "none") {
    throw std::invalid_argument(
        fmt::format("plan is {}, and automatic chooses the plan: leave one of them out", plan));
  }
  if (!automatic && !text_of(options.profile).empty()) {
    throw std::invalid_argument("profile is for automatic: set that to 1, or leave profile out");
  }
  const bool is_none = options.secret == nullptr && options.secret_bytes == 0;
  if (is_none) return;
  const std::size_t bytes = options.secret == nullptr ? 0 : options.secret_bytes;
  if (bytes < kShortest || bytes > kLongest) {
    throw std::invalid_argument(
        fmt::format("the secret has {} bytes: give {} to {}, or none", bytes, kShortest, kLongest));
  }
}

/// Store that calls the caller's functions.
class ForeignStore : public transport::Store {
 public:
  explicit ForeignStore(const hipress_store& store) : store_(store) {
    if (store.add == nullptr || store.wait == nullptr) {
      throw std::invalid_argument("the store's functions must not be null");
    }
  }
  bool add(const std::string& name, std::string_view content, transport::Keep /*keep*/) override {
    const int added = store_.add(store_.context, name.c_str(), content.data(), content.size());
    if (added < 0) throw transport::StoreLost(fmt::format("it did not take entry {}", name));
    return added > 0;
  }
  std::optional<std::string> wait_for(const std::string& name,
                                      transport::Clock::time_point deadline) override {
    const std::chrono::duration<double> left = deadline - transport::Clock::now();
    std::string content(kMaxBytes, '\0');
    const std::int64_t length = store_.wait(
        store_.context, name.c_str(), std::max(0.0, left.count()), content.data(), content.size());
    if (length == -1) return std::nullopt;
    if (length < 0) throw transport::StoreLost(fmt::format("it failed to give entry {}", name));
    if (static_cast<std::uint64_t>(length) > kMaxBytes) {
      throw std::runtime_error(
          fmt::format("entry {} has {} bytes; at most {} are allowed", name, length, kMaxBytes));
    }
    content.resize(static_cast<std::size_t>(length));
    return content;
  }
  std::string_view entries() const override { return "entries"; }

 protected:
  std::optional<std::string> find(const std::string& name) override {
    return wait_for(name, transport::Clock::now());
  }

 private:
  const hipress_store store_;
};

/// JobOptions of this rank, without the plan.
transport::JobOptions job_of(const hipress_options& options, const std::shared_ptr<News>& news) {
  transport::JobOptions rank{
      .rank = options.rank,
      .size = options.ranks,
      .job = text_of(options.job),
      .plan = {},
      .rendezvous = text_of(options.rendezvous),
      .interface = text_of(options.network),
      .timeout_s = options.timeout_s,
      .silence_s = options.silence_s,
      .notice = [news](const std::string& sentence) { news->add(sentence); }};
  if (options.secret != nullptr) {
    rank.secret.assign(static_cast<const char*>(options.secret), options.secret_bytes);
  }
  if (options.store != nullptr) {
    rank.store = std::make_shared<ForeignStore>(*options.store);
    if (rank.rendezvous.empty()) rank.rendezvous = "the caller's store";
  }
  return rank;
}

/// Prepares the plan, then meets the other ranks. If either fails, tells the other ranks why.
std::unique_ptr<hipress_engine> open_engine(const hipress_options& options,
                                            const hipress_gradient* gradients, std::size_t count) {
  auto made = std::make_unique<hipress_engine>();
  transport::JobOptions rank = job_of(options, made->news);
  std::vector<runtime::Gradient> all;
  std::shared_ptr<const runtime::Compiled> compiled = job::or_refuse(rank, [&] {
    all = gradients_of(gradients, count, options.fragments);
    const runtime::PlanChoice choice{.plan = text_of(options.plan),
                                     .topology = text_of(options.topology),
                                     .nodes = static_cast<std::uint32_t>(options.ranks),
                                     .algorithm = text_of(options.algorithm),
                                     .trust = {},
                                     .group_bytes = options.group_bytes};
    if (options.device >= 0) made->device = runtime::make_cuda_device(options.device);
    return runtime::compile(all, choice);
  });
  const bool chooses = options.automatic != 0 && options.ranks > 1;
  const bool timed = std::ranges::any_of(all, [](const auto& one) { return one.ready_s > 0; });
  const char* const how = !chooses ? "" : timed ? "automatic, " : "automatic without ready times, ";
  rank.plan = fmt::format("{}{}, seed {}", how, compiled->fingerprint, options.seed);
  // The chosen plan may have all-reduces.
  const int collectives = chooses ? 1 : runtime::collectives_of(compiled->graph);
  made->endpoint = job::connect_rank(text_of(options.transport), rank, collectives);
  try {
    if (chooses) {
      runtime::Chosen chosen = runtime::choose_plan(*made->endpoint, all, options);
      compiled = std::move(chosen.compiled);
      made->notes = chosen.note + "\n";
    }
    made->engine = job::as_rank(options.rank, [&] {
      return std::make_unique<runtime::Engine>(
          *made->endpoint, compiled,
          runtime::EngineOptions{
              .seed = options.seed, .timeout_s = options.timeout_s, .device = made->device.get()});
    });
  } catch (const io::InputError&) {
    throw;  // every rank throws it
  } catch (const std::exception& error) {
    made->endpoint->abort(options.rank, fmt::format("rank {}: {}", options.rank, error.what()));
    throw;
  }
  made->notes += made->engine->notes();
  made->timeout_s = options.timeout_s;
  return made;
}

}  // namespace

extern "C" {

void hipress_options_init(hipress_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->bytes = sizeof *options;
  options->ranks = 1;
  options->plan = "none";
  options->topology = "ring";
  options->algorithm = "onebit";
  options->transport = "tcp";
  options->rendezvous = "";
  options->network = "";
  options->job = "hipress";
  options->timeout_s = 30;
  options->silence_s = transport::kDefaultSilence_s;
  options->seed = 1;
  options->device = -1;
}

hipress_status hipress_open(const hipress_options* options, const hipress_gradient* gradients,
                            size_t count, hipress_engine** engine) {
  if (engine != nullptr) *engine = nullptr;
  return guarded([&] {
    required(engine, "engine");
    check(required(options, "options"));
    *engine = job::as_rank(options->rank, [&] {
                return open_engine(*options, gradients, count);
              }).release();
  });
}

hipress_status hipress_submit(hipress_engine* engine, uint32_t gradient,
                              const hipress_tensor* tensor, hipress_work** work) {
  if (work != nullptr) *work = nullptr;
  return guarded([&] {
    required(work, "work");
    const hipress_tensor& lent = required(tensor, "tensor");
    auto made = std::make_unique<hipress_work>();
    made->work = required(engine, "engine")
                     .engine->submit(gradient, {.data = lent.data,
                                                .elements = lent.elements,
                                                .type = dtype_of(lent.type),
                                                .on_device = lent.on_device != 0,
                                                .event = lent.event});
    *work = made.release();
  });
}

hipress_status hipress_submit_many(hipress_engine* engine, size_t count, const uint32_t* gradients,
                                   const hipress_tensor* tensors, hipress_work** works) {
  const hipress_status fits = guarded([&] {
    std::ranges::fill(list_of(works, count, "works"), nullptr);
    list_of(gradients, count, "gradients");
    list_of(tensors, count, "tensors");
  });
  if (fits != HIPRESS_OK) return fits;
  for (std::size_t i = 0; i < count; ++i) {
    const hipress_status status = hipress_submit(engine, gradients[i], &tensors[i], &works[i]);
    if (status != HIPRESS_OK) return status;
  }
  return HIPRESS_OK;
}

hipress_status hipress_wait(hipress_work* work) {
  return guarded([&] {
    const std::unique_ptr<hipress_work> owned(&required(work, "work"));
    owned->work.wait();
  });
}

hipress_status hipress_wait_all(hipress_work** works, size_t count, double seconds, int* done) {
  if (done != nullptr) *done = 0;
  const hipress_status fits = guarded([&] {
    list_of(works, count, "works");
    required(done, "done");
    if (!(seconds >= 0)) {
      throw std::invalid_argument(fmt::format("seconds is {}; give 0 or more", seconds));
    }
  });
  if (fits != HIPRESS_OK) return fits;
  const std::chrono::duration<double> longest(std::min(seconds, transport::kMaxTimeout_s));
  const auto until =
      transport::Clock::now() + std::chrono::duration_cast<transport::Clock::duration>(longest);
  for (std::size_t i = 0; i < count; ++i) {
    if (works[i] != nullptr && !works[i]->work.wait_until(until)) return HIPRESS_OK;
  }
  *done = 1;
  hipress_status first = HIPRESS_OK;
  for (std::size_t i = 0; i < count; ++i) {
    if (works[i] == nullptr) continue;
    if (first == HIPRESS_OK) {
      first = hipress_wait(works[i]);
    } else {
      hipress_release(works[i]);
    }
    works[i] = nullptr;
  }
  return first;
}

int hipress_done(const hipress_work* work) { return work != nullptr && work->work.done() ? 1 : 0; }

void hipress_release(hipress_work* work) { delete work; }

hipress_status hipress_all_finite(const hipress_engine* engine, int* finite) {
  return guarded([&] {
    required(finite, "finite") = required(engine, "engine").engine->all_finite() ? 1 : 0;
  });
}

hipress_status hipress_discard(hipress_engine* engine, const uint32_t* gradients, size_t count) {
  return guarded([&] {
    runtime::Engine& on = *required(engine, "engine").engine;
    if (gradients != nullptr) return on.discard(list_of(gradients, count, "gradients"));
    if (count != 0) throw std::invalid_argument("gradients is null, and count is not 0");
    std::vector<std::uint32_t> all(on.compiled().model.gradients.size());
    std::iota(all.begin(), all.end(), 0u);
    on.discard(all);
  });
}

const char* hipress_notes(const hipress_engine* engine) {
  return engine == nullptr ? "" : engine->notes.c_str();
}

const char* hipress_news(hipress_engine* engine) {
  if (engine == nullptr) return "";
  engine->told = engine->news->take();
  return engine->told.c_str();
}

hipress_status hipress_residuals(hipress_engine* engine, double* squares, size_t count) {
  return guarded([&] {
    runtime::Engine& on = *required(engine, "engine").engine;
    if (const std::size_t known = on.compiled().model.gradients.size(); count != known) {
      throw std::invalid_argument(
          fmt::format("count must be that of the gradients, {}, got {}", known, count));
    }
    std::ranges::copy(on.squared_residuals(), &required(squares, "squares"));
  });
}

hipress_status hipress_take_residual(hipress_engine* engine, uint32_t gradient, float* values,
                                     int64_t elements) {
  return guarded([&] {
    if (elements < 1) throw std::invalid_argument("elements must be those of the gradient");
    required(engine, "engine")
        .engine->take_residual(
            gradient, std::span(&required(values, "values"), static_cast<std::size_t>(elements)));
  });
}

hipress_status hipress_measure_links(hipress_engine* engine, double* bandwidth, double* latency_s) {
  return guarded([&] {
    double& to = required(bandwidth, "bandwidth");
    double& to_s = required(latency_s, "latency_s");
    const hipress_engine& on = required(engine, "engine");
    const runtime::Links links = runtime::measure_links(*on.endpoint, on.timeout_s);
    to = links.bandwidth;
    to_s = links.latency_s;
  });
}

hipress_status hipress_save_state(hipress_engine* engine, const char* path) {
  return guarded([&] { required(engine, "engine").engine->save_state(&required(path, "path")); });
}

hipress_status hipress_load_state(hipress_engine* engine, const char* path) {
  return guarded([&] { required(engine, "engine").engine->load_state(&required(path, "path")); });
}

void hipress_abort(hipress_engine* engine, const char* reason) {
  if (engine == nullptr) return;
  try {
    const int rank = engine->endpoint->rank();
    engine->engine->abort(fmt::format("rank {} ended the job: {}", rank, text_of(reason)));
  } catch (const std::exception&) {
    engine->engine->abort({});  // out of memory: no reason
  }
}

void hipress_close(hipress_engine* engine) { delete engine; }

hipress_status hipress_read_model(const char* path, hipress_model** model) {
  if (model != nullptr) *model = nullptr;
  return guarded([&] {
    hipress_model*& to = required(model, "model");
    auto made = std::make_unique<hipress_model>();
    made->model = models::read_model(&required(path, "path"));
    for (const models::Gradient& gradient : made->model.gradients) {
      made->gradients.push_back({.name = gradient.name.c_str(),
                                 .elements = gradient.elements,
                                 .type = type_of(gradient.dtype),
                                 .dimensions = static_cast<int>(gradient.shape.size()),
                                 .shape = gradient.shape.empty() ? nullptr : gradient.shape.data(),
                                 .ready_s = gradient.ready_s});
    }
    to = made.release();
  });
}

const hipress_gradient* hipress_model_gradients(const hipress_model* model, size_t* count) {
  if (count != nullptr) *count = model == nullptr ? 0 : model->gradients.size();
  return model == nullptr ? nullptr : model->gradients.data();
}

void hipress_free_model(hipress_model* model) { delete model; }

}  // extern "C"
