// What issues were decided by, kept longer than the topic keeps it (`evidence:`). One process of a
// cluster copies an issue's: its partition of `issues` decides which.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/recordings/evidence_copy.h"
#include "app/stages/afterwards.h"
#include "core/log.h"
#include "core/telemetry.h"

namespace tocsin::app {

struct EvidenceOptions {
  EvidenceConfig config;
  std::string cluster;
  std::string topic_prefix = "tocsin";
  std::string instance = "0";  // of several processes: part of the transactional id
};

class EvidenceStage final : public AfterwardsStage<core::Issue> {
 public:
  /// copy_evidence().
  using Copy =
      std::function<core::Result<std::unique_ptr<EvidenceCopying>>(const core::Issue& issue)>;

  /// `log` and `telemetry` outlive the stage.
  EvidenceStage(EvidenceOptions options, Copy copy, core::Log& log, core::Telemetry& telemetry);

  std::optional<core::Duration> tick(const StageTick& tick) override;

 private:
  std::optional<core::Duration> wanted(const core::Issue& issue, const core::RecordView& record,
                                       const StageContext& context) override;
  bool work(const core::Issue& issue, const Instant& now,
            std::optional<core::RuleStatusEvent>& told) override;
  void leave() override { copying_.reset(); }
  bool begin(const core::Issue& issue);
  core::RuleStatusEvent failed(const core::Issue& issue, const std::string& why);
  bool room_for(const core::Issue& issue);

  EvidenceConfig config_;
  Copy copy_;
  std::unique_ptr<EvidenceCopying> copying_;  // of the first issue that waits
  core::Log& log_;
  core::Counter& kept_;
  core::Counter& failed_;
  core::Counter& too_many_;
  core::Counter& too_old_;
  core::Counter& removed_;
  core::Duration cleaned_{};  // steady: when old copies were looked for
};

}  // namespace tocsin::app
