// What hooks answer to a rule worker: what is told of it, and what is not.
#include "app/stages/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/serve/metrics.h"
#include "core/log.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class AnswerLines final : public core::Log {
 public:
  void write(core::Level level, std::string_view event,
             std::initializer_list<core::Field> fields) override {
    std::string line = (level == core::Level::warn ? "warn " : "info ") + std::string(event);
    for (const auto& [name, value] : fields) {
      if (name == "action" || name == "phase" || name == "reason") {
        line += " " + *core::as<std::string>(value);
      }
    }
    lines.push_back(std::move(line));
  }
  std::vector<std::string> lines;
};

class AnswersStageTest : public testing::Test {
 protected:
  AnswersStageTest() {
    EXPECT_TRUE(stage_.open(at(1h)));
    stage_.started(0, at(1h));
  }
  [[nodiscard]] static Instant at(core::Duration since) {
    return {core::wall_time(1767323045678000000) + since, since};
  }
  std::optional<Refusal> answered(const std::string& action, const std::string& phase,
                                  core::Duration when, std::string reason = "") {
    core::Ack ack;
    ack.command_id = "cmd_1";
    ack.action = action;
    ack.phase = phase;
    ack.reason = std::move(reason);
    ack.run = core::run_uid_v5("answers");
    ack.worker = "r0";
    ack.time = at(when).wall;
    records_.push_back(ingest::encode_ack(ack, ""));
    return read(records_.size() - 1);
  }
  std::optional<Refusal> read(std::size_t offset) {
    const core::OutRecord& record = records_.at(offset);
    core::RecordView view;
    view.topic = view.stream = "acks";
    view.offset = static_cast<std::int64_t>(offset);
    view.key = record.key;
    view.value = std::as_bytes(std::span(*record.value));
    view.native = &record;
    view.find_header = [](const void* native,
                          std::string_view name) -> std::optional<std::string_view> {
      for (const auto& [key, value] : static_cast<const core::OutRecord*>(native)->headers) {
        if (key == name) return value;
      }
      return std::nullopt;
    };
    return stage_.handle(view, {at(2h), false});
  }
  void tick(bool live) {
    const auto is_live = [live](std::int32_t) { return live; };
    (void)stage_.tick(
        {at(2h), is_live, [](std::int32_t) { return std::optional<core::Duration>(); }});
  }

  AnswerLines log_;
  PrometheusTelemetry telemetry_;
  AnswersStage stage_{{"mine"}, log_, telemetry_};
  std::vector<core::OutRecord> records_;
};

TEST_F(AnswersStageTest, SaysAndCountsWhatItsRulesWereAnswered) {
  ASSERT_FALSE(answered("capture/mine", "received", 2h));  // no news: it only says who listens
  ASSERT_FALSE(answered("capture/mine", "applied", 2h, "without inputs/raw"));
  ASSERT_FALSE(answered("capture/mine", "refused", 2h, "too_many"));
  ASSERT_FALSE(answered("capture/mine", "refused", 2h, "stale"));
  EXPECT_THAT(log_.lines,
              ElementsAre("info capture_answered capture/mine applied without inputs/raw",
                          "warn capture_answered capture/mine refused too_many",
                          "warn capture_answered capture/mine refused stale"));
  const std::string metrics = telemetry_.render();
  const std::string name = "tocsin_rules_capture_answers_total{asker=\"mine\",phase=";
  EXPECT_THAT(metrics, HasSubstr(name + "\"refused\"} 2"));
  EXPECT_THAT(metrics, HasSubstr(name + "\"applied\"} 1"));
  EXPECT_THAT(metrics, HasSubstr(name + "\"received\"} 1"));
}

TEST_F(AnswersStageTest, AThousandRanksWithOneAnswerAreOneLine) {
  for (int rank = 0; rank < 1000; ++rank) ASSERT_FALSE(answered("capture/mine", "applied", 2h));
  EXPECT_EQ(log_.lines.size(), 1U);
  EXPECT_THAT(telemetry_.render(), HasSubstr("phase=\"applied\"} 1000"));
}

TEST_F(AnswersStageTest, OthersAreAnsweredToo) {
  ASSERT_FALSE(answered("stop", "received", 2h));
  ASSERT_FALSE(answered("capture", "applied", 2h));
  ASSERT_FALSE(answered("capture/other", "applied", 2h));
  EXPECT_THAT(log_.lines, ElementsAre());
  EXPECT_THAT(telemetry_.render(), Not(HasSubstr("capture_answers")));
}

// The topic is read from its beginning.
TEST_F(AnswersStageTest, WhatWasAnsweredToAnEarlierWorkerIsNoNews) {
  ASSERT_FALSE(answered("capture/mine", "applied", 30min));
  EXPECT_THAT(log_.lines, ElementsAre());
  tick(false);
  ASSERT_FALSE(answered("capture/mine", "applied", 31min));
  EXPECT_THAT(log_.lines, ElementsAre());
  tick(true);
  ASSERT_FALSE(answered("capture/mine", "applied", 32min));
  EXPECT_EQ(log_.lines.size(), 1U) << "a hook whose clock is behind";
}

TEST_F(AnswersStageTest, StartingOverTellsNothingTwice) {
  ASSERT_FALSE(answered("capture/mine", "applied", 2h));
  ASSERT_TRUE(stage_.open(at(3h)));
  ASSERT_FALSE(read(0));
  ASSERT_FALSE(answered("capture/mine", "ended", 2h));
  EXPECT_EQ(log_.lines.size(), 2U);
}

TEST_F(AnswersStageTest, AnUnreadableAnswerIsRefused) {
  core::OutRecord broken = ingest::encode_ack({}, "");
  broken.value = "{";
  records_.push_back(broken);
  const auto refusal = read(0);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, "bad_ack");
}

}  // namespace
}  // namespace tocsin::app
