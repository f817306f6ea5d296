#pragma once

#include <array>
#include <string_view>

/// Headings of fields, which group the options in a tool's help.
namespace hipress::requests::headings {

inline constexpr std::string_view kJob = "The job";
inline constexpr std::string_view kMachines = "The machines";
inline constexpr std::string_view kPlan = "The plan";
inline constexpr std::string_view kSearch = "The search";
inline constexpr std::string_view kBroadcast = "A broadcast";
inline constexpr std::string_view kQuestions = "Questions";
inline constexpr std::string_view kRun = "The run";
inline constexpr std::string_view kOutput = "Output";

/// All headings, in the order of the help.
inline constexpr std::array kAll = {kJob,       kMachines,  kPlan, kSearch,
                                    kBroadcast, kQuestions, kRun,  kOutput};

}  // namespace hipress::requests::headings
