#include "requests/report.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <initializer_list>
#include <string>

#include "costs/starter_profile.hpp"
#include "io/error.hpp"
#include "io/file.hpp"
#include "requests/request.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace hipress;
using io::Document;
using requests::answer;

namespace {

/// A request whose plan is made quickly.
Document plan_request(const std::string& input = "vgg19", int nodes = 4) {
  return {{"request", "plan"}, {"input", input},  {"profile", "v100-100g"},
          {"topology", "PS"},  {"nnodes", nodes}, {"evaluations", 20},
          {"jobs", 1},         {"seed", 1}};
}

/// Data that the page's script reads.
Document data_of(const std::string& page) {
  const std::string open = R"(<script type="application/json" id="data">)";
  const std::size_t begin = page.find(open) + open.size();
  return Document::parse(page.substr(begin, page.find("</script>", begin) - begin), "page");
}

const Document& at(const Document& document, const std::string& name) {
  const Document* const found = document.find(name);
  REQUIRE(found != nullptr);
  return *found;
}

/// Writes a model whose gradients have different sizes. Their names are `name` and a number.
void write_model(const std::string& path, int gradients, const std::string& name) {
  std::ofstream file(path);
  for (int g = 0; g < gradients; ++g) file << name << g << ',' << 1000 + 7919 * (g % 97) << '\n';
}

std::string message_of(const Document& request) {
  try {
    answer(request, {});
  } catch (const io::InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a page has the numbers of the result, all of them") {
  Document request = plan_request();
  request["page"] = true;
  Document result = answer(request, {});
  const Document data = data_of(*at(result, "page").text());
  const Document& plan = at(data, "plan");
  std::size_t compared = 0;
  for (const Document::Member& member : *result.members()) {
    if (member.name == "page") continue;
    INFO(member.name);
    CHECK(at(plan, member.name).print() == member.value.print());
    ++compared;
  }
  CHECK(compared > 15);
  CHECK(at(data, "timeline").find("iteration_s")->number() ==
        result.find("predicted_iteration_s")->number());
}

TEST_CASE("the page says how nodes and GPUs are arranged") {
  const tests::TemporaryFolder folder;
  const auto title_with = [&](const char* keys) {
    std::ofstream(folder.path("cluster.yaml")) << "nodes: 4\n" << keys;
    Document request = plan_request();
    request["page"] = true;
    request["cluster"] = folder.path("cluster.yaml");
    const std::string page = *at(answer(request, {}), "page").text();
    const std::size_t begin = page.find("<h1>") + 4;
    return page.substr(begin, page.find("</h1>") - begin);
  };
  CHECK(title_with("") == "vgg19 on 4 nodes");
  CHECK(title_with("gpus_per_node: 8\ngpu_link: {bandwidth: 100GB/s}\n") ==
        "vgg19 on 4 nodes of 8 GPUs");
  CHECK(title_with("nodes_per_host: 2\nhost_link: {bandwidth: 100Gbps}\n") ==
        "vgg19 on 4 nodes, 2 on each host");
}

TEST_CASE("a spread of runs is called measured only where it was") {
  const tests::TemporaryFolder folder;
  write_model(folder.path("m.csv"), 4, "g");
  const auto said_of = [&](const std::string& profile) {
    Document request = plan_request(folder.path("m.csv"));
    request["page"] = true;
    request["profile"] = profile;
    const Document data = data_of(*at(answer(request, {}), "page").text());
    return *at(at(at(data, "about"), "profile"), "spread_in_words").text();
  };
  /// Writes a shipped or starter profile with another source. Returns its file.
  const auto with_source = [&](const std::string& name, const std::string& source) {
    std::string text = costs::starter_profile(name).value_or("");
    if (text.empty()) text = io::read_file(io::data_file("profiler/profiles/" + name + ".yaml"));
    const std::size_t begin = text.find("\nsource: ") + 9, end = text.find("\nnotes:", begin);
    std::ofstream(folder.path("p.yaml")) << text.replace(begin, end - begin, source);
    return folder.path("p.yaml");
  };
  CHECK(said_of("h100-100g") ==
        "from a spread of runs that the profile assumes (it is estimated, not measured)");
  CHECK(said_of("sosp21") ==
        "from an assumed spread of runs, a wide one, since the costs are published, not measured");
  CHECK(said_of(with_source("h100-100g", "measured")) == "from the measured spread of runs");
  CHECK(said_of(with_source("h100-100g", "not measured")) ==
        "from a spread of runs that the profile assumes (it is of own making, not measured)");
  CHECK(said_of(with_source("sosp21", "measured")) ==
        "from an assumed spread of runs, since the profile states none");
}

TEST_CASE("the page is written to the file that is asked for, beside the plan") {
  const tests::TemporaryFolder folder;
  Document request = plan_request();
  request["output"] = folder.path("plan.yaml");
  request["report"] = folder.path("report.html");
  const Document result = answer(request, {});
  const std::string page = io::read_file(folder.path("report.html"));
  const Document data = data_of(page);
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(result.find("page") == nullptr);
  CHECK(page.find("vgg19 on 4 nodes</h1>") != std::string::npos);
  CHECK(*at(at(data, "about"), "output").text() == folder.path("plan.yaml"));

  // The timeline is that of the plan that was written.
  const Document simulated = answer({{"request", "simulate"},
                                     {"input", "vgg19"},
                                     {"plan", folder.path("plan.yaml")},
                                     {"profile", "v100-100g"}},
                                    {});
  const Document& timeline = at(data, "timeline");
  for (const char* const name : {"iteration_s", "compute_s", "exposed_communication_s"}) {
    INFO(name);
    CHECK(at(timeline, name).number() == at(simulated, name).number());
  }
  for (const auto& [path_share, simulated_share] :
       {std::pair("share", "critical_path_share"),
        std::pair("exposed_share", "exposed_communication_share")}) {
    for (const Document::Member& kind : *at(at(data, "critical_path"), path_share).members()) {
      INFO(path_share << ' ' << kind.name);
      CHECK(kind.value.number() == at(at(simulated, simulated_share), kind.name).number());
    }
  }
}

TEST_CASE("parts of the critical path add up to the iteration") {
  Document request = plan_request("bert_large", 8);
  request["page"] = true;
  const Document result = answer(request, {});
  const Document data = data_of(*at(result, "page").text());
  const Document& path = at(data, "critical_path");
  double sum_s = *at(path, "others_s").number();
  for (const Document& run : *at(path, "runs").items()) sum_s += *at(run, "length_s").number();
  CHECK(sum_s == Approx(*at(at(data, "timeline"), "iteration_s").number()).epsilon(1e-9));
}

TEST_CASE("a page of 399 gradients on 16 nodes is no longer than mail takes") {
  const tests::TemporaryFolder folder;
  write_model(folder.path("model.txt"), 399, "encoder.layer.attention.output.dense.weight.");
  for (const char* const topology : {"PS", "RING"}) {
    INFO(topology);
    Document request = plan_request(folder.path("model.txt"), 16);
    request["topology"] = topology;
    request["plan"] = "all";  // with K = N, which makes the most tasks
    request["report"] = folder.path("report.html");
    answer(request, {});
    const std::string page = io::read_file(folder.path("report.html"));
    CHECK(page.size() <= requests::kMostPageBytes);
    const Document data = data_of(page);
    CHECK(at(at(at(data, "gradients"), "names"), "rest").items()->size() == 399);
    CHECK_FALSE(at(data, "timeline").is_null());
  }
}

TEST_CASE("of a very large model a page has what there is room for, and says so", "[slow]") {
  const tests::TemporaryFolder folder;
  write_model(folder.path("model.txt"), 5'000, "a.name.that.has.nothing.in.common.");
  Document request = plan_request(folder.path("model.txt"), 2);
  request["plan"] = "none";
  request["report"] = folder.path("report.html");
  answer(request, {});
  const std::string page = io::read_file(folder.path("report.html"));
  CHECK(page.size() <= requests::kMostPageBytes);
  const Document data = data_of(page);
  const Document& gradients = at(data, "gradients");
  const std::size_t shown = at(gradients, "elements").items()->size();
  CHECK(shown >= 500);
  CHECK(shown < 5'000);
  CHECK(at(gradients, "index").items()->size() == shown);
  CHECK(at(gradients, "all").integer() == 5'000);
  // The page shows the largest gradient that write_model() makes.
  std::int64_t largest = 0;
  for (const Document& one : *at(gradients, "elements").items())
    largest = std::max(largest, *one.integer());
  CHECK(largest == 1000 + 7919 * 96);
}

TEST_CASE("names of gradients cannot leave the page's data") {
  const tests::TemporaryFolder folder;
  const std::string evil = R"(</script><b>"&'<!--)";
  write_model(folder.path("model.txt"), 3, evil);
  Document request = plan_request(folder.path("model.txt"), 2);
  request["page"] = true;
  const Document result = answer(request, {});
  const std::string& page = *at(result, "page").text();
  CHECK(page.find("<b>\"&'") == std::string::npos);
  const Document data = data_of(page);
  const auto& rest = *at(at(at(data, "gradients"), "names"), "rest").items();
  CHECK(*rest.front().text() == evil + "0");
}

TEST_CASE("a page that cannot be made or written is refused before the search") {
  const tests::TemporaryFolder folder;
  Document request = plan_request();
  SECTION("a folder that is missing") {
    request["report"] = folder.path("missing/report.html");
    CHECK_THAT(message_of(request), Catch::Contains("report.html: cannot be written"));
  }
  SECTION("one name for two files") {
    request["output"] = folder.path("both");
    request["report"] = folder.path("both");
    CHECK_THAT(message_of(request), Catch::Contains("`report` and `output` are one file"));
  }
  SECTION("a broadcast") {
    CHECK_THAT(message_of({{"request", "plan"},
                           {"job", "broadcast"},
                           {"bytes", "1MB"},
                           {"report", folder.path("report.html")}}),
               Catch::Contains("leave it out, or take `job` mean"));
  }
  SECTION("required bandwidths") {
    request["required_bandwidth"] = true;
    request["report"] = folder.path("report.html");
    CHECK_THAT(message_of(request), Catch::Contains("`report` applies to a plan"));
  }
  CHECK(folder.count() == 0);
}

TEST_CASE("whatever texts files bring, a page is no longer than mail takes") {
  const tests::TemporaryFolder folder;
  const std::string profile = io::read_file(io::data_file("profiler/profiles/v100-100g.yaml"));
  const std::size_t notes_at = profile.find("notes:\n") + 7;
  const auto with_notes = [&](const std::string& note, int times) {
    std::string notes;
    for (int i = 0; i < times; ++i) notes += fmt::format("  - '{} {}'\n", i, note);
    return profile.substr(0, notes_at) + notes + profile.substr(notes_at);
  };
  const auto with_names = [](const std::string& name, int gradients) {
    std::string model = "name: '" + name + "'\nsource: '" + name + "'\ngradients:\n";
    for (int g = 0; g < gradients; ++g) {
      model += fmt::format("  - {{name: '{}{}', elements: {}}}\n", g, name, 1000 + g);
    }
    return model;
  };
  const std::string long_text(1'000'000, 'x'), long_name(4'000, 'x'), middling(2'000, '<');
  const std::string plain = "w";
  struct Case {
    const char* what;
    std::string profile, model;
  };
  for (const Case& one : std::initializer_list<Case>{
           {"one long note", with_notes(long_text, 1), with_names(plain, 3)},
           {"many notes", with_notes(middling, 500), with_names(plain, 3)},
           {"long names", profile, with_names(long_name, 100)},
           {"many long names that are escaped", profile, with_names(middling, 300)},
           {"all of it", with_notes(middling, 300), with_names(middling, 300)}}) {
    INFO(one.what);
    std::ofstream(folder.path("profile.yaml")) << one.profile;
    std::ofstream(folder.path("model.yaml")) << one.model;
    Document request = plan_request(folder.path("model.yaml"), 2);
    request["profile"] = folder.path("profile.yaml");
    request["plan"] = "none";
    request["report"] = folder.path("report.html");
    answer(request, {});
    const std::string page = io::read_file(folder.path("report.html"));
    CHECK(page.size() <= requests::kMostPageBytes);
    CHECK(page.find("bytes more)") != std::string::npos);
    CHECK_FALSE(at(data_of(page), "gradients").is_null());
  }
}
