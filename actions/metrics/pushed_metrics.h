// The action behind every transport that pushes: keeps the picture of one integration, pushes what a
// notification changed, and all of it again every `interval`. Internal to actions.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "actions/metrics/metric_transport.h"
#include "actions/metrics/push_rounds.h"
#include "actions/metrics/push_settings.h"
#include "core/mutex.h"

namespace tocsin::actions {

class PushedMetrics final : public core::Action {
 public:
  /// `keeps`: what `sink` was made from.
  PushedMetrics(const PushSettings& settings, std::shared_ptr<const void> keeps,
                std::unique_ptr<MetricSink> sink, const Environment& environment,
                const IntegrationName& name, const CommonConfig& common);
  ~PushedMetrics() override;

  [[nodiscard]] core::Result<std::string> render(
      const core::Notification& notification) const override;
  core::AttemptOutcome execute(const core::Notification& notification, std::uint32_t attempt,
                               std::chrono::milliseconds budget) override;
  /// What a round does: pushes the whole picture if it is due and this process delivers. A process that
  /// no longer delivers forgets what it knew: another one shows it now.
  void turn();

 private:
  core::AttemptOutcome push(MetricPush push, std::chrono::milliseconds budget) REQUIRES(mutex_);
  core::AttemptOutcome push_all(std::chrono::milliseconds budget, bool periodic) REQUIRES(mutex_);
  [[nodiscard]] core::WallTime next_moment() REQUIRES(mutex_);
  void note(const core::AttemptOutcome& outcome) REQUIRES(mutex_);

  const std::shared_ptr<const void> keeps_;
  const std::string integration_;
  const std::vector<std::string> labels_;
  const core::Duration interval_;
  const std::chrono::milliseconds round_budget_;
  const bool is_trial_;  // nobody keeps a picture: what a test shows ends with its close
  core::Clock& clock_;
  core::Log& log_;
  core::Counter& rounds_failed_;
  const std::function<bool()> delivers_;
  const std::shared_ptr<IssueMetrics> picture_;
  TrainingScalars* const scalars_;  // null: none are asked for

  core::Mutex mutex_;  // held while pushing: a push begins after the one before it has ended
  const std::unique_ptr<MetricSink> sink_ PT_GUARDED_BY(mutex_);
  // What the far side was told and may still show, by its labels.
  std::map<std::vector<std::pair<std::string, std::string>>, IssueSeries> told_ GUARDED_BY(mutex_);
  core::WallTime newest_ GUARDED_BY(mutex_){};
  bool led_ GUARDED_BY(mutex_) = false;
  bool failing_ GUARDED_BY(mutex_) = false;
  core::Duration due_ GUARDED_BY(mutex_){};
  std::unique_ptr<PushRounds> rounds_;  // last: ends before what it uses
};

}  // namespace tocsin::actions
