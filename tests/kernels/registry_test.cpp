#include <catch2/catch.hpp>

#include "kernels/codec/algorithm_list.hpp"
#include "tests/kernels/reference.hpp"

namespace hipress::kernels {
namespace {

using Catch::Contains;

TEST_CASE("the registry has the algorithms of the design, with their defaults") {
  CHECK(algorithm_names() ==
        "onebit,tbq,terngrad,dgc,graddrop,int8block,int4block,fp8block,fp4block,fp16,bf16,powersgd,"
        "acpsgd,rsketch,lossless");
  for (const AlgorithmRow& row : algorithms()) {
    INFO(row.name);
    CHECK_FALSE(row.help.empty());
    CHECK(make_codec(row.name)->traits().additive == row.additive);
    for (const Parameter& parameter : row.parameters) {
      CHECK(parameter.least <= parameter.value);
      CHECK(parameter.value <= parameter.most);
      if (parameter.names.empty()) continue;
      CHECK(parameter.least == 0);
      CHECK(parameter.most == static_cast<double>(parameter.names.size()) - 1);
    }
  }
}

TEST_CASE("only the casts ask topologies to divide before they add") {
  for (const AlgorithmRow& row : algorithms()) {
    const bool cast = row.name == "fp16" || row.name == "bf16";
    CHECK(make_codec(row.name)->traits().half_precision == cast);
    CHECK((make_codec(row.name)->traits().message_values != ValueType::kFloat32) == cast);
  }
}

TEST_CASE("parameters are read with spaces, in any order, and only where they differ") {
  using testing::decode;
  using testing::encode;
  const auto tbq = make_codec(" tbq( tau = 2 ) ");
  CHECK(decode(*tbq, encode(*tbq, {3, 1}, 1, nullptr, {}), 2) == std::vector<float>{2, 0});
  CHECK(make_codec("terngrad(b=4)")->encoded_bytes(32) == 16 + 4 * 4);
  CHECK(make_codec("tbq()")->encoded_bytes(32) == make_codec("tbq")->encoded_bytes(32));
}

TEST_CASE("a list of algorithms is split between them, not between their parameters") {
  using Names = std::vector<std::string>;
  CHECK(split_algorithms("fp16") == Names{"fp16"});
  CHECK(split_algorithms("dgc(rho=0.02,momentum=0.9),tbq,a/mine.pse(x=1)") ==
        Names{"dgc(rho=0.02,momentum=0.9)", "tbq", "a/mine.pse(x=1)"});
  CHECK(split_algorithms("") == Names{""});
}

TEST_CASE("an unknown algorithm is answered with those there are") {
  CHECK_THROWS_WITH(
      make_codec("onebyte"),
      Contains("'onebyte'") &&
          Contains("onebit,tbq,terngrad,dgc,graddrop,int8block,int4block,fp8block,fp4block,fp16"));
  CHECK_THROWS_WITH(make_codec("onebitt"), Contains("; did you mean 'onebit'?"));
  CHECK_THROWS_AS(make_codec(""), std::invalid_argument);
  CHECK_THROWS_AS(make_codec("(tau=1)"), std::invalid_argument);
}

TEST_CASE("a parameter out of range is answered with its range") {
  for (const char* text :
       {"tbq(tau=-1)", "tbq(tau=0)", "tbq(tau=nan)", "tbq(tau=inf)", "tbq(tau=1e31)"}) {
    INFO(text);
    CHECK_THROWS_WITH(make_codec(text), Contains("out of range") &&
                                            Contains("tau from 1e-30 to 1e+30 (default 0.5)"));
  }
  for (const char* text : {"terngrad(b=0)", "terngrad(b=9)", "terngrad(b=2.5)"}) {
    INFO(text);
    CHECK_THROWS_WITH(make_codec(text), Contains("out of range") && Contains("whole number") &&
                                            Contains("from 1 to 8 (default 2)"));
  }
}

TEST_CASE("a block that is no multiple of 32 is answered with the nearest that are") {
  CHECK_THROWS_WITH(make_codec("int8block(block=100)"), Contains("block=96 or block=128"));
  CHECK_THROWS_WITH(make_codec("int4block(block=16)"),
                    Contains("out of range") && Contains("block, a whole number, from 32 to 2048"));
}

TEST_CASE("a parameter whose values have names takes these and no numbers") {
  CHECK(make_codec("fp4block( format = e2m1 , block=64)")->encoded_bytes(64) == 32 + 32);
  CHECK(parameter_value("fp4block", "format") == 0);
  CHECK(parameter_value("fp4block(format=e2m1)", "format") == 1);
  CHECK(parameter_value("fp4block(format=e4m3)", "format") == std::nullopt);
  for (const char* text : {"fp4block(format=1)", "fp4block(format=e4m3)", "fp4block(format=)"}) {
    INFO(text);
    CHECK_THROWS_WITH(make_codec(text), Contains("format is e3m0 or e2m1, not") &&
                                            Contains("format, e3m0 or e2m1 (default e3m0); block"));
  }
}

TEST_CASE("text that is no parameter is answered with the parameters") {
  CHECK_THROWS_WITH(make_codec("tbq(rho=1)"), Contains("'rho'") && Contains("tau from"));
  CHECK_THROWS_WITH(make_codec("tbq(tau)"), Contains("name=value"));
  CHECK_THROWS_WITH(make_codec("tbq(tau=x)"), Contains("'x' is not a number"));
  CHECK_THROWS_WITH(make_codec("tbq(tau=)"), Contains("is not a number"));
  CHECK_THROWS_WITH(make_codec("tbq(tau=1"), Contains("')'"));
  CHECK_THROWS_WITH(make_codec("tbq(tau=1,tau=2)"), Contains("twice"));
  CHECK_THROWS_WITH(make_codec("onebit(tau=1)"), Contains("parameters of onebit: none"));
}

#ifndef HIPRESS_HAVE_CUDA
TEST_CASE("a build without CUDA says so") {
  CHECK_THROWS_WITH(make_codec("onebit", Device::kCuda), Contains("HIPRESS_CUDA"));
}
#endif

TEST_CASE("the fastest instruction set is the default") {
  CHECK(best_isa() == available_isas().back());
  CHECK(available_isas().front() == Isa::kScalar);
}

}  // namespace
}  // namespace hipress::kernels
