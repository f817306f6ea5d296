#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/error.hpp"
#include "io/file.hpp"
#include "requests/field.hpp"
#include "requests/record.hpp"
#include "requests/request.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace hipress;
using io::Document;
using requests::answer;
using requests::error_document;
using requests::Hooks;

namespace {

/// A request whose plan is made quickly.
Document plan_request() {
  return {{"request", "plan"}, {"input", "vgg19"},  {"profile", "v100-100g"},
          {"nnodes", 4},       {"evaluations", 20}, {"jobs", 1}};
}

Document sweep_request() {
  return {{"request", "sweep"},
          {"jobs", 1},
          {"spec",
           {{"model", "vgg19"},
            {"plan", Document::list({"none", "all"})},
            {"nodes", Document::list({2, 4})},
            {"bandwidth", "10Gbps"}}}};
}

/// The member "error" of the document for a request that fails.
Document error_of(const Document& request) {
  try {
    answer(request, {});
  } catch (const std::exception& error) {
    return *error_document(error, request).find("error");
  }
  return nullptr;
}

std::string text(const Document& document, const std::string& name) {
  const Document* found = document.find(name);
  return found == nullptr || found->text() == nullptr ? "" : *found->text();
}

}  // namespace

TEST_CASE("a field that does not count is refused, or named, if it is given") {
  requests::GivenFields given;
  std::string job = "mean";
  int seed = 0;
  bool lossless = false;
  requests::Fields fields(given);
  const auto is_mean = [&] { return job == "mean"; };
  fields.add("job", &job, "");
  fields.add("seed", &seed, "").idle(requests::when(is_mean, "nothing is drawn"));
  fields.under("Broadcasts", requests::when(is_mean, "is of broadcasts: leave it out"));
  fields.add("lossless", &lossless, "");
  CHECK(without_effect(fields).empty());
  // Giving a field its default counts as giving it. A flag that is off does not.
  read({{"seed", 0}, {"lossless", false}}, fields);
  CHECK_NOTHROW(refuse_unfit(fields));
  CHECK(without_effect(fields) ==
        std::vector<std::string>{"`seed` has no effect: nothing is drawn"});
  read({{"lossless", true}}, fields);
  CHECK_THROWS_WITH(refuse_unfit(fields), "`lossless` is of broadcasts: leave it out");
  read({{"job", "broadcast"}}, fields);
  CHECK_NOTHROW(refuse_unfit(fields));
  CHECK(without_effect(fields).empty());
}

TEST_CASE("a plan is answered as hipress-plan --json prints it") {
  const Document plan = answer(plan_request(), {});
  CHECK(plan.find("gradients")->integer() == 38);  // VGG19 has 38
  CHECK(plan.find("baselines")->find("none") != nullptr);
  CHECK(plan.find("predicted_iteration_s")->number() > 0);
  CHECK_FALSE(text(plan, "verdict").empty());
}

TEST_CASE("without an output nothing is written, with one the plan is") {
  const tests::TemporaryFolder folder;
  Document request = plan_request();
  answer(request, {});
  CHECK_FALSE(std::filesystem::exists("SeCoPaPlan.txt"));
  request["output"] = folder.path("plan.yaml");
  answer(request, {});
  CHECK(io::read_file(folder.path("plan.yaml")).find("gradients:") != std::string::npos);

  SECTION("what one request wrote, the next reads, and another may write again") {
    const Document simulated = answer({{"request", "simulate"},
                                       {"input", "vgg19"},
                                       {"plan", folder.path("plan.yaml")},
                                       {"profile", "v100-100g"}},
                                      {});
    CHECK(simulated.find("iteration_s")->number() > 0);
    CHECK_NOTHROW(answer(request, {}));
  }
  SECTION("within a request, an input is not written over") {
    request["input"] = folder.path("model.txt");
    io::write_file(folder.path("model.txt"), [](std::ostream& out) { out << "a,1000\nb,2000\n"; });
    request["output"] = folder.path("model.txt");
    CHECK_THAT(text(error_of(request), "message"), Catch::Contains("is an input of this run"));
  }
}

TEST_CASE("a broadcast is a plan, too") {
  const Document plan = answer({{"request", "plan"},
                                {"job", "broadcast"},
                                {"bytes", "1MB"},
                                {"nnodes", 4},
                                {"evaluations", 5}},
                               {});
  CHECK(text(plan, "operation") == "broadcast");
  CHECK(plan.find("output")->is_null());
}

TEST_CASE("a sweep answers with columns and rows, of a spec within the request or of a file") {
  const Document swept = answer(sweep_request(), {});
  // 2 plans on 2 numbers of nodes.
  REQUIRE(swept.find("rows")->items()->size() == 4);
  const auto& columns = *swept.find("columns")->items();
  for (const Document& row : *swept.find("rows")->items()) {
    CHECK(row.items()->size() == columns.size());
  }
  const auto& first = *swept.find("rows")->items()->front().items();
  CHECK(*first.front().text() == "vgg19");

  const tests::TemporaryFolder folder;
  io::write_file(folder.path("spec.yaml"), [](std::ostream& out) {
    out << "model: vgg19\nplan: [none, all]\nnodes: [2, 4]\nbandwidth: 10Gbps\n";
  });
  Document request = sweep_request();
  request["spec"] = folder.path("spec.yaml");
  request["output"] = folder.path("sweep.csv");
  CHECK(answer(request, {}).print() == swept.print());
  std::vector<std::string> lines = io::read_lines(folder.path("sweep.csv"));
  std::erase_if(lines, [](const std::string& line) { return line.starts_with('#'); });
  CHECK(lines.size() == 5);
}

TEST_CASE("a trace is imported, or told why not with what it says") {
  const std::string traces = HIPRESS_SOURCE_DIR "/tests/data/traces/";
  const Document read = answer(
      {{"request", "import_trace"}, {"trace", traces + "resnet50_ddp_2xa100.kineto.json.gz"}}, {});
  CHECK(text(read, "format") == "PyTorch profiler");
  CHECK_FALSE(read.find("steps")->items()->empty());
}

TEST_CASE("a request that is none is refused with the nearest that is one") {
  CHECK_THAT(text(error_of(Document::list()), "message"),
             Catch::Equals("a request must be an object, got a list"));
  CHECK_THAT(text(error_of(Document::object()), "message"),
             Catch::StartsWith(R"("request" must be one of plan, simulate, sweep, replay, )"));
  const Document unknown = error_of({{"request", "plann"}});
  CHECK(text(unknown, "kind") == "input");
  CHECK(text(unknown, "field") == "request");
  CHECK_THAT(text(unknown, "remedy"), Catch::StartsWith("did you mean 'plan'?"));
}

TEST_CASE("a field is refused by its name") {
  Document request = plan_request();
  SECTION("unknown") {
    request["nodes"] = 4;
    const Document error = error_of(request);
    CHECK(text(error, "field") == "nodes");
    CHECK_THAT(text(error, "message"),
               Catch::StartsWith("unknown field 'nodes'; did you mean 'nnodes'?"));
    CHECK(text(error, "remedy") == "did you mean 'nnodes'?");
  }
  SECTION("of another kind") {
    request["nnodes"] = "4";
    CHECK(text(error_of(request), "message") ==
          "nnodes must be a whole number from 1 to 1048576, got the text '4'");
  }
  SECTION("out of bounds") {
    request["tolerance"] = 0.6;
    CHECK(text(error_of(request), "message") ==
          "tolerance must be a number from 0 to 0.5, got the number 0.6");
  }
  SECTION("none of the words") {
    request["grouping"] = "atuo";
    CHECK(text(error_of(request), "message") ==
          "grouping must be one of any, none, auto, got 'atuo'; did you mean 'auto'?");
  }
  SECTION("no flag") {
    request["explain"] = 1;
    CHECK(text(error_of(request), "message") == "explain must be true or false, got the number 1");
  }
  SECTION("missing") { CHECK(text(error_of({{"request", "simulate"}}), "field") == "plan"); }
  SECTION("null leaves it as it is") {
    request["evaluations"] = 20;
    request["search"] = nullptr;
    CHECK(error_of(request).is_null());
  }
}

TEST_CASE("an error has its file, line and field") {
  const tests::TemporaryFolder folder;
  io::write_file(folder.path("model.yaml"), [](std::ostream& out) {
    out << "name: m\nforward: 1.5\ngradients:\n  - {name: a, elements: 10}\n";
  });
  const Document in_file = error_of({{"request", "plan"}, {"input", folder.path("model.yaml")}});
  CHECK(text(in_file, "file") == folder.path("model.yaml"));
  CHECK(in_file.find("line")->integer() == 2);
  CHECK(text(in_file, "field") == "input");

  const Document missing = error_of({{"request", "plan"}, {"input", folder.path("nothing.yaml")}});
  CHECK(text(missing, "file") == folder.path("nothing.yaml"));
  CHECK(missing.find("line")->is_null());

  const Document option = error_of(
      {{"request", "simulate"}, {"input", "vgg19"}, {"plan", "all"}, {"bandwidth", "fast"}});
  CHECK(text(option, "field") == "bandwidth");

  Document sweep = sweep_request();
  sweep["spec"] = {{"model", "vgg19"}, {"nodess", 4}};
  const Document in_spec = error_of(sweep);
  CHECK(text(in_spec, "file") == "spec");
  CHECK(in_spec.find("line")->integer() > 0);
  CHECK(text(in_spec, "field") == "spec");
}

TEST_CASE("an unknown name is blamed on the field that gave it, with the nearest that is known") {
  const auto changed = [](const std::string& field, const std::string& value) {
    Document request = plan_request();
    request[field] = value;
    return error_of(request);
  };
  const auto check = [&](const std::string& field, const std::string& value,
                         const std::string& remedy) {
    const Document error = changed(field, value);
    CAPTURE(field, value, error.print());
    CHECK(text(error, "field") == field);
    CHECK_THAT(text(error, "remedy"), Catch::StartsWith(remedy));
  };
  check("topology", "RNG", "did you mean 'ring'?");
  check("algorithm", "fp16,onebitt", "did you mean 'onebit'?");
  check("search", "timelin", "did you mean 'timeline'?");
  check("profile", "v100", "did you mean 'v100-100g'?");
  check("profile", "v100-100gb", "did you mean 'v100-100g'?");
  check("input", "vgg91", "did you mean 'vgg19'?");
  check("schedule", "fdsp", "did you mean 'fsdp'?");
  check("network", "mesh", "known are port, fair");
  // Two fields have that value, so the error names none of them.
  Document two = plan_request();
  two["network"] = "mesh";
  two["topology"] = "mesh";
  CHECK(text(error_of(two), "field").empty());
}

TEST_CASE("a text that is no file is not blamed, whatever it is equal to") {
  const Document error = error_of(
      {{"request", "simulate"}, {"algorithm", "onebit"}, {"input", "onebit"}, {"plan", "all"}});
  CHECK(text(error, "file") == "onebit");
  CHECK(text(error, "field") == "input");
}

TEST_CASE("a text with a byte of 0 is refused") {
  Document request = plan_request();
  request["output"] = std::string("x.yaml\0.txt", 11);
  const Document error = error_of(request);
  CHECK(text(error, "field") == "output");
  CHECK_THAT(text(error, "message"), Catch::StartsWith("output must be a text without bytes of 0"));
}

TEST_CASE("a simulation that is interrupted has no result") {
  const std::atomic<bool> interrupted = true;
  requests::Hooks hooks;
  hooks.interrupted = &interrupted;
  const Document request = {{"request", "simulate"}, {"input", "vgg19"}, {"plan", "all"}};
  CHECK_THROWS_AS(requests::answer(request, hooks), requests::Interrupted);
}

TEST_CASE("a replay verifies, and tells each iteration") {
  const tests::TemporaryFolder folder;
  io::write_file(folder.path("model.txt"), [](std::ostream& out) { out << "a,1000\nb,20000\n"; });
  std::vector<std::string> iterations;  // as reported for one rank
  Hooks hooks;
  hooks.progress = [&](const requests::Progress& at) {
    iterations.push_back(std::string(at.stage) + " " + std::to_string(at.done) + " of " +
                         std::to_string(at.all));
  };
  Document request = {{"request", "replay"}, {"input", folder.path("model.txt")},
                      {"plan", "fp16"},      {"nnodes", 3},
                      {"warmup", 2},         {"iterations", 3},
                      {"profile", "sosp21"}, {"trace", folder.path("trace.json")}};
  const Document replayed = answer(request, hooks);
  CHECK(*replayed.find("verified")->boolean());
  CHECK(replayed.find("each_measured_iteration_s")->items()->size() == 3);
  CHECK(replayed.find("predicted_iteration_s")->number() > 0);
  CHECK_THAT(text(replayed, "predicted_for"), Catch::Contains("sosp21"));
  // Iterations of one rank out of three are reported.
  CHECK(iterations == std::vector<std::string>{"iterations 0 of 5", "iterations 1 of 5",
                                               "iterations 2 of 5", "iterations 3 of 5",
                                               "iterations 4 of 5"});
  CHECK(std::filesystem::exists(folder.path("trace.json")));

  SECTION("an interrupt ends it on all ranks, and nothing is written") {
    std::filesystem::remove(folder.path("trace.json"));
    std::atomic<bool> interrupted = false;
    hooks.interrupted = &interrupted;
    hooks.progress = [&](const requests::Progress& at) { interrupted = at.done == 1; };
    CHECK_THROWS_AS(answer(request, hooks), requests::Interrupted);
    CHECK_FALSE(std::filesystem::exists(folder.path("trace.json")));
  }
  SECTION("what is wrong names its field") {
    const auto field = [&](const std::string& name, const Document& value) {
      Document wrong = request;
      wrong[name] = value;
      return text(error_of(wrong), "field");
    };
    CHECK(field("iterations", 0) == "iterations");
    CHECK(field("device", "cdua") == "device");
    CHECK(field("transport", "tpc") == "transport");
    CHECK(field("load_state", "state") == "load_state");
    CHECK(field("reprobe", true) == "profile");  // the profile has no probes
    CHECK(field("secret_file", folder.path("none")) == "secret_file");
    CHECK(field("plan", "fp61") == "plan");
  }
  SECTION("options of launched ranks have no effect on threads") {
    std::vector<std::string> warnings;
    hooks.warn = [&](const std::string& sentence) { warnings.push_back(sentence); };
    request["rendezvous"] = "file://" + folder.path("meet");
    request["insecure"] = false;
    answer(request, hooks);
    CHECK_THAT(warnings, Catch::VectorContains(std::string(
                             "`rendezvous` has no effect: no launcher started this process, so its "
                             "ranks are threads")));
    CHECK(warnings.size() == 1);
  }
}

TEST_CASE("a profile is measured, and an interrupt ends that", "[slow]") {
  const Document request = {{"request", "profile"}, {"algorithm", "fp16"}, {"quick", true},
                            {"passes", 1},          {"again", 0},          {"nnodes", 2}};
  std::atomic<bool> interrupted = false;
  Hooks hooks;
  hooks.interrupted = &interrupted;
  hooks.inform = [&](const std::string&) { interrupted = true; };
  CHECK_THROWS_AS(answer(request, hooks), requests::Interrupted);

  const Document measured = answer(request, {});
  CHECK(measured.find("profile")->is_null());
  CHECK(measured.find("codecs")->find("fp16")->find("encode_Bps")->number() > 0);
  CHECK(measured.find("link")->find("bandwidth_Bps")->number() > 0);
  CHECK_FALSE(std::filesystem::exists("profile.yaml"));
}

TEST_CASE("a sample changes one number of a base") {
  const tests::TemporaryFolder folder;
  const auto share_of = [](const Document& profile) {
    return profile.find("codecs")->find("lossless")->find("message_share")->number().value_or(0);
  };
  const auto sampled = [&](const std::string& values) {
    io::write_file(folder.path("sample"), [&](std::ostream& out) { out << values; });
    const Document profile = answer({{"request", "profile"},
                                     {"base", "a100-10g"},
                                     {"sample", folder.path("sample")},
                                     {"output", folder.path("sampled.yaml")}},
                                    {});
    CHECK(text(profile, "profile") == folder.path("sampled.yaml"));
    return profile;
  };
  // Zeros have equal exponents. The mixed values have all exponents, so nothing can be saved.
  std::string mixed;
  for (int i = 0; i < 1 << 16; ++i)
    mixed += {'\0', '\0', static_cast<char>(37 * i), static_cast<char>(i)};
  const Document zeros = sampled(std::string(1 << 18, '\0'));
  CHECK(share_of(zeros) < share_of(sampled(mixed)));
  // The written profile has the share that was reported.
  const Document again = answer({{"request", "profile"},
                                 {"base", folder.path("sampled.yaml")},
                                 {"sample", folder.path("sample")}},
                                {});
  CHECK(again.find("profile")->is_null());
  CHECK(share_of(again) == share_of(sampled(mixed)));

  const auto field = [&](const std::string& name, const Document& value) {
    Document wrong = {{"request", "profile"}, {"nnodes", 2}, {"quick", true}};
    wrong[name] = value;
    return text(error_of(wrong), "field");
  };
  CHECK(field("anew", "links") == "anew");  // there is no base
  CHECK(field("sample", folder.path("none")) == "sample");
  CHECK(field("base", folder.path("none.yaml")) == "base");
  CHECK(field("algorithm", Document::list({"onebitt"})) == "algorithm");
  CHECK(field("nnodes", 1) == "nnodes");
}

namespace {

struct Part {
  std::string name;
  std::optional<double> share = {};
};

struct Whole {
  std::vector<Part> parts;
  std::optional<Part> best = {};
};

void fill_part(requests::Record& record, const Part& part) {
  record.add("name", part.name, "Its name");
  record.add("share", part.share, "Its share");
}

void fill(requests::Record& record, const Whole& whole) {
  record.list("parts", whole.parts, "All", fill_part);
  record.object("best", whole.best, "The best", fill_part);
  record.section(whole.best.has_value(), [&] {
    record.add(
        "best_share", [&] { return whole.best->share.value(); }, "Its share");
  });
}

}  // namespace

TEST_CASE("what fills a record says what is in it and what its schema is") {
  CHECK(requests::document_of(Whole{}).print() == R"({"parts":[],"best":null})");
  const Part half = {.name = "a", .share = 0.5};
  CHECK(requests::document_of(Whole{.parts = {half, {.name = "b"}}, .best = half}).print() ==
        R"({"parts":[{"name":"a","share":0.5},{"name":"b","share":null}],)"
        R"("best":{"name":"a","share":0.5},"best_share":0.5})");
  const Document schema = requests::schema_of<Whole>();
  CHECK(schema.find("required")->print() == R"(["parts","best"])");  // best_share may be absent
  const Document& keys = *schema.find("properties");
  CHECK(keys.find("best")->find("type")->print() == R"(["object","null"])");
  CHECK(keys.find("best_share")->find("type")->print() == R"("number")");
  const Document& part = *keys.find("parts")->find("items")->find("properties");
  CHECK(part.find("share")->print() == R"({"type":["number","null"],"description":"Its share"})");
}

TEST_CASE("kinds of errors") {
  const auto kind = [](const std::exception& error) {
    return text(*error_document(error, nullptr).find("error"), "kind");
  };
  CHECK(kind(io::InputError("x")) == "input");
  CHECK(kind(std::invalid_argument("x")) == "input");
  CHECK(kind(io::Unmet("x")) == "unmet");
  CHECK(kind(io::RunError("x")) == "environment");
  CHECK(kind(std::bad_alloc()) == "environment");
  CHECK(kind(requests::Interrupted()) == "interrupted");
  CHECK(kind(std::runtime_error("x")) == "internal");
  const requests::UnmetWithResult unmet("x", {{"steps", 3}});
  CHECK(error_document(unmet, nullptr).find("result")->print() == R"({"steps":3})");
}

TEST_CASE("a remedy is what follows the complaint, not what a name or a text holds") {
  const auto remedy = [](const std::exception& error, const Document& request = nullptr) {
    const Document document = error_document(error, request);
    const std::string* found = document.find("error")->find("remedy")->text();
    return found != nullptr ? *found : "none";
  };
  CHECK(remedy(io::InputError("a thing is wrong")) == "none");
  CHECK(remedy(io::InputError("a thing is wrong; mend it; or leave it")) == "mend it; or leave it");
  CHECK(remedy(io::InputError("unknown pass 'a; b'")) == "none");
  CHECK(remedy(io::InputError("unknown pass 'a; b'; did you mean 'c'?")) == "did you mean 'c'?");
  CHECK(remedy(io::InputError("unknown pass 'it's; bad' (known: c); see 'd'")) == "see 'd'");
  CHECK(remedy(io::InputError("is no trace (it is cut short; copy it again); give one")) ==
        "give one");
  CHECK(remedy(io::InputError("the nodes' links are slow; take others' links")) ==
        "take others' links");
  CHECK(remedy(io::InputError("the quotation 'that begins here; has no end")) == "has no end");
  CHECK(remedy(io::InputError("", 0, "is wrong")) == "none");
  CHECK(remedy(io::InputError("a; b.yaml", 3, "is wrong")) == "none");
  CHECK(remedy(io::InputError("a; 'b.yaml", 3, "is wrong; mend it")) == "mend it");
  // An error of a run has no file, but the request may name it.
  const Document request = {{"request", "plan"}, {"output", "a; b.yaml"}};
  CHECK(remedy(io::RunError("a; b.yaml: cannot be written"), request) == "none");
  CHECK(remedy(io::RunError("a; b.yaml: cannot be written; free space"), request) == "free space");
}

TEST_CASE("the schema has every field with its type") {
  const Document all = answer({{"request", "schema"}}, {});
  REQUIRE(all.members()->size() == requests::requests().size());
  const Document& fields = *all.find("plan")->find("properties");
  CHECK(text(*fields.find("nnodes"), "type") == "integer");
  CHECK(fields.find("nnodes")->find("maximum")->integer() == 1 << 20);
  CHECK(text(*fields.find("explain"), "type") == "boolean");
  CHECK(fields.find("grouping")->find("enum")->print() == R"(["any","none","auto"])");
  CHECK(text(*fields.find("topology"), "default") == "PS");
  CHECK(all.find("simulate")->find("required")->print() == R"(["request","plan"])");
  for (const Document::Member& request : *all.members()) {
    for (const Document::Member& field : *request.value.find("properties")->members()) {
      if (field.name == "request") continue;
      INFO(request.name << "." << field.name);
      CHECK_FALSE(text(field.value, "description").empty());
    }
  }
}

TEST_CASE("warnings, notes and progress arrive, and an interrupt ends a sweep") {
  std::vector<std::string> warnings, notes;
  std::vector<double> shares;
  std::atomic<bool> interrupted = false;
  Hooks hooks = {.warn = [&](const std::string& text) { warnings.push_back(text); },
                 .inform = [&](const std::string& text) { notes.push_back(text); },
                 .progress = [&](const requests::Progress& at) { shares.push_back(at.share); },
                 .interrupted = &interrupted};
  Document request = sweep_request();
  request["spec"]["latency"] = Document::list({"1us", "2us"});
  request["spec"]["plan"] = "all";
  request["spec"]["nodes"] = 1;  // one node sends nothing, so latency has no effect
  answer(request, hooks);
  CHECK_THAT(warnings, Catch::VectorContains(std::string(
                           "axis latency has no effect: all its values give the same times")));
  CHECK(notes.size() == 1);
  REQUIRE_FALSE(shares.empty());
  CHECK(shares.back() == 1);

  hooks.progress = [&](const requests::Progress&) { interrupted = true; };
  CHECK_THROWS_AS(answer(sweep_request(), hooks), requests::Interrupted);
  CHECK_THROWS_AS(answer(plan_request(), hooks), requests::Interrupted);  // ends before the search
}

TEST_CASE("an interrupt ends a search with the best plan so far") {
  std::atomic<bool> interrupted = false;
  Hooks hooks;
  hooks.interrupted = &interrupted;
  hooks.optimises = [&] { interrupted = true; };
  Document request = plan_request();
  request["evaluations"] = 1'000'000'000;
  CHECK(answer(request, hooks).find("predicted_iteration_s")->number() > 0);
}
