// Issues in, decided notifications out: whether and when somebody is told (docs/routing.md).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "actions/actions.h"
#include "app/loop/stage.h"
#include "app/loop/unreported.h"
#include "app/serve/counter_table.h"
#include "app/stages/run_board.h"
#include "core/log.h"
#include "core/telemetry.h"
#include "routing/routing.h"

namespace tocsin::app {

struct RouteOptions {
  routing::RouteConfig route;
  std::vector<routing::RuleActions> rule_actions;
  std::vector<routing::Integration> integrations;
  std::vector<routing::InhibitRule> inhibit_rules;
  routing::Config limits;
  std::string config_version;
  std::string cluster;
  std::string topic_prefix = "tocsin";
  std::vector<routing::TimeInterval> time_intervals;
};

/// The message of an integration as it will be sent; what fails is told and sent without.
using Render = std::function<core::Result<std::string>(const core::Notification& notification)>;

/// State series live in memory: after a restart the issues that still fire are shown again.
using ShowAgain =
    std::function<void(const routing::IssueView& view, std::span<const std::string> integrations)>;

/// They go to 0 when an episode is over, not when its message arrives.
using ShowEnd =
    std::function<void(const std::string& issue_key, std::uint64_t episode, core::WallTime now)>;

class RouteStage final : public Stage {
 public:
  /// `board` is told of the attempts that issues and jobs name; may be null.
  RouteStage(RouteOptions options, RunBoard* board, Render render, ShowAgain show_again,
             core::Log& log, core::Telemetry& telemetry);
  ~RouteStage() override;
  /// Before open().
  void on_end(ShowEnd show_end) { show_end_ = std::move(show_end); }
  /// Before open(): told which issues fire. Outlives the stage.
  void show_in(actions::FiringIssues* firing) { firing_ = firing; }

  [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }
  core::Status open(const Instant& now) override;
  core::Status restore(std::int32_t partition, const core::RecordView& record) override;
  core::Result<std::vector<core::Position>> restored(std::int32_t partition,
                                                     std::span<const core::Position> committed,
                                                     const Instant& now) override;
  std::optional<Refusal> handle(const core::RecordView& record,
                                const StageContext& context) override;
  std::optional<core::Duration> tick(const StageTick& tick) override;
  StageOutput take(const Instant& now) override;
  void committing() override { unreported_.committing(); }
  void committed(const Instant& now) override;

  /// The whole state, for tests and listings; null before open().
  [[nodiscard]] const routing::Router* router() const { return router_.get(); }

 private:
  class Probe;
  void show_firing() const;
  void note_episodes(const std::vector<routing::Transition>& transitions) const;
  void restore_at_once(const std::string& key, const core::RecordView& record);
  void note_stop(const core::RecordView& record, core::WallTime now);

  RouteOptions options_;
  StageWiring wiring_;
  RunBoard* board_;
  Render render_;
  ShowAgain show_again_;
  ShowEnd show_end_;
  actions::FiringIssues* firing_ = nullptr;
  core::Log& log_;
  CounterTable<routing::Stats> stats_;
  std::unique_ptr<Probe> probe_;
  std::unique_ptr<routing::Router> router_;
  std::map<std::string, std::string> newest_;   // state records by key, until restored()
  std::map<std::string, core::Error> damaged_;  // of those that are restored as they are read
  std::set<std::int32_t> inputs_;               // partitions that are ours
  core::Duration measured_{};                   // when figures with labels were last shown; steady
  bool restored_ = false;
  Unreported<core::Notification> unreported_;
};

}  // namespace tocsin::app
