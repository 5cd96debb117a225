// How many notifications were given up that nobody has replayed or discarded: the gauge
// `tocsin_router_dead_letters`, kept from `router-deadletter` by the leader.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "app/loop/stage.h"
#include "core/telemetry.h"
#include "core/time.h"

namespace tocsin::app {

class LettersStage final : public Stage {
 public:
  /// `kept`: for so long the topic keeps a record. `telemetry` outlives the stage.
  LettersStage(core::Duration kept, core::Telemetry& telemetry);

  [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }
  core::Status open(const Instant& now) override;
  std::optional<Refusal> handle(const core::RecordView& record,
                                const StageContext& context) override;
  std::optional<core::Duration> tick(const StageTick& tick) override;
  StageOutput take(const Instant& now) override;
  void finish(const Instant& now) override;

 private:
  using Kind = std::pair<std::string, std::string>;  // integration, reason
  struct Letter {
    Kind kind;
    core::WallTime told{};  // its newest record
    bool open = false;
  };

  void close(Letter& letter);
  void count(const Kind& kind, std::int64_t change);
  void forget();
  void drop_old(core::WallTime now);

  StageWiring wiring_;
  core::Duration kept_;
  core::Telemetry& telemetry_;
  std::map<std::string, Letter, std::less<>> letters_;          // by notification id
  std::deque<std::pair<core::WallTime, std::string>> by_time_;  // as the records came
  std::map<Kind, std::int64_t> open_;                           // those that were ever counted
};

}  // namespace tocsin::app
