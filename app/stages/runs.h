// What is going on and what was asked of whom: keeps the board of runs and the ledgers of stops and
// of profiles up to date from `registry` and `commands`. Writes only what was asked before, again:
// stops for workers of the same attempt that started after one was written, and stops and traces for
// a later step where a rank has not heard in time, and what nodes' agents were asked. A stop that waited for a person's word is written
// once it is given.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "actions/actions.h"
#include "app/loop/stage.h"
#include "app/stages/agent_renewal.h"
#include "app/stages/run_board.h"

namespace tocsin::app {

class RunsStage final : public Stage {
 public:
  /// `leads`: does this process lead routing? Only then does it write anything again. Everything outlives the stage.
  RunsStage(RunBoard& board, actions::StopLedger& ledger, actions::StopApprovals& approvals,
            actions::ProfileLedger& profiles, std::string cluster, std::function<bool()> leads);
  /// Before open(): which issues fire, for stops that wait. Outlives the stage.
  void look_at(const actions::FiringIssues* firing) { firing_ = firing; }
  /// Before open(): captures and adjustments that issues ask for. Outlives the stage.
  void steer_by(actions::SteeringLedger* steering) { steering_ = steering; }

  [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }
  core::Status open(const Instant& now) override;
  void started(std::int32_t partition, const Instant& now) override;
  std::optional<Refusal> handle(const core::RecordView& record,
                                const StageContext& context) override;
  std::optional<core::Duration> tick(const StageTick& tick) override;
  StageOutput take(const Instant& now) override;
  void committing() override { begun_ = taken_; }
  void committed(const Instant& now) override;

 private:
  std::optional<Refusal> note_request(const core::RecordView& record);
  void follow_words(core::WallTime now, core::WallTime heard);
  void ask_again(const core::Ack& ack, core::WallTime now);
  void steer_again(core::WallTime now);

  StageWiring wiring_;
  RunBoard& board_;
  actions::StopLedger& ledger_;
  actions::StopApprovals& approvals_;
  actions::ProfileLedger& profiles_;
  std::string cluster_;
  std::string source_;  // CloudEvents source of commands
  std::function<bool()> leads_;
  const actions::FiringIssues* firing_ = nullptr;
  actions::SteeringLedger* steering_ = nullptr;
  actions::StopMuster muster_;
  AgentRenewal agents_;
  std::vector<core::Command> again_;    // commands to be written once more
  std::vector<core::Command> allowed_;  // by a person's word, until they are durable
  std::vector<core::OutRecord> words_;  // what became of requests, and what people hear of it
  std::size_t taken_ = 0;               // of allowed_: given away
  std::size_t begun_ = 0;               // of these: in the commit under way
  std::set<std::int32_t> inputs_;
};

}  // namespace tocsin::app
