#pragma once

#include "requests/keys/key.hpp"

/// The forms of results: adding one is one file, a line here and one in keys.cpp.
namespace hipress::requests {

/// What results have where factors are by class of computation (mix_document.hpp).
inline constexpr ResultKey kMixKeys[] = {
    {"mix", "object", "Shares of classes in the computation, where factors are by class",
     Presence::kSometimes},
    {"mix.*", "number", "A share from 0 to 1"},
    {"mix_assumed", "boolean", "Whether the model has no mix, so that one was assumed",
     Presence::kSometimes},
};

extern const ResultForm kPlanForm, kBandwidthForm, kBroadcastForm;
extern const ResultForm kSimulateForm, kChakraForm, kSweepForm, kImportForm;
extern const ResultForm kReplayForm, kProfileForm, kErrorForm;

}  // namespace hipress::requests
