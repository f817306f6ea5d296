#include "costs/profile.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "costs/assumed_spread.hpp"
#include "costs/stage_yaml.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "tests/io/temporary_folder.hpp"

namespace hipress::costs {
namespace {

using Catch::Contains;
using tests::TemporaryFolder;

/// Profile with every field set, to numbers that no short decimal represents.
Profile example_profile() {
  Profile profile;
  profile.name = "example: of #everything";
  profile.source = "measured";
  profile.hardware = "two cores, \"quoted\"";
  profile.device = "cpu";
  profile.memory_bandwidth = 1e10 / 3;
  profile.kernels_measured_at = 1e10 / 7;
  profile.overlap = {1.1, 1 + 1.0 / 3, 2};
  profile.cores = 2;
  profile.core_turn_s = 1.5e-3;
  profile.shared_host = true;
  const Curve two_pieces = {{{0, 1e-6 / 3, 1e-10 / 7}, {1234.5, -1e-8 / 3, 2e-10 / 7}}, 1e-7 / 3};
  profile.codecs["onebit"] = {two_pieces, {{{0, 5e-6, 0}}, 0}, {{{0, 0, 1e-9}}, 0}, 1 + 1.0 / 7};
  profile.codecs["fp16"] = {two_pieces, two_pieces, two_pieces};
  profile.codecs["lossless"] = {two_pieces, two_pieces, two_pieces, 1, 2.0 / 3};
  profile.codecs["in_stages"].stages = {{1e-5 / 3, 1e-10 / 7, 1e-11 / 3, 1e-9 / 7, 1e-10 / 9},
                                        {1e-5 / 7, 0, 1e-12 / 3, 0, 0}};
  profile.codecs["in_stages"].decode_stages = {0, 1e-9 / 11, 0, 0, 1e-12 / 13};
  profile.merge = {{{0, 0, 1e-10 / 9}}, 0};
  profile.link = {1e-4 / 3, 1e9 / 7, 1e9 / 11, 1e-5 / 7, 1e-10 / 3, 1e-6 / 11, 98305};
  profile.link_rate = 1e9 / 3;
  profile.fan_in[4] = two_pieces;
  profile.fan_out[16] = {{{0, 1e-3 / 7, 1e-9 / 7}}, 0};
  profile.all_reduce[3] = {{{0, 1e-3 / 9, 1e-9 / 11}}, 1e-6};
  profile.all_gather[4] = two_pieces;
  profile.reduce_scatter[8] = {{{0, 1e-3 / 7, 1e-9 / 13}}, 0};
  profile.all_to_all[4] = {{{0, 1e-3 / 11, 1e-9 / 13}}, 0};
  profile.spread = Spread{0.1 / 3, 0.2 / 3, 0.1 / 7, 0.2 / 7, 0.1 / 9};
  profile.probes = {1e10 / 7, 1e9 / 3, 1e8 / 9};
  profile.notes = {"first", "second: with - marks"};
  profile.samples = {{"onebit.encode", {{1024, 1e-6 / 3, 1e-6 / 7, 1e-6, 12}}, 0.1 / 3, 0.2 / 3},
                     {"onebit.decode", {{1024, 1e-6 / 3, 1e-6 / 7, 1e-6, 12, 1e-6 / 9}}, 0.1, 0.2}};
  return profile;
}

/// A profile as users write it by hand. Tests spoil one line of it.
const char* const kGood = R"(schema: hipress.profile/1
name: tiny
source: by hand
hardware:
  name: a machine
  device: cpu
  memory_bandwidth: 10GB/s
kernels:
  merge:
    pieces:
      - {from: 0, a_s: 1e-6, s_per_element: 1e-9}
  codecs:
    onebit:
      encode: {pieces: [{from: 0, a_s: 1e-6, s_per_element: 1e-9}]}
      decode: {pieces: [{from: 0, a_s: 1e-6, s_per_element: 1e-9}]}
      decode_add: {pieces: [{from: 0, a_s: 1e-6, s_per_element: 1e-9}]}
links:
  overhead: 5us
  bandwidth: 100Gbps
  latency: 10us
...
)";

/// Error message of read_profile() for kGood with `from` replaced by `to`.
std::string refusal(const std::string& from, const std::string& to) {
  const TemporaryFolder folder;
  std::string text = kGood;
  const std::size_t position = text.find(from);
  REQUIRE(position != std::string::npos);
  text.replace(position, from.size(), to);
  std::ofstream(folder.path("bad.yaml")) << text;
  try {
    read_profile(folder.path("bad.yaml"));
  } catch (const io::InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("a profile is read back as it was written, to the last bit") {
  const TemporaryFolder folder;
  const Profile written = example_profile();
  write_profile(folder.path("p.yaml"), written);
  Profile read = read_profile(folder.path("p.yaml"));
  CHECK(read.fingerprint == io::fingerprint(io::read_file(folder.path("p.yaml"))));
  read.fingerprint = written.fingerprint;
  CHECK(read == written);
}

TEST_CASE("a profile that could not be read back is not written, and the key is named") {
  const TemporaryFolder folder;
  const std::string path = folder.path("p.yaml");
  write_profile(path, example_profile());
  const std::string before = io::read_file(path);
  const auto refused = [&](auto spoil, const std::string& key) {
    Profile profile = example_profile();
    spoil(profile);
    CAPTURE(key);
    CHECK_THROWS_AS(write_profile(path, profile), io::InputError);
    CHECK_THROWS_WITH(write_profile(path, profile), Contains("p.yaml:") && Contains(key));
    CHECK(io::read_file(path) == before);
  };
  refused([](Profile& p) { p.link.core_s_per_byte = -1e-12; }, "core_s_per_byte");
  refused([](Profile& p) { p.link.core_factor_interrupting = 0.9; }, "core_factor_interrupting");
  refused([](Profile& p) { p.codecs["onebit"].encode_factor_quotients = 0.9; },
          "encode_factor_quotients");
  refused([](Profile& p) { p.codecs["onebit"].message_share = 0; }, "message_share");
  refused([](Profile& p) { p.codecs["onebit"].message_share = 1.1; }, "message_share");
  refused([](Profile& p) { p.codecs["in_stages"].stages[1].per_value_s = -1e-12; }, "s_per_value");
  refused([](Profile& p) { p.codecs["in_stages"].decode_stages.a_s = std::nan(""); }, "decode.a_s");
  refused([](Profile& p) { p.codecs["onebit"] = p.codecs["in_stages"]; }, "onebit.stages");
  refused([](Profile& p) { p.link.bandwidth = -1e9; }, "links.bandwidth");
  refused([](Profile& p) { p.link.bandwidth = 0; }, "links.bandwidth");
  refused([](Profile& p) { p.link.bandwidth_both_ways = 2 * p.link.bandwidth; }, "both_ways");
  refused([](Profile& p) { p.link_rate = p.link.bandwidth / 2; }, "links.rate");
  refused([](Profile& p) { p.link.latency_s = -1e-6; }, "links.latency");
  refused([](Profile& p) { p.link.overhead_s = std::nan(""); }, "links.overhead");
  refused([](Profile& p) { p.merge.pieces[0].b_s = -1e-9; }, "s_per_element");
}

TEST_CASE("writing what was read gives the same file") {
  const TemporaryFolder folder;
  write_profile(folder.path("first.yaml"), example_profile());
  write_profile(folder.path("second.yaml"), read_profile(folder.path("first.yaml")));
  CHECK(io::read_file(folder.path("first.yaml")) == io::read_file(folder.path("second.yaml")));
}

TEST_CASE("what a profile leaves out has the value that docs/profiles.md states") {
  const TemporaryFolder folder;
  std::ofstream(folder.path("tiny.yaml")) << kGood;
  const Profile profile = read_profile(folder.path("tiny.yaml"));
  CHECK(profile.link.bandwidth == 12.5e9);            // 100 Gbit/s / 8
  CHECK(profile.link.bandwidth_both_ways == 12.5e9);  // full duplex by default
  CHECK(profile.link_rate == 0);
  CHECK(profile.link.core_s_per_byte == 0);
  CHECK(profile.link.core_factor_interrupting == 1);
  CHECK(profile.link.burst_bytes == 0);
  CHECK(profile.cores == 0);
  CHECK_FALSE(profile.shared_host);
  CHECK(profile.fan_in.empty());
}

TEST_CASE("an algorithm costs what was measured with its parameters, or else with any") {
  Profile profile = example_profile();
  CHECK(profile.codec("onebit(x=1)") == profile.codec("onebit"));
  profile.codecs["a/mine.pse(x=1)"] = profile.codec("onebit");
  profile.codecs["a/mine.pse(x=2)"] = profile.codec("fp16");
  CHECK(profile.codec("a/mine.pse(x=2)") == profile.codec("fp16"));
  CHECK(profile.codec("a/mine.pse") == profile.codec("onebit"));
  CHECK_FALSE(profile.codec("onebit") == profile.codec("fp16"));
}

TEST_CASE("the profile names its algorithms when asked for another") {
  CHECK_THROWS_WITH(example_profile().codec("dgc"),
                    Contains("'dgc'") && Contains("fp16, in_stages, lossless, onebit"));
}

TEST_CASE("a profile that says how kernels are estimated has costs of all slices' algorithms") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& estimate) {
    std::string text = kGood;
    text.replace(text.find("kernels:\n"), 9, "kernels:\n  estimate: " + estimate + "\n");
    std::ofstream(folder.path("p.yaml")) << text;
    return read_profile(folder.path("p.yaml"));
  };
  const Profile profile = read("{share_of_memory: 0.5, first_launch: 8us, next_launch: 3us}");
  CHECK(profile.codec("onebit").encode(1 << 20) ==
        Approx(1e-6 + 1e-9 * (1 << 20)));  // from its row
  // 8.25 bytes per element at half of 10 GB/s, and three launches.
  CHECK(profile.codec("terngrad(b=4)").encode(1 << 20) ==
        Approx(8e-6 + 2 * 3e-6 + 8.25 * (1 << 20) / 5e9));
  CHECK(profile.codec("fp8block").decode(0) == Approx(8e-6));
  CHECK_THROWS_WITH(profile.codec("powersgd"), Contains("has no costs of algorithm"));
  CHECK_THROWS_WITH(profile.codec("x.pse"), Contains("has no costs of algorithm"));
  write_profile(folder.path("written.yaml"), profile);
  Profile again = read_profile(folder.path("written.yaml"));
  again.fingerprint = profile.fingerprint;
  CHECK(again == profile);

  CHECK_THROWS_WITH(read("{share_of_memory: 0, first_launch: 1us, next_launch: 1us}"),
                    Contains("a share of the memory bandwidth"));
  CHECK_THROWS_WITH(read("{share_of_memory: 1, first_launch: 1us}"), Contains("next_launch"));
}

TEST_CASE("a profile that is not there, or has no contents, is refused") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(read_profile(folder.path("absent.yaml")), Contains("absent.yaml"));
  CHECK_THROWS_WITH(read_profile("no_such_profile"), Contains("no_such_profile") &&
                                                         Contains("sosp21") &&
                                                         Contains("hipress-profile"));
  std::ofstream(folder.path("empty.yaml")) << "";
  CHECK_THROWS_WITH(read_profile(folder.path("empty.yaml")), Contains("empty.yaml"));
  std::ofstream(folder.path("binary.yaml")) << std::string("\x7f\x45\x4c\x46\x00\x01", 6);
  CHECK_THROWS_AS(read_profile(folder.path("binary.yaml")), io::InputError);
}

TEST_CASE("a profile that was cut short is refused, wherever the cut is", "[slow]") {
  const TemporaryFolder folder;
  const std::string whole = kGood;
  // The last byte is the newline after the end marker. It may be missing.
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
    std::ofstream(folder.path("cut.yaml")) << whole.substr(0, length);
    CAPTURE(length);
    CHECK_THROWS_AS(read_profile(folder.path("cut.yaml")), io::InputError);
  }
}

TEST_CASE("a profile's faults are named with file, line and remedy") {
  SECTION("other schema") {
    CHECK_THAT(
        refusal("hipress.profile/1", "hipress.profile/2"),
        Contains("bad.yaml:1") && Contains("hipress.profile/1") && Contains("hipress-profile"));
  }
  SECTION("no schema") {
    CHECK_THAT(refusal("schema: hipress.profile/1\n", ""), Contains("schema"));
  }
  SECTION("unknown key, and the one that was meant") {
    CHECK_THAT(refusal("bandwidth: 100Gbps", "bandwith: 100Gbps"),
               Contains("bad.yaml:19") && Contains("bandwith") && Contains("bandwidth"));
  }
  SECTION("missing key") { CHECK_THAT(refusal("  latency: 10us\n", ""), Contains("latency")); }
  SECTION("missing unit") {
    CHECK_THAT(refusal("100Gbps", "100"),
               Contains("bad.yaml:19") && Contains("links.bandwidth") && Contains("Gbps"));
    CHECK_THAT(refusal("overhead: 5us", "overhead: 5"), Contains("bad.yaml:18") && Contains("us"));
  }
  SECTION("negative") {
    CHECK_THAT(refusal("latency: 10us", "latency: -10us"), Contains("bad.yaml:20"));
    CHECK_THAT(refusal("a_s: 1e-6, s_per_element: 1e-9", "a_s: 1e-6, s_per_element: -1e-9"),
               Contains("bad.yaml:11") && Contains("s_per_element") && Contains("0 to 1"));
  }
  SECTION("negative time") {
    CHECK_THAT(refusal("- {from: 0, a_s: 1e-6", "- {from: 0, a_s: -1e-6"),
               Contains("bad.yaml:11") && Contains("a_s"));
    // The piece begins with −1 us + 1 ns · 100 = −0.9 us.
    CHECK_THAT(
        refusal("s_per_element: 1e-9}\n",
                "s_per_element: 1e-9}\n      - {from: 100, a_s: -1e-6, s_per_element: 1e-9}\n"),
        Contains("bad.yaml:12") && Contains("negative time"));
  }
  SECTION("not a number") {
    CHECK_THAT(refusal("a_s: 1e-6, s_per_element: 1e-9", "a_s: 1e-6, s_per_element: .nan"),
               Contains("bad.yaml:11"));
    CHECK_THAT(refusal("overhead: 5us", "overhead: nan us"), Contains("bad.yaml:18"));
    CHECK_THAT(refusal("overhead: 5us", "overhead: infs"), Contains("bad.yaml:18"));
  }
  SECTION("zero bandwidth") {
    CHECK_THAT(refusal("100Gbps", "0Gbps"), Contains("bad.yaml:19") && Contains("positive"));
  }
  SECTION("both ways faster than one way") {
    CHECK_THAT(refusal("bandwidth: 100Gbps", "bandwidth: 100Gbps\n  bandwidth_both_ways: 101Gbps"),
               Contains("bad.yaml:20"));
  }
  SECTION("unknown device") {
    CHECK_THAT(refusal("device: cpu", "device: tpu"), Contains("bad.yaml:6") && Contains("cuda"));
  }
  SECTION("pieces out of order") {
    CHECK_THAT(refusal("- {from: 0, a_s: 1e-6, s_per_element: 1e-9}",
                       "- {from: 9, a_s: 1e-6, s_per_element: 1e-9}\n"
                       "      - {from: 8, a_s: 1e-6, s_per_element: 1e-9}"),
               Contains("bad.yaml:12") && Contains("increasing"));
  }
  SECTION("impossible number of nodes") {
    CHECK_THAT(refusal("latency: 10us", "latency: 10us\n  fan_in: {one: {pieces: []}}"),
               Contains("bad.yaml:21") && Contains("one"));
  }
}

/// Text to insert into kGood: an algorithm with two stages and the decode, which is line 17.
const std::string kStages = "    onebit:\n      encode:",
                  kWithStages =
                      "    in_stages:\n"
                      "      stages:\n"
                      "        - {a_s: 2e-5, s_per_element: 1e-9, s_per_value: 3e-9}\n"
                      "        - {a_s: 1e-5, s_per_element_rank: 2e-10, s_per_value_rank: 1e-10}\n"
                      "      decode: {a_s: 1e-6}\n" +
                      kStages;

TEST_CASE("stages of an algorithm are read, and what they leave out costs nothing") {
  const TemporaryFolder folder;
  std::string text = kGood;
  text.replace(text.find(kStages), kStages.size(), kWithStages);
  std::ofstream(folder.path("staged.yaml")) << text;
  const CodecCosts costs = read_profile(folder.path("staged.yaml")).codec("in_stages");
  CHECK(costs.stages ==
        std::vector<StageCosts>{{2e-5, 1e-9, 0, 3e-9, 0}, {1e-5, 0, 2e-10, 0, 1e-10}});
  CHECK(costs.decode_stages == StageCosts{1e-6, 0, 0, 0, 0});
  CHECK(costs.encode.pieces.empty());
  CHECK(read_profile(folder.path("staged.yaml")).codec("onebit").stages.empty());
}

TEST_CASE("faults of stages are named with file, line and remedy") {
  const auto spoilt = [](const std::string& from, const std::string& to) {
    std::string text = kWithStages;
    const std::size_t position = text.find(from);
    REQUIRE(position != std::string::npos);
    text.replace(position, from.size(), to);
    return refusal(kStages, text);
  };
  CHECK_THAT(spoilt("s_per_value: 3e-9", "s_per_value: -3e-9"),
             Contains("bad.yaml:15") && Contains("stages[0].s_per_value: must be 0 to 1"));
  CHECK_THAT(spoilt("a_s: 1e-6", "a_s: -1e-6"), Contains("bad.yaml:17") && Contains("decode.a_s"));
  CHECK_THAT(spoilt("a_s: 1e-5", "a_s: .inf"), Contains("bad.yaml:16"));
  CHECK_THAT(spoilt("a_s: 1e-6", ""), Contains("bad.yaml:17") && Contains("a_s"));
  CHECK_THAT(spoilt("s_per_element_rank", "s_per_elements_rank"),
             Contains("bad.yaml:16") && Contains("s_per_element_rank"));
  CHECK_THAT(spoilt("      decode: {a_s: 1e-6}\n", ""), Contains("decode"));
  CHECK_THAT(spoilt("      decode: {a_s: 1e-6}\n",
                    "      decode: {a_s: 1e-6}\n      decode_add: {pieces: []}\n"),
             Contains("bad.yaml:18") && Contains("give 'decode' alone"));
  // A known algorithm must have as many stages as its codec.
  CHECK_THAT(spoilt("in_stages", "tbq(tau=0.25)"), Contains("bad.yaml:14") &&
                                                       Contains("tbq(tau=0.25) has no stages") &&
                                                       Contains("'encode'"));
  CHECK_THAT(refusal(kStages, "    in_stages: {stages: [], decode: {a_s: 1}}\n" + kStages),
             Contains("bad.yaml:13") && Contains("got none"));
}

TEST_CASE("costs have as many stages as the codec") {
  const kernels::CodecTraits two = {.additive = true, .stages = 2}, none = {};
  CHECK(complaint_about_stages("lowrank", two, 2).empty());
  CHECK(complaint_about_stages("onebit", none, 0).empty());
  CHECK_THAT(complaint_about_stages("lowrank", two, 3),
             Contains("2 entries, one per stage of lowrank, got 3") &&
                 Contains("hipress-profile `algorithm` 'lowrank'"));
  CHECK_THAT(complaint_about_stages("lowrank", two, 0), Contains("give 2 'stages' and 'decode'"));
  CHECK_THAT(complaint_about_stages("onebit", none, 1), Contains("'decode_add' instead"));
  for (const kernels::AlgorithmRow& row : kernels::algorithms()) {
    if (!row.additive) continue;
    CAPTURE(row.name);
    CHECK_THAT(refusal("onebit:", std::string(row.name) + ":"),
               Contains("bad.yaml:13") && Contains("staged algorithm"));
  }
}

TEST_CASE("costs that are multiplied are so in every curve and stage") {
  Profile profile = example_profile();
  const CodecCosts& curves = profile.codecs["fp16"];
  CHECK(curves.times(3).encode == curves.encode.times(3));
  CHECK(curves.times(3, 2).decode == curves.decode.times(2));
  CHECK(curves.times(3, 2).decode_add == curves.decode_add.times(2));
  const CodecCosts& stages = profile.codecs["in_stages"];
  CHECK(stages.times(3, 2).stages[1] == stages.stages[1].times(3));
  CHECK(stages.times(3, 2).decode_stages == stages.decode_stages.times(2));
  CHECK(stages.times(1) == stages);
}

TEST_CASE("a profile without a spread has one by where its costs are from") {
  Profile profile = example_profile();
  CHECK(spread_of(profile) == *profile.spread);
  profile.spread.reset();
  const Spread measured = spread_of(profile);
  profile.source = "estimated";
  CHECK(spread_of(profile).host > measured.host);
  CHECK(spread_of(profile).links > measured.links);
}

}  // namespace
}  // namespace hipress::costs
