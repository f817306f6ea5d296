#include <catch2/catch.hpp>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "io/document.hpp"
#include "runtime/hipress.h"

using hipress::io::Document;

namespace {

/// Status and document of a call.
struct Answer {
  hipress_status status = HIPRESS_OK;
  Document document;
};

Answer call(const char* request, const hipress_call_options* options = nullptr) {
  char* text = nullptr;
  Answer made;
  made.status = hipress_call_with(options, request, &text);
  if (text != nullptr) made.document = Document::parse(text, "result");
  hipress_free_result(text);
  return made;
}

constexpr const char* kSimulate =
    R"({"request": "simulate", "input": "vgg19", "plan": "all", "nnodes": 4})";

}  // namespace

TEST_CASE("a C program asks, and gets a document") {
  char* text = nullptr;
  REQUIRE(hipress_call(kSimulate, &text) == HIPRESS_OK);
  CHECK(Document::parse(text, "result").find("iteration_s")->number() > 0);
  hipress_free_result(text);
  hipress_free_result(nullptr);
}

TEST_CASE("errors are documents, and the last error of the thread") {
  const Answer refused = call(R"({"request": "simulate", "input": "vgg19", "plan": "alll"})");
  CHECK(refused.status == HIPRESS_INVALID);
  const Document& error = *refused.document.find("error");
  CHECK(*error.find("kind")->text() == "input");
  CHECK(*error.find("message")->text() == hipress_last_error());
  for (const char* key : {"file", "line", "field", "remedy"}) CHECK(error.find(key) != nullptr);

  CHECK(call("{").status == HIPRESS_INVALID);
  CHECK(call(nullptr).status == HIPRESS_INVALID);
  CHECK(hipress_call(kSimulate, nullptr) == HIPRESS_INVALID);
  hipress_call_options options;
  hipress_call_options_init(&options);
  options.bytes -= 1;
  CHECK(call(kSimulate, &options).status == HIPRESS_INVALID);
}

TEST_CASE("a C program is told of progress, and may interrupt") {
  struct Seen {
    unsigned char interrupt = 0;
    std::vector<std::string> stages;
    int notes = 0;
  } seen;
  hipress_call_options options;
  hipress_call_options_init(&options);
  options.context = &seen;
  options.interrupt = &seen.interrupt;
  options.inform = [](void* context, const char*) { ++static_cast<Seen*>(context)->notes; };
  options.progress = [](void* context, const hipress_progress* at) {
    static_cast<Seen*>(context)->stages.emplace_back(at->stage);
  };
  const char* sweep =
      R"({"request": "sweep", "jobs": 1, "spec": {"model": "vgg19", "plan": "all", "nodes": [2, 4]}})";
  CHECK(call(sweep, &options).status == HIPRESS_OK);
  CHECK(seen.notes == 1);
  REQUIRE_FALSE(seen.stages.empty());
  CHECK(seen.stages.back() == "simulations");

  for (const unsigned char value : {1, 2, 0x80, 0xff}) {
    seen.interrupt = value;
    const Answer ended = call(sweep, &options);
    CHECK(ended.status == HIPRESS_FAILED);
    CHECK(*ended.document.find("error")->find("kind")->text() == "interrupted");
  }
}

TEST_CASE("several threads call at a time") {
  std::vector<double> seconds(4);
  {
    std::vector<std::jthread> threads;
    for (double& found : seconds) {
      threads.emplace_back([&found] {
        const Answer made = call(kSimulate);
        if (const Document* time = made.document.find("iteration_s")) found = *time->number();
      });
    }
  }
  CHECK(seconds.front() > 0);
  CHECK(seconds == std::vector<double>(seconds.size(), seconds.front()));
}
