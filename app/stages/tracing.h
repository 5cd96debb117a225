// Reads what the router decided and delivery did, and exports it as spans (section `tracing`,
// docs/tracing.md). Runs only while this process leads. Writes nothing to topics.
//
// A trace is no alarm: what happens while nobody leads, or beyond what waits while the collector is
// away, has no spans.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "actions/actions.h"
#include "app/loop/stage.h"
#include "app/stages/span_courier.h"
#include "core/log.h"
#include "core/telemetry.h"

namespace tocsin::app {

class TracingStage final : public Stage {
 public:
  using MakeCourier = std::function<std::unique_ptr<SpanCourier>()>;

  /// `courier` makes what carries spans, while the stage is open.
  TracingStage(MakeCourier courier, core::Log& log, core::Telemetry& telemetry);

  [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }
  core::Status open(const Instant& now) override;
  std::optional<Refusal> handle(const core::RecordView& record,
                                const StageContext& context) override;
  std::optional<core::Duration> tick(const StageTick& tick) override;
  StageOutput take(const Instant& now) override;
  void finish(const Instant& now) override;

 private:
  /// An attempt whose message has not been read yet waits for it: they are on two topics.
  struct Early {
    core::Delivery delivery;
    core::Duration until{};  // steady
  };

  void wait_for_sending(actions::Span span);
  void take_answer(const Instant& now);
  void release_early(core::Duration now);
  void drop(std::size_t count, const std::string& why);

  StageWiring wiring_;
  MakeCourier make_courier_;
  core::Log& log_;
  core::Counter& sent_;
  core::Counter& dropped_;
  std::unique_ptr<SpanCourier> courier_;
  actions::AlarmSpans spans_;
  std::deque<actions::Span> waiting_;
  std::deque<Early> early_;
  bool under_way_ = false;
  core::Duration retry_at_{};  // steady
  core::Duration backoff_{};
  std::string trouble_;  // why the last parcel was not taken; empty: it was
  std::string said_;     // why spans were dropped, as the log has it
};

}  // namespace tocsin::app
