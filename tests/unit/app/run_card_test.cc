// The run card: answers of the questions with their numbers, worst first.
#include "app/run_card.h"

#include <gtest/gtest.h>

#include "app/status_text.h"
#include "core/json.h"
#include "tests/support/record_fixture.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
const core::WallTime kThen = core::WallTime{} + 20'000h;

core::RuleStatusEvent answered(const char* json) {
  core::RuleStatusEvent out;
  out.rule = out.rule_type = "chance_level";
  out.status = core::RuleState::in_progress;
  out.run.uid = core::run_uid_v5("carded");
  out.run.attempt = 1;
  out.run.job = "digits";
  out.time = kThen;
  out.summary = *core::as<core::ValueMap>(*core::parse_json(json, 1U << 16));
  return out;
}

const char* kMixed =
    R"({"ok": {"mse_loss train": {"skill": 0.625, "skill_low": 0.5, "skill_high": 0.7512345, "pairs": 1400}},
  "undecided": {"mse_loss eval": {"pairs": 12, "needs_pairs": 300}}, "hit": {"nll_loss train": {"kind": "nothing", "w": 0.5}}})";

TEST(RunCard, TellsHitsFirstAndNumbersWithTheirIntervals) {
  const auto lines = card_of(answered(kMixed));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].answer, "hit");
  EXPECT_EQ(lines[0].subject, "nll_loss train");
  EXPECT_EQ(lines[0].numbers, "kind nothing, w 0.5");
  EXPECT_EQ(lines[1].answer, "undecided");
  EXPECT_EQ(lines[1].numbers, "pairs 12, needs pairs 300");
  EXPECT_EQ(lines[2].answer, "ok");
  EXPECT_EQ(lines[2].numbers, "skill 0.625 (0.5 to 0.7512), pairs 1400");
}

TEST(RunCard, KnowsAnswersFromOtherSums) {
  EXPECT_TRUE(is_card(answered(kMixed).summary));
  EXPECT_FALSE(is_card({}));
  EXPECT_FALSE(is_card(answered(R"({"gpu": {"p50": 41}})").summary));
  EXPECT_FALSE(is_card(answered(R"({"ok": 3})").summary));
}

TEST(RunCard, WordsOfOthersAreMadePrintable) {
  const auto lines = card_of(answered(R"({"ok": {"a\u001b[2Jb": {"x\ny": "\u0007"}}})"));
  ASSERT_EQ(lines.size(), 1U);
  for (const std::string& text : {lines[0].subject, lines[0].numbers}) {
    for (const char c : text) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << text;
  }
}

TEST(RunCard, StandsInTheStatusApartFromOtherSums) {
  TopicView view;
  core::JobEvent run;
  run.phase = core::JobPhase::heartbeat;
  run.run = answered(kMixed).run;
  run.time = kThen;
  view.apply(ingest::fixture::view_of(ingest::encode_registry(run, "c")));
  view.apply(ingest::fixture::view_of(ingest::encode_rule_status(answered(kMixed), "c")));
  const std::string text = status_text(view, "here", kThen);
  EXPECT_NE(text.find("questions\n"), std::string::npos) << text;
  EXPECT_NE(text.find("skill 0.625 (0.5 to 0.7512)"), std::string::npos) << text;
  EXPECT_NE(text.find("summed up: none"), std::string::npos) << text;
  EXPECT_NE(status_json(view, "here", kThen).find("\"needs_pairs\":300"), std::string::npos);
}

}  // namespace
}  // namespace tocsin::app
