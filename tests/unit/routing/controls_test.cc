// Records of `router-control` by kind: which keys there are, and what happens to others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "core/fields/chart_view.h"
#include "core/fields/issue_feedback.h"
#include "core/fields/run_pin.h"
#include "routing/suppress/controls.h"
#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Tables of a router without a route.
struct NoTables {
  Config limits;
  RouteTree tree = *RouteTree::build({}, {}, {});
  Tables tables{tree, limits};
};

std::string refusal(std::string_view key) {
  NoTables none;
  Controls controls(none.tables);
  const core::Status status = controls.apply(key, "{}", kStart);
  return status ? "" : status.error().message;
}

TEST(Controls, AKeyOfNoKindIsRefusedWithTheKindsThereAre) {
  EXPECT_THAT(refusal("acks/one"), AllOf(HasSubstr("\"acks/one\""), HasSubstr("silence/<id>")));
  EXPECT_THAT(refusal("silence"), HasSubstr("expected ack/<id>, approval/<command id>, "));
  EXPECT_THAT(refusal("silense/sil_one"), HasSubstr("did you mean \"silence/\"?"));
  EXPECT_THAT(refusal(""), HasSubstr("unknown key \"\""));
}

TEST(Controls, AKeyOfAnyLengthAndAnyBytesMakesAShortMessage) {
  const std::string message = refusal(std::string(100'000, '\x01') + "/x");
  EXPECT_LT(message.size(), 1000U);
  EXPECT_THAT(message, Not(HasSubstr("\x01")));
}

TEST(Controls, KindsAreAscendingAndSayWhoWritesThemAndWhatATombstoneMeans) {
  NoTables none;
  std::string before;
  for (const ControlKind& kind : control_kinds()) {
    EXPECT_LT(before, kind.prefix);
    EXPECT_TRUE(kind.key.starts_with(std::string(kind.prefix) + "/")) << kind.prefix;
    EXPECT_FALSE(kind.writers.empty()) << kind.prefix;
    EXPECT_FALSE(kind.tombstone.empty()) << kind.prefix;
    EXPECT_NE(kind.make(none.tables), nullptr) << kind.prefix;
    before = kind.prefix;
  }
}

TEST(Controls, WhatPeopleSayOfIssuesIsReadAndKeepsNothing) {
  NoTables none;
  Controls controls(none.tables);
  const core::IssueVerdict noise{{"4f2a", "iss_1", ""}, "noise", "ada", kStart, "", "cli"};
  core::IssueVerdict unheard = noise;
  unheard.verdict = "fine";
  const core::IssueNote note{"note_1", {"4f2a", "iss_1", ""}, "ada", kStart, "a cable", "cli"};
  EXPECT_TRUE(controls.apply("verdict/4f2a/iss_1", core::verdict_json(noise), kStart));
  EXPECT_TRUE(controls.apply("note/note_1", core::note_json(note), kStart));
  EXPECT_TRUE(controls.apply("verdict/4f2a/iss_1", std::nullopt, kStart));
  EXPECT_FALSE(controls.apply("verdict/4f2a/iss_2", core::verdict_json(noise), kStart));
  EXPECT_FALSE(controls.apply("verdict/4f2a/iss_1", core::verdict_json(unheard), kStart));
  EXPECT_FALSE(controls.apply("verdict/4f2a/iss_1", "{", kStart));
  EXPECT_FALSE(controls.apply("note/note_2", core::note_json(note), kStart));
  EXPECT_FALSE(controls.apply("note/note_1", "[]", kStart));
  std::vector<StateRecord> state;
  controls.take(state);
  controls.snapshot(state);
  EXPECT_TRUE(state.empty());
}

TEST(Controls, PinsAndChosenChartsAreReadAndKeepNothing) {
  NoTables none;
  Controls controls(none.tables);
  const std::string uid = "01930000-0000-7000-8000-000000000001";
  EXPECT_TRUE(controls.apply("pin/" + uid, core::pin_json({uid, "ada", kStart, "api"}), kStart));
  EXPECT_TRUE(controls.apply("pin/" + uid, std::nullopt, kStart));
  EXPECT_FALSE(controls.apply("pin/0193", core::pin_json({uid, "ada", kStart, "api"}), kStart));
  EXPECT_FALSE(controls.apply("pin/0193", core::pin_json({"0193", "ada", kStart, "api"}), kStart));
  EXPECT_FALSE(controls.apply("pin/" + uid, "{}", kStart));
  core::ChartView view{core::view_id("ada", "digits"), "ada", "digits", {"loss"}, kStart};
  EXPECT_TRUE(controls.apply("view/" + view.id, core::view_json(view), kStart));
  EXPECT_FALSE(controls.apply("view/other", core::view_json(view), kStart));
  const std::string id = view.id;
  view.owner = "eve";
  EXPECT_FALSE(controls.apply("view/" + id, core::view_json(view), kStart)) << "somebody else's";
  view = {id, "ada", "digits", std::vector<std::string>(101, "loss"), kStart};
  EXPECT_FALSE(controls.apply("view/" + id, core::view_json(view), kStart)) << "too many";
  std::vector<StateRecord> state;
  controls.take(state);
  controls.snapshot(state);
  EXPECT_TRUE(state.empty());
}

TEST(Controls, TheStateOfAKindThatIsNotThereIsLeftAlone) {
  NoTables none;
  Controls controls(none.tables);
  EXPECT_EQ(controls.restore("unheard", "one", "{}"), std::nullopt);
  Harness h;
  h.open();
  EXPECT_TRUE(h.router().restore("unheard/one", "not even JSON"));
  h.commit();
  EXPECT_EQ(h.changelog.count("unheard/one"), 0U) << "no tombstone: a later version may know it";
}

TEST(Controls, ThePageHasARowForEachKind) {
  std::ifstream file("docs/transports.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const ControlKind& kind : control_kinds()) {
    const std::string row = "| `" + std::string(kind.key) + "` | " + std::string(kind.writers) +
                            " | " + std::string(kind.tombstone) + " |";
    EXPECT_THAT(text.str(), HasSubstr(row));
  }
}

// The router keeps none of them, and says what is wrong with one.
TEST(Controls, AnApprovalIsCheckedAndNotKept) {
  NoTables none;
  Controls controls(none.tables);
  const std::string good =
      R"({"id":"cmd_a","run":{"uid":"4e3046d4-8c1f-5278-82e3-ea3595bc5999","attempt":1},"state":"waiting"})";
  EXPECT_TRUE(controls.apply("approval/cmd_a", good, kStart));
  EXPECT_FALSE(controls.apply("approval/cmd_b", good, kStart)) << "another id";
  EXPECT_FALSE(controls.apply("approval/cmd_a", "{}", kStart));
  EXPECT_TRUE(controls.apply("approval/cmd_a", std::nullopt, kStart));
  std::vector<StateRecord> kept;
  controls.snapshot(kept);
  EXPECT_TRUE(kept.empty());
}

}  // namespace
}  // namespace tocsin::routing
