#include "sim/message_sizes.hpp"

#include <string>

namespace hipress::sim {

void predict_sizes(const costs::Profile& profile, std::vector<casync::Algorithm>& algorithms) {
  for (casync::Algorithm& algorithm : algorithms) {
    const std::string row = profile.row_of(algorithm.name);
    algorithm.share = row.empty() ? 1 : profile.codecs.at(row).message_share;
  }
}

}  // namespace hipress::sim
