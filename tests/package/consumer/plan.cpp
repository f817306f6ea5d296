// Plans VGG19 with the installed package.
#include <iostream>

#include "planner/advice/advice.hpp"

int main() {
  using namespace hipress::planner;
  Request request;
  request.input = "vgg19";
  request.topology = "RING";
  request.nodes = 4;
  request.machines.profile = "v100-100g";
  request.machines.bandwidth = "10Gbps";
  request.evaluations = 20;
  const PreparedRequest prepared(request, PlanForm::kYaml);
  const Advice advice = advise(prepared);
  std::cout << advice.found.plan.decisions.size()
            << " gradients: " << to_string(advice.verdict.answer) << "\n";
}
