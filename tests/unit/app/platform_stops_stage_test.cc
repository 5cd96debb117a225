// The leader's stage for runs that a platform runs: records first, calls second, nothing twice.
#include "app/stages/platform_stops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "ingest/ingest.h"
#include "tests/support/record_fixture.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr core::WallTime kBegin{std::chrono::seconds(1'767'312'000)};

Instant moment_at(core::Duration since) { return {kBegin + since, since}; }

class OnePlatform final : public actions::PlatformStop {
 public:
  [[nodiscard]] std::string_view name() const override { return "one"; }
  [[nodiscard]] bool reaches(const core::Value& fence) const override {
    return core::text_at(fence, "platform") == "one";
  }
  actions::PlatformAnswer carry_out(const actions::PlatformTarget&, actions::PlatformRung,
                                    std::chrono::milliseconds) override {
    return {actions::PlatformSeen::ended, "it has ended", true};
  }
};

class CountingCaller final : public actions::PlatformCaller {
 public:
  explicit CountingCaller(std::vector<actions::PlatformCall>& calls) : calls_(calls) {}
  void submit(actions::PlatformCall call) override { calls_.push_back(std::move(call)); }
  std::vector<std::pair<actions::PlatformCall, actions::PlatformAnswer>> take() override {
    std::vector<std::pair<actions::PlatformCall, actions::PlatformAnswer>> out;
    for (; taken_ < calls_.size(); ++taken_) {
      auto& call = calls_[taken_];
      out.emplace_back(call, call.platform->carry_out(call.target, call.rung, kBudget));
    }
    return out;
  }

 private:
  std::vector<actions::PlatformCall>& calls_;
  std::size_t taken_ = 0;
};

class PlatformStopsStageTest : public testing::Test {
 protected:
  PlatformStopsStageTest() {
    PlatformStopsStage::Platforms platforms;
    platforms.push_back(std::make_unique<OnePlatform>());
    stage_ = std::make_unique<PlatformStopsStage>(
        PlatformStopsOptions{"h1", "c1"}, std::move(platforms),
        [this] { return std::make_unique<CountingCaller>(calls_); }, log_, telemetry_);
    EXPECT_TRUE(stage_->open(moment_at(0s)));
    stage_->started(0, moment_at(0s));
  }
  static core::Command command() {
    core::Command out;
    out.command_id = "cmd_one";
    out.action = "stop";
    out.run = core::run_uid_for("job", "run");
    out.issued_at = kBegin;
    out.expires_at = kBegin + 10min;
    out.args = core::ValueMap{
        {"deadline", core::ValueMap{{"ack", "30s"}, {"graceful", "2m"}, {"total", "3m"}}},
        {"fence", core::ValueMap{{"platform", "one"}}}};
    return out;
  }
  void hand_over(const core::OutRecord& record, core::Duration since) {
    const auto refusal =
        stage_->handle(ingest::fixture::view_of(record), {moment_at(since), false});
    ASSERT_FALSE(refusal) << refusal->detail;
  }
  void tick(core::Duration since, bool live = true) {
    (void)stage_->tick({moment_at(since), [live](std::int32_t) { return live; },
                        [](std::int32_t) { return std::optional<core::Duration>(); }});
  }
  std::vector<std::string> phases(const StageOutput& output) {
    std::vector<std::string> out;
    for (const StageRecord& one : output.records) {
      if (one.record.topic != core::topic::kAcks) continue;
      const auto ack = ingest::decode_ack(ingest::fixture::view_of(one.record));
      out.push_back(ack->action + " " + ack->phase);
    }
    return out;
  }

  core::NullLog log_;
  core::NullTelemetry telemetry_;
  std::vector<actions::PlatformCall> calls_;
  std::unique_ptr<PlatformStopsStage> stage_;
};

TEST_F(PlatformStopsStageTest, AsksOnlyOnceTheRecordIsDurable) {
  hand_over(ingest::encode_command(command(), "/c1/router"), 0s);
  tick(30s);
  EXPECT_THAT(calls_, IsEmpty()) << "its record was not even taken";
  EXPECT_THAT(phases(stage_->take(moment_at(30s))), ElementsAre("stop/platform platform_graceful"));
  tick(31s);
  EXPECT_THAT(calls_, IsEmpty()) << "taken, and not durable";
  stage_->committing();
  tick(32s);
  EXPECT_THAT(calls_, IsEmpty());
  stage_->committed(moment_at(33s));
  tick(33s);
  ASSERT_EQ(calls_.size(), 1u);
  tick(34s);
  EXPECT_THAT(phases(stage_->take(moment_at(34s))), ElementsAre("stop/platform already_ended"));
}

TEST_F(PlatformStopsStageTest, WhoHasNotReadEverythingAsksNobody) {
  hand_over(ingest::encode_command(command(), "/c1/router"), 0s);
  tick(40s, false);
  EXPECT_TRUE(stage_->take(moment_at(40s)).records.empty());
  core::Ack stale;
  stale.command_id = "cmd_one";
  stale.action = "stop";
  stale.phase = "refused";
  stale.reason = "stale";
  stale.run = command().run;
  stale.time = kBegin + 35s;
  hand_over(ingest::encode_ack(stale, ""), 41s);
  tick(41s);
  stage_->committing();
  stage_->committed(moment_at(42s));
  tick(43s);
  EXPECT_THAT(calls_, IsEmpty());
}

}  // namespace
}  // namespace tocsin::app
