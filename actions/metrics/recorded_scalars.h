// Newest scalars of runs as records of the topic `metrics`, every `interval`. Internal to actions.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "actions/contract/descriptor.h"
#include "actions/metrics/push_rounds.h"
#include "actions/metrics/push_settings.h"

namespace tocsin::actions {

class RecordedScalars {
 public:
  /// Null: none are asked for, or nobody reads them.
  static std::unique_ptr<RecordedScalars> make(const PushSettings& settings,
                                               const Environment& environment,
                                               const IntegrationName& name);
  RecordedScalars(const PushSettings& settings, const Environment& environment,
                  const IntegrationName& name);
  ~RecordedScalars();
  RecordedScalars(const RecordedScalars&) = delete;
  RecordedScalars& operator=(const RecordedScalars&) = delete;

  /// What a round does: one record per run that has scalars, if it is due and this process delivers.
  void turn();

 private:
  core::Status write();

  const std::string integration_;
  const core::Duration interval_;
  core::Clock& clock_;
  core::Log& log_;
  core::Counter& rounds_failed_;
  const std::function<bool()> delivers_;
  const std::function<core::Status(const core::OutRecord&)> publish_;
  TrainingScalars& scalars_;
  core::Duration due_{};                // of the thread of the rounds
  bool failing_ = false;                // the same
  std::unique_ptr<PushRounds> rounds_;  // last: ends before what it uses
};

}  // namespace tocsin::actions
