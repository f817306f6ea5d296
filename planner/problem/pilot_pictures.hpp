#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// Data of a pilot's file for pictures; plans do not depend on it.
namespace hipress::planner {

/// Point of a smoothed loss curve.
struct LossPoint {
  std::int64_t step = 0;
  double loss = 0;
};

struct PilotPictures {
  std::vector<LossPoint> curve;  ///< DDP's losses; empty for files of earlier versions
  /// Relative errors of encoders without residuals, by algorithm and gradient: the root mean square
  /// over the steps at which the pilot measured them.
  std::map<std::string, std::map<std::string, double>> errors;
};

/// Reads the pictures of a pilot's file, for which read_pilot() has succeeded.
PilotPictures read_pilot_pictures(const std::string& path);

}  // namespace hipress::planner
