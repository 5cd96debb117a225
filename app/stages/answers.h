// What hooks answer to those who ask them for captures in a slot of their own: counted, and logged
// once per request and answer, however many ranks give it. Writes nothing.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "app/loop/stage.h"
#include "core/log.h"
#include "core/telemetry.h"

namespace tocsin::app {

class AnswersStage final : public Stage {
 public:
  /// `askers`: whose answers, as their slots `capture/<asker>` name them. `log` and `telemetry`
  /// outlive the stage.
  AnswersStage(std::set<std::string> askers, core::Log& log, core::Telemetry& telemetry);

  [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }
  core::Status open(const Instant& now) override;
  void started(std::int32_t partition, const Instant& now) override;
  std::optional<Refusal> handle(const core::RecordView& record,
                                const StageContext& context) override;
  std::optional<core::Duration> tick(const StageTick& tick) override;
  StageOutput take(const Instant& now) override;

 private:
  StageWiring wiring_;
  std::set<std::string> askers_;
  core::Log& log_;
  core::Telemetry& telemetry_;
  core::WallTime opened_{};
  // Everything that was there is read: what comes from here on is news, whatever clocks say.
  bool caught_up_ = false;
  std::set<std::int32_t> inputs_;
  // A loop that starts over reads from the beginning; the newest offset seen of each stream.
  std::map<std::pair<std::string, std::int32_t>, std::int64_t> seen_;
  std::set<std::string> told_;  // request, answer and reason
};

}  // namespace tocsin::app
