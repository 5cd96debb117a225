// What issues were decided by, kept longer than the topic keeps it (`evidence:`). One process of a
// cluster copies an issue's: its partition of `issues` decides which.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "app/evidence_copy.h"
#include "app/stage.h"
#include "app/stages/input_positions.h"
#include "core/log.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

namespace tocsin::app {

struct EvidenceOptions {
  EvidenceConfig config;
  std::string cluster;
  std::string topic_prefix = "tocsin";
  std::string instance = "0";  // of several processes: part of the transactional id
};

class EvidenceStage final : public Stage {
 public:
  /// copy_evidence(); may take some seconds.
  using Copy = std::function<core::Result<EvidenceCopy>(const core::Issue& issue)>;

  /// `log` and `telemetry` outlive the stage.
  EvidenceStage(EvidenceOptions options, Copy copy, core::Log& log, core::Telemetry& telemetry);

  [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }
  core::Status open(const Instant& now) override;
  std::optional<Refusal> handle(const core::RecordView& record,
                                const StageContext& context) override;
  std::optional<core::Duration> tick(const StageTick& tick) override;
  StageOutput take(const Instant& now) override;
  void revoked(std::span<const core::StreamPartition> partitions) override;
  void lost(std::span<const core::StreamPartition> partitions) override { revoked(partitions); }

 private:
  struct Waiting {
    core::StreamPartition where;
    std::int64_t offset = 0;
    core::Issue issue;
  };

  bool room_for(const core::Issue& issue);
  [[nodiscard]] bool wanted(const core::Issue& issue) const;
  std::optional<core::RuleStatusEvent> keep(const core::Issue& issue);

  EvidenceOptions options_;
  Copy copy_;
  core::Log& log_;
  core::Counter& kept_;
  core::Counter& failed_;
  core::Counter& too_many_;
  core::Counter& too_old_;
  core::Counter& removed_;
  StageWiring wiring_;
  std::deque<Waiting> waiting_;  // in the order in which they were told
  InputPositions positions_;
  core::Duration cleaned_{};  // steady: when old copies were looked for
};

}  // namespace tocsin::app
