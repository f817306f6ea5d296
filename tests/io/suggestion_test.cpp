#include "io/suggestion.hpp"

#include <catch2/catch.hpp>
#include <string_view>

using namespace hipress::io;

TEST_CASE("the nearest known word is proposed, nonsense is not") {
  constexpr std::string_view kKnown[] = {"bandwidth", "latency", "overhead"};
  CHECK(nearest("bandwith", kKnown) == "bandwidth");  // one letter missing
  CHECK(nearest("latncey", kKnown) == "latency");
  CHECK(nearest("Overhead", kKnown) == "overhead");
  CHECK(nearest("band", kKnown) == "bandwidth");  // its beginning
  CHECK(nearest("colour", kKnown).empty());
  CHECK(nearest("", kKnown).empty());
  CHECK(suggestion("bandwith", kKnown) ==
        "; did you mean 'bandwidth'? (known: bandwidth, latency, overhead)");
  CHECK(suggestion("xyz", kKnown) == " (known: bandwidth, latency, overhead)");
  CHECK(before_known("bandwith", kKnown) == "; did you mean 'bandwidth'? ");
  CHECK(before_known("xyz", kKnown) == "; ");
}

TEST_CASE("two letters that were swapped are one edit, case and hyphens none") {
  constexpr std::string_view kSchedules[] = {"ddp", "local", "fsdp", "hsdp"};
  // From fdsp, fsdp is one swap away, ddp two edits.
  CHECK(nearest("fdsp", kSchedules) == "fsdp");
  CHECK(nearest("loacl", kSchedules) == "local");
  constexpr std::string_view kProfiles[] = {"a100-100g", "h100-100g", "v100-100g"};
  // a100-100g is one replacement away, but v100-100g is equal.
  CHECK(nearest("v100-100g", kProfiles) == "v100-100g");
  CHECK(nearest("V100_100G", kProfiles) == "v100-100g");
  CHECK(nearest("a100_100g", kProfiles) == "a100-100g");
  constexpr std::string_view kFields[] = {"gpu_bandwidth", "gpus_per_node", "nnodes"};
  CHECK(nearest("gpus-per-node", kFields) == "gpus_per_node");
  CHECK(nearest("GPU-band", kFields) == "gpu_bandwidth");  // its beginning
  // gh200 has distance 1. In the other two, h200 follows a hyphen: 0.75. The first of them wins.
  constexpr std::string_view kMachines[] = {"gh200", "hgx-h200", "nd-h200-v5"};
  CHECK(nearest("H200", kMachines) == "hgx-h200");
  CHECK(nearest("100", kMachines).empty());
  // cab takes two edits, as only neighbours swap. Three would match any word of three letters.
  constexpr std::string_view kOther[] = {"abc"};
  CHECK(nearest("cab", kOther) == "abc");
  CHECK(nearest("xyz", kOther).empty());
}

TEST_CASE("a value that is none of the words is refused with the nearest") {
  constexpr std::string_view kWords[] = {"cpu", "cuda"};
  CHECK(none_of("cdua", kWords) == "must be one of cpu, cuda, got 'cdua'; did you mean 'cuda'?");
  CHECK(none_of("tpux9", kWords) == "must be one of cpu, cuda, got 'tpux9'");
}

TEST_CASE("a word of few letters is not taken for another that shares none") {
  constexpr std::string_view kKnown[] = {"ps", "ring"};
  CHECK(nearest("pz", kKnown) == "ps");
  CHECK(nearest("xy", kKnown).empty());  // replacing both letters is no match
}
