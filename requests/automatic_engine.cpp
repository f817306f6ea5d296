// Functions of hipress.h that need the planner and the profiler.

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "io/error.hpp"
#include "models/time_options.hpp"
#include "replay/pairs.hpp"
#include "requests/automatic.hpp"
#include "requests/cached_profile.hpp"
#include "runtime/c_interface.hpp"
#include "runtime/hipress.h"

using namespace hipress;

namespace hipress::runtime {

Chosen choose_plan(transport::Endpoint& endpoint, const std::vector<Gradient>& gradients,
                   const hipress_options& options) {
  const auto ranks = static_cast<std::uint32_t>(endpoint.size());
  auto model = std::make_shared<const models::Model>(model_of(gradients));
  if (models::missing_times(*model) == models::MissingTimes::kReady) {
    return {.compiled = compile(gradients, PlanChoice{.nodes = ranks}),
            .note =
                "chosen here: no compression, since without the gradients' ready times "
                "(ready_s) all communication may be hidden"};
  }
  const requests::AutomaticRequest request{.model = std::move(model),
                                           .profile = text_of(options.profile),
                                           .timeout_s = options.timeout_s};
  const requests::AutomaticChoice choice = requests::choose(endpoint, request, {});
  auto compiled = compile(gradients, resolve(choice.taken(), request, ranks));
  for (const std::string& other : endpoint.all_gather(compiled->fingerprint)) {
    if (other == compiled->fingerprint) continue;
    throw io::InputError(
        "the ready times (ready_s) of the ranks' gradients differ, and so do groups of their "
        "messages: give every rank the same, such as those of rank 0");
  }
  return {.compiled = std::move(compiled),
          .note = fmt::format("chosen here: {}; predicted: {}; links: {}", choice.taken().what,
                              choice.prediction(), requests::describe(choice.links))};
}

}  // namespace hipress::runtime

static_assert(HIPRESS_UNDECIDED == static_cast<int>(replay::Verdict::kOpen) &&
              HIPRESS_FASTER == static_cast<int>(replay::Verdict::kFaster) &&
              HIPRESS_NOT_FASTER == static_cast<int>(replay::Verdict::kNotFaster));

extern "C" hipress_status hipress_judge(const double* speedups, std::size_t count,
                                        hipress_verdict* verdict) {
  return runtime::guarded([&] {
    hipress_verdict& to = runtime::required(verdict, "verdict");
    if (count > 0) runtime::required(speedups, "speedups");
    const std::span all(speedups, count);
    for (const double one : all) {
      if (!(one > 0) || std::isinf(one)) {
        throw std::invalid_argument(fmt::format("a speedup is {}; give positive numbers", one));
      }
    }
    to = static_cast<hipress_verdict>(replay::judge(all).verdict);
  });
}

extern "C" hipress_status hipress_cached_profile(const char* algorithms, int ranks, char** path) {
  if (path != nullptr) *path = nullptr;
  return runtime::guarded([&] {
    char*& to = runtime::required(path, "path");
    const std::string list = &runtime::required(algorithms, "algorithms");
    if (ranks < 1) throw std::invalid_argument(fmt::format("ranks is {}; give 1 or more", ranks));
    to = runtime::copy_of(requests::cached_profile_path(list, static_cast<std::uint32_t>(ranks)));
    if (to == nullptr) throw std::bad_alloc();
  });
}
