#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/endpoint.hpp"

namespace hipress::runtime {

/// An exchange whose messages the test delivers itself.
class ScriptedExchange : public transport::Exchange {
 public:
  ScriptedExchange(std::vector<transport::Outgoing> out, transport::Events on)
      : outgoing(std::move(out)), events(std::move(on)) {}
  ~ScriptedExchange() override {
    if (on_destruction) on_destruction();
  }
  ScriptedExchange(const ScriptedExchange&) = delete;
  ScriptedExchange& operator=(const ScriptedExchange&) = delete;
  void begin(std::uint64_t) override {}
  void send(std::size_t index, std::int64_t) override {
    if (on_send) on_send(outgoing[index].tag);
  }
  void finish() override {}
  void post() override {}

  std::vector<transport::Outgoing> outgoing;
  transport::Events events;
  std::function<void(std::uint32_t tag)> on_send;
  std::function<void()> on_destruction;
};

/// The endpoint of one rank; the test plays the other ranks of the job.
class ScriptedEndpoint : public transport::Endpoint {
 public:
  ScriptedEndpoint(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<transport::Exchange> prepare(std::vector<transport::Outgoing> outgoing,
                                               std::vector<transport::Incoming>,
                                               transport::Events events) override {
    auto made = std::make_unique<ScriptedExchange>(std::move(outgoing), std::move(events));
    exchange = made.get();
    return made;
  }
  std::unique_ptr<transport::Collective> collective() override {
    return make_collective ? make_collective() : nullptr;
  }
  std::vector<std::string> all_gather(const std::string& mine) override { return {mine}; }
  /// Makes the job fail on this rank, too, as a real endpoint does.
  void abort(int culprit, const std::string& reason) noexcept override {
    if (exchange != nullptr) exchange->events.failed({culprit, reason});
  }

  ScriptedExchange* exchange = nullptr;
  std::function<std::unique_ptr<transport::Collective>()> make_collective;

 private:
  int rank_, size_;
};

}  // namespace hipress::runtime
