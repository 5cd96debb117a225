// The outbox in, effects on the outside: lanes decide what goes out next, a caller carries it out
// (docs/actions/README.md).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "actions/actions.h"
#include "app/loop/stage.h"
#include "app/loop/unreported.h"
#include "core/log.h"
#include "core/telemetry.h"

namespace tocsin::app {

struct DeliverOptions {
  std::vector<actions::LaneOptions> lanes;
  std::string cluster;
  std::string topic_prefix = "tocsin";
};

/// A caller for one term of leadership: after it nothing that is still queued is started.
using CallerFactory = std::function<std::unique_ptr<actions::Caller>()>;

class DeliverStage final : public Stage {
 public:
  /// How far back the log of deliveries is read at a start. What can be read again from the outbox
  /// is at most its 14 days old, and a delivery is never older than what it delivered.
  static constexpr core::Duration kHistory = std::chrono::hours(24 * 15);
  /// Clocks of writers differ and step; beyond this much doubt the whole log is read.
  static constexpr core::Duration kClockDoubt = std::chrono::hours(24);

  /// `may_start`: may an attempt begin now (the board of runs is complete)? `random`: jitter in
  /// [0, 1).
  DeliverStage(DeliverOptions options, CallerFactory callers, std::function<bool()> may_start,
               actions::DeliveryLanes::Random random, core::Log& log, core::Telemetry& telemetry);
  ~DeliverStage() override;

  [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }
  core::Status open(const Instant& now) override;
  [[nodiscard]] std::optional<core::WallTime> state_since(const Instant& now) const override;
  [[nodiscard]] bool needs_older_state() const override { return too_short_; }
  core::Status restore(std::int32_t partition, const core::RecordView& record) override;
  /// What people ask of integrations is read again from its beginning: it has no other state.
  core::Result<std::vector<core::Position>> restored(std::int32_t partition,
                                                     std::span<const core::Position> committed,
                                                     const Instant& now) override;
  void started(std::int32_t partition, const Instant& now) override;
  std::optional<Refusal> handle(const core::RecordView& record,
                                const StageContext& context) override;
  std::optional<core::Duration> tick(const StageTick& tick) override;
  StageOutput take(const Instant& now) override;
  void committing() override { unreported_.committing(); }
  void committed(const Instant& now) override;
  void finish(const Instant& now) override;
  [[nodiscard]] bool busy() const override;

 private:
  void collect(core::WallTime now);
  std::optional<Refusal> obey(const core::RecordView& record, const StageContext& context);

  DeliverOptions options_;
  StageWiring wiring_;
  CallerFactory callers_;
  std::function<bool()> may_start_;
  actions::DeliveryLanes::Random random_;
  core::Log& log_;
  core::Telemetry& telemetry_;
  core::Gauge& threads_;
  std::unique_ptr<actions::DeliveryLanes> lanes_;
  std::unique_ptr<actions::Caller> caller_;
  std::vector<std::unique_ptr<actions::Caller>> retired_;  // with calls under way
  std::optional<core::WallTime> since_;  // what is known of deliveries begins here
  bool too_short_ = false;               // and something older than that has come
  std::set<std::int32_t> outbox_;        // partitions that are read
  bool started_ = false;
  bool ending_ = false;
  core::Duration measured_{};
  Unreported<core::Delivery> unreported_;
  std::optional<core::Position> orders_read_;  // of router-control, since the last take()
};

}  // namespace tocsin::app
