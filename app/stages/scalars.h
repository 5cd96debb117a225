// Reads the scalars of `telemetry` that a publish_metric asks for, as they come. Runs only where somebody
// asks, and only while this process leads. Writes nothing.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "actions/actions.h"
#include "app/loop/stage.h"
#include "core/identity.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

namespace tocsin::app {

class ScalarsStage final : public Stage {
 public:
  using JobOf = std::function<std::string(const core::RunUid& run)>;

  /// Both and what `job_of` looks at outlive the stage. `job_of`: the job of a run whose names do not say
  /// it; empty: unknown.
  ScalarsStage(actions::TrainingScalars& scalars, JobOf job_of, core::Telemetry& telemetry);

  [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }
  core::Status open(const Instant& now) override;
  std::optional<Refusal> handle(const core::RecordView& record,
                                const StageContext& context) override;
  std::optional<core::Duration> tick(const StageTick& tick) override;
  StageOutput take(const Instant& now) override;

 private:
  /// What a run's producers have called things: only what somebody asks for, and workers.
  struct Names {
    std::string job;
    std::map<std::uint64_t, std::string> scalars;
    std::map<std::uint64_t, std::string> workers;
    core::WallTime heard{};
  };

  void learn(const core::FrameHeader& header, const core::Dictionary& entries);
  void note(const core::FrameHeader& header, const core::FrameView& frame);
  Names* names_of(const core::RunUid& run);

  StageWiring wiring_;
  actions::TrainingScalars& scalars_;
  JobOf job_of_;
  core::Counter& refused_;
  std::uint64_t told_refused_ = 0;
  ingest::JsonScalarDecoder json_;
  std::map<core::RunUid, Names> runs_;
};

}  // namespace tocsin::app
