// What is going on and what was asked of whom: keeps the board of runs and the ledger of stops up
// to date from `registry` and `commands`. Writes nothing.
#pragma once

#include <set>
#include <string>

#include "actions/actions.h"
#include "app/run_board.h"
#include "app/stage.h"

namespace tocsin::app {

class RunsStage final : public Stage {
 public:
  /// Both outlive the stage.
  RunsStage(RunBoard& board, actions::StopLedger& ledger);

  [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }
  core::Status open(const Instant& now) override;
  void started(std::int32_t partition, const Instant& now) override;
  std::optional<Refusal> handle(const core::RecordView& record,
                                const StageContext& context) override;
  std::optional<core::Duration> tick(const StageTick& tick) override;
  StageOutput take(const Instant& /*now*/) override { return {}; }

 private:
  StageWiring wiring_;
  RunBoard& board_;
  actions::StopLedger& ledger_;
  std::set<std::int32_t> inputs_;
};

}  // namespace tocsin::app
