#pragma once

#include <cstdint>
#include <string_view>

/// Field numbers and values of Chakra's messages: schema/protobuf/et_def.proto of mlcommons/chakra.
namespace hipress::traces::chakra {

enum MetadataField : std::uint32_t { kVersion = 1, kMetadataAttribute = 2 };

enum NodeField : std::uint32_t {
  kId = 1,
  kName = 2,
  kType = 3,
  kControlDependencies = 4,
  kDataDependencies = 5,
  kStartMicroseconds = 6,
  kLengthMicroseconds = 7,
  kInputs = 8,
  kAttribute = 10,
};

enum InputsField : std::uint32_t { kValues = 1, kShapes = 2, kTypes = 3 };

enum AttributeField : std::uint32_t {
  kAttributeName = 1,
  kInteger = 9,
  kIntegers = 10,
  kBoolean = 27,
  kText = 29,
  kTexts = 30,
};
/// Number of the field that holds the values of a list message.
inline constexpr std::uint32_t kListValues = 1;

enum NodeType : std::uint64_t {
  kMetadataNode = 1,
  kComputation = 4,
  kSendNode = 5,
  kReceiveNode = 6,
  kCollectiveNode = 7,
};

/// Values of the attribute comm_type. kCollectiveNames has a name for each value.
inline constexpr std::uint64_t kAllReduceType = 0, kReduceScatterType = 7;
inline constexpr std::string_view kCollectiveNames[] = {
    "all-reduce", "reduce",     "all-gather",     "gather",         "scatter",
    "broadcast",  "all-to-all", "reduce-scatter", "reduce-scatter", "barrier"};

/// Attribute of GlobalMetadata that marks exports of HiPress.
inline constexpr char kOurGraph[] = "hipress_graph";

}  // namespace hipress::traces::chakra
