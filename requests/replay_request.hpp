#pragma once

#include <cstdint>
#include <string>

#include "costs/machine_options.hpp"
#include "models/time_options.hpp"
#include "plans/plan_options.hpp"
#include "plans/trust.hpp"
#include "replay/replay.hpp"
#include "requests/field.hpp"
#include "requests/ranks.hpp"
#include "transport/endpoint.hpp"

/// The request "replay"; hipress-exec makes it from its command line.
namespace hipress::requests {

struct ReplayRequest {
  bool automatic = false;  ///< field `auto`: the replay chooses the plan
  std::string input, plan = "none", topology = "PS", algorithm = "onebit", device = "cpu";
  std::uint32_t nnodes = 0;  ///< 0: the launcher's number
  replay::ReplayOptions replay;
  std::string backward = "idle";
  std::string schedule;  ///< empty: the plan YAML's, else ddp
  std::string transport{transport::kDefaultTransport};
  RankOptions ranks{.job = "hipress"};
  costs::MachineOptions machines;  ///< machines to predict for
  models::TimeOptions times;
  std::string network = "fair";
  std::string gradients;  ///< folder; empty: generated gradients
  std::string trace;
  plans::PlanOptions plan_options;
  plans::Trust trust;
  int again = 3;
  bool reprobe = false;
  GivenFields given = {};
};

/// Fields of the request; they point into it.
Fields fields(ReplayRequest& request);

/// Throws io::InputError for a field that does not fit the others, and without a plan.
void refuse_unfit(ReplayRequest request);

}  // namespace hipress::requests
