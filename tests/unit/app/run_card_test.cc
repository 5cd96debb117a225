// The run card: answers of the questions with their numbers, worst first.
#include "app/view/run_card.h"

#include <gtest/gtest.h>

#include "app/view/status_text.h"
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
  EXPECT_EQ(lines[0].numbers, "nothing, w 0.5");
  EXPECT_EQ(lines[1].answer, "undecided");
  EXPECT_EQ(lines[1].numbers, "needs 300 more pairs, pairs 12");
  EXPECT_EQ(lines[2].answer, "ok");
  EXPECT_EQ(lines[2].numbers, "skill 0.625 (0.5 to 0.751), pairs 1400");
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

std::string status_of(const std::vector<core::RuleStatusEvent>& rules, bool of_one_run = true,
                      std::vector<std::string> configured = {}, std::uint32_t world_size = 1) {
  TopicView view;
  core::JobEvent run;
  run.phase = core::JobPhase::heartbeat;
  run.run = answered(kMixed).run;
  run.step = 1200;
  run.rules = std::move(configured);
  run.world_size = world_size;
  run.time = kThen;
  view.apply(ingest::fixture::view_of(ingest::encode_registry(run, "c")));
  for (const auto& rule : rules) {
    view.apply(ingest::fixture::view_of(ingest::encode_rule_status(rule, "c")));
  }
  if (of_one_run) view.narrow_to(run.run.uid);
  return status_text(view, "here", kThen);
}

core::RuleStatusEvent answered_by(const char* rule, const char* json) {
  core::RuleStatusEvent out = answered(json);
  out.rule = out.rule_type = rule;
  return out;
}

std::string card_part(const std::string& text) {
  const std::size_t from = text.find("questions\n");
  return from == std::string::npos ? "" : text.substr(from, text.find("\n\n", from) - from + 1);
}

TEST(RunCard, AHealthyRunIsToldSoWithItsNumbersAndWhatWasNotAsked) {
  const std::string card = card_part(status_of({
      answered_by(
          "chance_level",
          R"({"ok": {"cross_entropy train": {"updates": 1200, "samples": 38400, "loss": 0.31, "trivial": 2.3,
                     "skill": 0.8652, "skill_low": 0.85, "skill_high": 0.88, "pairs": 1400, "w": 0.98,
                     "w_low": 0.97, "w_high": 0.99}}})"),
      answered_by(
          "budget",
          R"({"ok": {"learning_rate": {"planned_updates": 2000, "schedule": 2000, "updates": 1200, "worth": 600.5}}})"),
      answered_by("training_preflight", R"({"ok": {"Net": {"checks": 12}}})"),
      answered_by(
          "precision",
          R"({"undecided": {"weights": {"swallowed": 0.1, "updates_seen": 32, "needs_updates_seen": 32,
                     "decides_at_update": 2400, "insufficient_data": true}}})"),
  }));
  EXPECT_EQ(card, R"(questions
  digits 9c07bdb2 at step 1200: 1 undecided, 3 ok, 8 not asked
)" + card.substr(card.find("  undecided")));
  EXPECT_NE(card.find(R"(
  undecided  precision  weights: insufficient data: needs 32 more updates seen,
                        enough at update 2400, swallowed 0.1, updates seen 32
  ok         targets    cross_entropy train: skill 0.865 (0.85 to 0.88), w 0.98
                        (0.97 to 0.99), updates 1200, samples 38400
  ok         budget     learning_rate: planned updates 2000, schedule 2000,
                        updates 1200, worth 600
  ok         protocol   Net: checks 12
  not asked  leak       no inputs, labels or evaluation rows were compared
)"),
            std::string::npos)
      << card;
}

TEST(RunCard, ALineHasEightyColumnsAtMost) {
  std::string many;
  for (int i = 0; i < 5; ++i) {
    many += std::string(i == 0 ? "" : ", ") + "\"binary_cross_entropy_with_logits." +
            std::to_string(i) +
            R"( train": {"kind": "nothing", "skill": 0.0123456, "skill_low": -0.0023456,
            "skill_high": 0.0323456, "w": 0.5012345, "w_low": 0.4912345, "w_high": 0.5112345, "pairs": 123456})";
  }
  const std::string hits = R"({"hit": {)" + many + "}}";
  const std::string card = card_part(status_of({answered_by("chance_level", hits.c_str())}));
  EXPECT_NE(card.find("and 3 more"), std::string::npos) << card;
  std::size_t from = 0;
  for (std::size_t end = card.find('\n'); end != std::string::npos; end = card.find('\n', from)) {
    EXPECT_LE(end - from, 80U) << card.substr(from, end - from);
    from = end + 1;
  }
}

TEST(RunCard, AQuestionThatWasNotAskedSaysWhatIsMissing) {
  const std::vector<std::string> configured{"chance_level", "ranks", "leak"};
  const std::string alone = card_part(status_of({}, true, configured));
  EXPECT_NE(alone.find("not asked  ranks      not a data-parallel job\n"), std::string::npos)
      << alone;
  EXPECT_NE(alone.find("not asked  budget     the rule budget is not configured\n"),
            std::string::npos);
  const std::string replicas = card_part(status_of({}, true, configured, 4));
  EXPECT_NE(replicas.find("no two ranks have sent fingerprints"), std::string::npos) << replicas;
}

TEST(RunCard, OfSeveralRunsOnlyCountsAndHitsAreShown) {
  const std::string card = card_part(status_of({answered(kMixed)}, false));
  EXPECT_NE(card.find("1 hit, 11 not asked\n"), std::string::npos) << card;
  EXPECT_NE(card.find("  hit        targets    nll_loss train: nothing, w 0.5\n"),
            std::string::npos);
  EXPECT_EQ(card.find("not asked  "), std::string::npos);
  EXPECT_EQ(card_part(status_of({}, false)), "");
}

TEST(RunCard, AStatusWithoutASumKeepsTheCard) {
  core::RuleStatusEvent later = answered(kMixed);
  later.status = core::RuleState::issues_found;
  later.summary.clear();
  EXPECT_NE(status_of({answered(kMixed), later}).find("nll_loss train"), std::string::npos);
  later.run.attempt = 2;
  EXPECT_EQ(status_of({answered(kMixed), later}).find("nll_loss train"), std::string::npos);
}

TEST(RunCard, AnOpenIssueOfAQuestionIsAHit) {
  CardSources sources;
  sources.firing = {{"replica_divergence", "Weights of rank 3 differ."},
                    {"overfit", "It overfits."}};
  const auto card = run_card(sources);
  EXPECT_EQ(card.front().question->name, "ranks");
  EXPECT_EQ(card_text(card).substr(0, 58),
            "  hit        ranks      Weights of rank 3 differ.\n  not as");
  EXPECT_EQ(card_counts(card), "1 hit, 11 not asked");
}

TEST(RunCard, StandsInTheStatusApartFromOtherSums) {
  TopicView view;
  core::JobEvent run;
  run.phase = core::JobPhase::heartbeat;
  run.run = answered(kMixed).run;
  run.time = kThen;
  view.apply(ingest::fixture::view_of(ingest::encode_registry(run, "c")));
  view.apply(ingest::fixture::view_of(ingest::encode_rule_status(answered(kMixed), "c")));
  view.narrow_to(run.run.uid);
  const std::string text = status_text(view, "here", kThen);
  EXPECT_NE(text.find("questions\n"), std::string::npos) << text;
  EXPECT_NE(text.find("needs 300 more pairs"), std::string::npos) << text;
  EXPECT_NE(text.find("rule summaries: none"), std::string::npos) << text;
  EXPECT_NE(status_json(view, "here", kThen).find("\"needs_pairs\":300"), std::string::npos);
}

}  // namespace
}  // namespace tocsin::app
