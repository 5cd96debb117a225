// Telemetry in, issues out: the windowed rule engine, its state and its positions
// (docs/transports.md).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "app/loop/stage.h"
#include "app/loop/unreported.h"
#include "app/serve/counter_table.h"
#include "app/stages/comparison_reader.h"
#include "app/stages/registry_reader.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"
#include "rules/rules.h"

namespace tocsin::app {

struct EvaluateOptions {
  rules::RulesConfig rules;
  rules::EngineConfig engine;
  std::string cluster;
  std::map<std::string, std::string> labels;
  std::string topic_prefix = "tocsin";
  std::string instance = "0";  // of several threads or processes: part of the transactional id
  /// Name of the one rule, judged by a process of its own: its engine has positions and state of its
  /// own, and tells of nothing but this rule. Empty: the engine of all others.
  std::string hosted = {};
  /// It stands alone: no engine of all others asks the hooks for what it needs, so it does.
  bool asks = false;
  std::function<std::shared_ptr<rules::StepHost>()> host = {};  // made anew with each engine
  /// Opens a reader of `comparisons` from its beginning. Null: all runs lie in one partition.
  std::function<core::Result<std::unique_ptr<core::RecordSource>>()> comparisons = {};
  /// Opens a reader of `registry` from its beginning, for runs of several shards. Null: none are
  /// looked for.
  std::function<core::Result<std::unique_ptr<core::RecordSource>>()> registry = {};
};

class EvaluateStage final : public Stage {
 public:
  EvaluateStage(EvaluateOptions options, core::Log& log, core::Telemetry& telemetry);
  ~EvaluateStage() override;

  [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }
  core::Status open(const Instant& now) override;
  core::Status restore(std::int32_t partition, const core::RecordView& record) override;
  core::Result<std::vector<core::Position>> restored(std::int32_t partition,
                                                     std::span<const core::Position> committed,
                                                     const Instant& now) override;
  void started(std::int32_t partition, const Instant& now) override;
  void state_fault(std::int32_t partition, const core::Error& error, const Instant& now) override;
  std::optional<Refusal> handle(const core::RecordView& record,
                                const StageContext& context) override;
  std::optional<core::Duration> tick(const StageTick& tick) override;
  StageOutput take(const Instant& now) override;
  void committing() override;
  void committed(const Instant& now) override;
  void revoked(std::span<const core::StreamPartition> partitions) override;
  void lost(std::span<const core::StreamPartition> partitions) override { revoked(partitions); }
  void finish(const Instant& now) override;

  /// From any thread: the rules to go on with, from the next tick on.
  void reload(rules::RulesConfig rules);

  /// For tests and the simulated world; null before open().
  [[nodiscard]] rules::Engine* engine() { return engine_.get(); }

 private:
  /// Of a partition whose output counts.
  struct Snapshot {
    core::Duration due{};  // steady
    bool running = false;  // pieces of it are still to be written
  };

  [[nodiscard]] bool tells(const rules::Event& event) const;
  [[nodiscard]] bool piece_waits() const { return !ending_ && (piece_taken_ || piece_committing_); }
  void adopt_rules(const Instant& now);
  void settle_shards(const StageTick& tick);
  void write(std::int32_t partition, const rules::Event& event, bool ahead, StageOutput& out) const;

  EvaluateOptions options_;
  core::Mutex mutex_;
  std::optional<rules::RulesConfig> fresh_rules_ GUARDED_BY(mutex_);
  StageWiring wiring_;
  std::string state_prefix_;  // of its keys among those of other engines; empty: none
  core::Log& log_;
  CounterTable<rules::EngineStats> stats_;
  std::optional<core::Duration> counted_at_;  // steady; when stats_ was last brought up to date
  std::string telemetry_topic_;
  std::string source_;  // CloudEvents source of commands
  bool at_least_once_ = false;
  std::unique_ptr<rules::Engine> engine_;
  ComparisonReader comparisons_;  // what other partitions say of runs that ours are compared with
  RegistryReader registry_;       // what the first shards of runs came to
  ingest::JsonScalarDecoder json_;
  std::map<std::int32_t, Snapshot> live_;
  // One piece of a snapshot per commit: an issue never waits behind more than one of them.
  bool piece_taken_ = false;       // since the last commit began
  bool piece_committing_ = false;  // with the commit under way
  bool ending_ = false;
  std::map<std::int32_t, std::string> faults_;  // of partitions that are being restored
  Unreported<rules::Event> unreported_;
};

}  // namespace tocsin::app
