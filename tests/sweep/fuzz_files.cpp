// Fuzzes the readers of files that users write or other tools produce: models, profiles, clusters,
// plans, specs of sweeps and encoder states. Each must read the file, or throw
// io::InputError or std::invalid_argument.
//
//   build/fuzz/tests/sweep/fuzz_files -max_total_time=600 -max_len=16384 CORPUS
//
// The first byte of an input chooses the kind of file; the rest is its contents.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "costs/cluster.hpp"
#include "costs/profile.hpp"
#include "io/error.hpp"
#include "kernels/codec/state_store.hpp"
#include "models/model.hpp"
#include "plans/plan_file.hpp"
#include "sweep/spec.hpp"
#include "tests/io/temporary_folder.hpp"

namespace {

using namespace hipress;

/// A model for plans, with gradients a, b and c.
const models::Model& model() {
  static const models::Model made = [] {
    models::Model few;
    for (const char* name : {"a", "b", "c"})
      few.gradients.push_back({.name = name, .elements = 640});
    return few;
  }();
  return made;
}

void read(unsigned char what, const std::string& path) {
  static const costs::Profile profile = costs::read_profile("sosp21");
  switch (what % 7) {
    case 0:
      if (models::read_model(path).gradients.empty()) std::abort();
      break;
    case 1:
      costs::read_profile(path);
      break;
    case 2:
      if (costs::read_cluster(path, profile, 0).nodes == 0) std::abort();
      break;
    case 3:
    case 4: {
      const plans::ResolvedPlan plan =
          plans::resolve_plan(path, {.model = model(), .topology = "ps", .nodes = 4});
      if (plan.plan.decisions.size() != model().gradients.size()) std::abort();
      break;
    }
    case 5:
      if (sweep::read_sweep(path).points() < 1) std::abort();
      break;
    default: {
      kernels::StateStore store;
      store.load(path);
      break;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size < 1) return 0;
  static const tests::TemporaryFolder folder;
  // Models that are not YAML and plans of SeCoPa are text files. Their names show it.
  const bool text = data[0] % 7 == 3 || (data[0] % 7 == 0 && data[0] >= 128);
  const std::string path = folder.path(text ? "input.txt" : "input.yaml");
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data) + 1, static_cast<std::streamsize>(size - 1));
  try {
    read(data[0], path);
  } catch (const io::InputError&) {
  } catch (const std::invalid_argument&) {
    // Thrown for bad names and values by libraries that read no files.
  }
  return 0;
}
