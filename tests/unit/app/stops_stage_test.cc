// The stage that signals processes: what it must have read first.
#include "app/stages/stops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <vector>

#include "ingest/ingest.h"
#include "tests/support/record_fixture.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr core::WallTime kStart{std::chrono::seconds(1'767'312'000)};

Instant at(core::Duration since) { return {kStart + since, since}; }

class Processes final : public actions::ProcessControl {
 public:
  explicit Processes(std::vector<int>& signals) : signals_(signals) {}
  actions::Observed send(const actions::ProcessFence&, int signal) override {
    if (signal != 0) signals_.push_back(signal);
    return actions::Observed::signalled;
  }

 private:
  std::vector<int>& signals_;
};

core::Command stop_command() {
  core::Command out;
  out.command_id = "cmd_one";
  out.action = "stop";
  out.run = core::run_uid_for("job", "run");
  out.issued_at = kStart;
  out.expires_at = kStart + 10min;
  out.args = core::ValueMap{
      {"deadline", core::ValueMap{{"ack", "30s"}, {"graceful", "2m"}, {"total", "3m"}}},
      {"fence", actions::fence_value(actions::ProcessFence{4711, 998877, "b", "h1"})}};
  return out;
}

class StopsStageTest : public testing::Test {
 protected:
  StopsStageTest() {
    EXPECT_TRUE(stage_.open(at(0s)));
    stage_.started(0, at(0s));
  }
  void hand_over(const core::OutRecord& record, const Instant& now) {
    const auto refusal = stage_.handle(ingest::fixture::view_of(record), {now, false});
    ASSERT_FALSE(refusal) << refusal->detail;
  }
  void tick(const Instant& now, bool live) {
    (void)stage_.tick({now, [live](std::int32_t) { return live; },
                       [](std::int32_t) { return std::optional<core::Duration>(); }});
  }

  core::NullLog log_;
  core::NullTelemetry telemetry_;
  std::vector<int> signals_;
  StopsStage stage_{
      {"h1", "c1", nullptr, nullptr}, std::make_unique<Processes>(signals_), log_, telemetry_};
};

TEST_F(StopsStageTest, WhoDoesNotAnswerInTimeIsSignalled) {
  tick(at(0s), true);
  hand_over(ingest::encode_command(stop_command(), "/c1/router"), at(1s));
  tick(at(29s), true);
  EXPECT_THAT(signals_, IsEmpty());
  tick(at(30s), true);
  EXPECT_THAT(signals_, ElementsAre(SIGTERM));
}

// The broker was away: what answers the command, or replaces its launch, may stand further on.
TEST_F(StopsStageTest, WhoHasNotReadEverythingSignalsNobody) {
  tick(at(0s), true);
  hand_over(ingest::encode_command(stop_command(), "/c1/router"), at(40s));
  tick(at(40s), false);
  EXPECT_THAT(signals_, IsEmpty());

  core::Ack stale;
  stale.command_id = "cmd_one";
  stale.action = "stop";
  stale.phase = "refused";
  stale.reason = "stale";
  stale.run = core::run_uid_for("job", "run");
  stale.time = kStart + 35s;
  hand_over(ingest::encode_ack(stale, ""), at(41s));
  tick(at(41s), true);
  EXPECT_THAT(signals_, IsEmpty());
}

}  // namespace
}  // namespace tocsin::app
