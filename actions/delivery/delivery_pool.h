// The threads that carry attempts out: each integration has its own.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include "actions/delivery/caller.h"

namespace tocsin::actions {

struct PoolOptions {
  /// The action behind an integration's id; null: there is none (the attempt ends `gone`). Called
  /// from the pool's threads; what it points to outlives the pool.
  std::function<core::Action*(std::string_view integration)> action;
  /// May a call start? Asked on the pool's thread right before each one, so that what is queued
  /// here when the lease is lost is never sent. Empty: always.
  std::function<bool()> gate;
  /// take() has something, and had nothing before. Called on a thread of the pool, without a lock;
  /// must not block. Empty: whoever waits polls.
  std::function<void()> on_finished;
  /// Threads of all integrations together. Whatever it says, each integration may have one.
  std::size_t max_threads = 256;
  /// A thread without work for so long ends.
  std::chrono::milliseconds idle = std::chrono::seconds(30);
};

/// Threads come when an integration has work and none of its threads is free, and go when they have
/// been idle. An integration whose far side hangs keeps its own threads, never another's.
class DeliveryPool final : public Caller {
 public:
  explicit DeliveryPool(PoolOptions options);
  /// Waits for the calls under way (each has its attempt's budget); what is queued is not started.
  ~DeliveryPool() override;
  DeliveryPool(const DeliveryPool&) = delete;
  DeliveryPool& operator=(const DeliveryPool&) = delete;

  void submit(Attempt attempt) override;
  std::vector<CallResult> take() override;
  [[nodiscard]] std::size_t in_flight() const override;
  [[nodiscard]] std::size_t threads() const override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tocsin::actions
