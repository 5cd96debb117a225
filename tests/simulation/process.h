// A process of the product: loops that live and die together on one connection to the broker.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/loop/leadership.h"
#include "app/loop/topic_loop.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/random.h"
#include "tests/simulation/trace.h"

namespace tocsin::simulation {

/// What every process of a world shares.
struct Ground {
  MemoryBroker* broker = nullptr;
  SimulatedClock* clock = nullptr;
  core::Clock* loops = nullptr;  // that loops read; null: `clock`
  Trace* trace = nullptr;
  core::Telemetry* telemetry = nullptr;
};

class Process {
 public:
  /// Fills a fresh process with stages: add() and lead().
  using Build = std::function<void(Process&)>;
  /// A transport that misbehaves on purpose around the real one (mutations.h); may be null.
  using Wrap = std::function<std::unique_ptr<ingest::Transport>(ingest::Transport&)>;

  Process(const Ground& ground, std::string name, Build build, Wrap wrap);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void start();
  /// Gone between two steps, without a word to anybody.
  void crash();
  /// As SIGTERM ends it: last commits, groups left.
  void stop();
  void freeze_until(core::Duration steady) { frozen_until_ = steady; }
  void restart_at(core::Duration steady) { restart_at_ = steady; }

  /// One turn of one of its loops, chosen by `random`; starts again when it is time.
  void step(Random& random);

  // For Build.
  void add(std::unique_ptr<app::Stage> stage);
  void lead();
  [[nodiscard]] const app::Leadership* leadership() const { return leadership_.get(); }
  [[nodiscard]] core::Log& log() { return log_; }
  [[nodiscard]] const Ground& ground() const { return ground_; }
  [[nodiscard]] ingest::Transport& transport() { return *transport_; }
  /// Kept until the process ends.
  template <typename T>
  T& keep(std::unique_ptr<T> thing) {
    kept_.push_back(std::shared_ptr<T>(std::move(thing)));
    return *static_cast<T*>(kept_.back().get());
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool running() const { return connection_ != nullptr; }
  [[nodiscard]] bool frozen() const;
  /// It died inside of a call to the broker.
  [[nodiscard]] bool dead() const { return running() && ground_.broker->dead(*connection_); }
  [[nodiscard]] bool leads() const { return leadership_ && leadership_->term() != 0; }
  [[nodiscard]] bool ready() const;

 private:
  struct Unit {
    std::unique_ptr<app::Stage> stage;
    std::unique_ptr<app::TopicLoop> loop;
  };
  void end();

  Ground ground_;
  std::string name_;
  Build build_;
  Wrap wrap_;
  TraceLog log_;
  std::unique_ptr<ingest::Transport> connection_;
  std::unique_ptr<ingest::Transport> wrapped_;
  ingest::Transport* transport_ = nullptr;
  std::vector<std::shared_ptr<void>> kept_;
  std::unique_ptr<app::Leadership> leadership_;
  std::vector<Unit> units_;
  core::Duration lease_due_{};
  core::Duration frozen_until_{};
  core::Duration restart_at_{};
};

}  // namespace tocsin::simulation
