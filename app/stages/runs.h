// What is going on and what was asked of whom: keeps the board of runs and the ledgers of stops and
// of profiles up to date from `registry` and `commands`. Writes only what was asked before, again:
// stops for workers of the same attempt that started after one was written, and stops and traces for
// a later step where a rank has not heard in time.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "actions/actions.h"
#include "app/loop/stage.h"
#include "app/stages/run_board.h"

namespace tocsin::app {

class RunsStage final : public Stage {
 public:
  /// `leads`: does this process lead routing? Only then does it write anything again. Everything outlives the stage.
  RunsStage(RunBoard& board, actions::StopLedger& ledger, actions::ProfileLedger& profiles,
            std::string cluster, std::function<bool()> leads);

  [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }
  core::Status open(const Instant& now) override;
  void started(std::int32_t partition, const Instant& now) override;
  std::optional<Refusal> handle(const core::RecordView& record,
                                const StageContext& context) override;
  std::optional<core::Duration> tick(const StageTick& tick) override;
  StageOutput take(const Instant& now) override;

 private:
  void ask_again(const core::Ack& ack, core::WallTime now);

  StageWiring wiring_;
  RunBoard& board_;
  actions::StopLedger& ledger_;
  actions::ProfileLedger& profiles_;
  std::string source_;  // CloudEvents source of commands
  std::function<bool()> leads_;
  actions::StopMuster muster_;
  std::vector<core::Command> again_;  // commands to be written once more
  std::set<std::int32_t> inputs_;
};

}  // namespace tocsin::app
