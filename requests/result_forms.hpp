#pragma once

#include <string_view>

#include "io/document.hpp"
#include "requests/record.hpp"

/// Forms of results. To add one, add a row where its record is filled, and a line here and in
/// request.cpp.
namespace hipress::requests {

/// A form of result: the keys of an object that answers a request.
struct ResultForm {
  std::string_view of;  ///< request that it answers, or "error"
  std::string_view title;
  std::string_view when;     ///< sentence that names the requests or commands with this form
  io::Document (*schema)();  ///< schema of the record
};

extern const ResultForm kPlanForm, kBandwidthForm, kHostsForm, kBroadcastForm;
extern const ResultForm kSimulateForm, kChakraForm, kSweepForm, kImportForm;
extern const ResultForm kReplayForm, kProfileForm, kErrorForm;

}  // namespace hipress::requests
