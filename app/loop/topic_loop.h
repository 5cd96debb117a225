// The one loop around every stage: opens source and publisher, restores, polls, commits, backs off,
// starts over, and says whether it is ready.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>

#include "app/loop/committer.h"
#include "app/loop/leadership.h"
#include "app/loop/stage.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// What a loop is given; everything pointed to outlives it.
struct LoopPorts {
  ingest::Transport* transport = nullptr;
  core::Clock* clock = nullptr;
  core::Log* log = nullptr;
  core::Telemetry* telemetry = nullptr;
  CommitterFactory committer;              // thread_committer() or inline_committer()
  const Leadership* leadership = nullptr;  // needed by stages with wiring().leader
};

/// Lives on one thread: run() in the program, step() by hand in tests and in the simulated world.
/// wake(), ready() and trouble() may be called from anywhere.
class TopicLoop {
 public:
  TopicLoop(Stage& stage, LoopPorts ports);
  ~TopicLoop();
  TopicLoop(const TopicLoop&) = delete;
  TopicLoop& operator=(const TopicLoop&) = delete;

  /// step() until stopped, then close().
  void run(const std::stop_token& stop);
  /// One turn: waits at most `longest` for records. Returns when (steady) the next turn is due at
  /// the latest if no record comes.
  core::Duration step(std::chrono::milliseconds longest);
  /// A clean end: the stage's last output is committed, the group is left.
  void close();
  /// Ends a wait in step() early. Thread-safe.
  void wake();
  /// Restored, committing, and (where a lease is needed) either leading or standing by.
  [[nodiscard]] bool ready() const noexcept;
  /// Why it is not ready, where something failed: a sentence; empty: nothing did.
  [[nodiscard]] std::string trouble() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tocsin::app
