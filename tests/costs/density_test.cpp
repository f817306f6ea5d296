#include "costs/density.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "costs/description.hpp"

namespace hipress::costs {
namespace {

/// Encodes of 1000 elements or more cost `encode_ps` per element, smaller ones nothing.
CodecCosts costs_of(double encode_ps) {
  CodecCosts costs;
  costs.encode = {{{.from = 0}, {.from = 1000, .b_s = encode_ps * 1e-12}}};
  costs.decode = {{{.a_s = encode_ps * 1e-6}}};
  costs.decode_add = {{{.b_s = 1e-12}}, encode_ps * 1e-9};
  return costs;
}

Profile profile() {
  Profile profile;
  profile.name = "mine";
  profile.codecs["dgc(rho=0.02)"] = costs_of(2);
  profile.codecs["dgc(rho=0.1)"] = costs_of(10);
  profile.codecs["dgc(rho=0.1,packing=2)"] = costs_of(50);
  profile.codecs["graddrop"] = costs_of(7);
  profile.codecs["onebit"] = costs_of(1);
  return profile;
}

TEST_CASE("between two measured densities, costs are in proportion") {
  const Profile of = profile();
  const std::string said = foreign_costs(of, "dgc(rho=0.04)");
  CHECK(said.find("in proportion between dgc(rho=0.02) and dgc(rho=0.1)") != std::string::npos);
  CHECK(said.find("hipress-profile") != std::string::npos);
  const CodecCosts costs = of.codec("dgc(rho=0.04)");
  CHECK(costs.encode(500) == 0);
  CHECK(costs.encode(1'000'000) == Approx(4e-6));
  CHECK(costs.decode(5) == Approx(4e-6));
  CHECK(costs.decode_add(1) == Approx(4e-9));
  CHECK(of.row_of("dgc(rho=0.04)") == "dgc(rho=0.02)");
  CHECK(of.row_of("dgc(rho=0.09)") == "dgc(rho=0.1)");
}

TEST_CASE("beyond all measured densities, costs are those of the nearest") {
  const Profile of = profile();
  for (const auto& [asked, row] :
       {std::pair("dgc(rho=0.001)", "dgc(rho=0.02)"), std::pair("dgc(rho=0.5)", "dgc(rho=0.1)"),
        std::pair("dgc(packing=2,rho=0.5)", "dgc(rho=0.1,packing=2)"),
        std::pair("graddrop(rho=0.2)", "graddrop")}) {
    CAPTURE(asked);
    CHECK(foreign_costs(of, asked).find(std::string("is charged the cost of ") + row + ",") !=
          std::string::npos);
    CHECK(of.codec(asked) == of.codec(row));
  }
  CHECK(foreign_costs(of, "graddrop(rho=0.01)").empty());  // the default rho, written out
  CHECK(of.codec("graddrop(rho=0.01)") == of.codec("graddrop"));
}

TEST_CASE("what has no density, or no costs with the same other parameters, is charged as ever") {
  const Profile of = profile();
  for (const std::string algorithm : {"onebit", "dgc(rho=0.05,packing=1)", "nothing(rho=x)"}) {
    CHECK_FALSE(density_rows(of, algorithm).has_value());
  }
  CHECK(of.row_of("dgc(rho=0.05,packing=1)") == "dgc(rho=0.02)");
  CHECK_THROWS(of.codec("fp16"));
}

TEST_CASE("a curve between two has the pieces of both") {
  const Curve a = {{{0, 1, 0}, {10, 0, 1}}, 0}, b = {{{0, 3, 0}, {20, 0, 2}}, 0};
  const Curve middle = between(a, b, 0.5);
  for (const double x : {0.0, 5.0, 10.0, 15.0, 20.0, 50.0}) {
    CHECK(middle.at(x) == Approx((a.at(x) + b.at(x)) / 2));
  }
  CHECK(between(a, b, 0).at(15) == a.at(15));
  CHECK(between(a, b, 1).at(15) == b.at(15));
  CHECK(between(a, Curve{}, 0.5).at(15) == Approx(a.at(15) / 2));
  // Floors are interpolated on their own.
  CHECK(between(Curve{{{0, 0, 0}}, 10}, Curve{{{0, 20, 0}}, 0}, 0.5).at(0) == 10);
}

}  // namespace
}  // namespace hipress::costs
