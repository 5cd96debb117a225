// resolve_when_suppressed: what becomes of the end of an issue that was told and is suppressed by then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>
#include <string>

#include "tests/unit/routing/flush_fixture.h"

namespace tocsin::routing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Integration ends_by(const std::string& name, bool stateful, std::optional<SuppressedEnd> policy) {
  Integration out = webhook(name);
  out.stateful = stateful;
  out.resolve_when_suppressed = policy;
  return out;
}

class SuppressedEnds : public FlushTest {
 protected:
  /// One integration hears of both issues; then `a` is silenced.
  void open(bool stateful, std::optional<SuppressedEnd> policy) {
    h.integrations = {ends_by("oncall", stateful, policy)};
    h.open();
    h.fire(kTensorA);
    h.fire(kTensorB);
    h.at(30s);
    EXPECT_THAT(h.said(), ElementsAre("first open oncall 2/0"));
    h.silenced = {{"tensor", "a"}};
  }
  void unsilence_at(core::Duration since) {
    h.silenced.clear();
    h.at(since);
  }
};

TEST_F(SuppressedEnds, TheDefaultFollowsFromWhetherTheFarSideKeepsIncidents) {
  EXPECT_EQ(ends_by("a", true, std::nullopt).suppressed_end(), SuppressedEnd::send);
  EXPECT_EQ(ends_by("a", false, std::nullopt).suppressed_end(), SuppressedEnd::defer);
  EXPECT_EQ(ends_by("a", true, SuppressedEnd::drop).suppressed_end(), SuppressedEnd::drop);
}

TEST_F(SuppressedEnds, SendTellsOfItAtOnceAlsoWhereNoIncidentIsKept) {
  open(false, SuppressedEnd::send);
  h.resolve(kTensorA);
  h.at(330s);
  EXPECT_THAT(h.said(), ElementsAre("some_resolved update oncall 1/1"));
}

TEST_F(SuppressedEnds, DeferKeepsTheIncidentOpenUntilSomebodyMayHearOfItsEnd) {
  open(true, SuppressedEnd::defer);
  h.resolve(kTensorA);
  h.resolve(kTensorB);
  h.at(1h);
  // b is over and may be told; a is owed, so nothing is closed yet.
  EXPECT_THAT(h.said(), ElementsAre("some_resolved update oncall 0/1 over"));
  EXPECT_EQ(h.router().stats().owed, 1U);
  EXPECT_EQ(h.router().stats().ends_deferred, 1U);
  unsilence_at(2h);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
  EXPECT_EQ(h.router().stats().owed, 0U);
  h.at(10h);
  EXPECT_THAT(h.said(), IsEmpty()) << "an end is paid once";
}

TEST_F(SuppressedEnds, WhatIsOwedOutlivesAKillAndAReload) {
  open(true, SuppressedEnd::defer);
  h.resolve(kTensorA);
  h.resolve(kTensorB);
  h.at(1h);
  h.said();
  h.crash();
  h.tree.repeat_interval = every(2h);  // another configuration
  h.open();
  EXPECT_EQ(h.router().stats().owed, 1U);
  unsilence_at(2h);
  EXPECT_THAT(h.said(), ElementsAre("all_resolved close oncall 0/1 over"));
}

TEST_F(SuppressedEnds, ANewerEpisodeSpeaksForTheEndThatIsOwed) {
  open(true, SuppressedEnd::defer);
  h.resolve(kTensorA);
  h.at(330s);
  h.fire(kTensorA);
  unsilence_at(630s);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 2/0"));
  EXPECT_EQ(h.router().stats().owed, 0U);
}

TEST_F(SuppressedEnds, WhatIsOwedForTooLongIsDroppedAndCounted) {
  h.options.limits.owed_max_age = 24h;
  open(false, SuppressedEnd::defer);
  h.resolve(kTensorA);
  h.resolve(kTensorB);
  h.at(26h);
  EXPECT_EQ(h.router().stats().owed, 0U);
  EXPECT_EQ(h.router().stats().owed_dropped, 1U);
  h.said();
  unsilence_at(30h);
  EXPECT_THAT(h.said(), IsEmpty());
}

TEST_F(SuppressedEnds, DropForgetsItAndTellsTheNextEpisodeAsNews) {
  open(true, SuppressedEnd::drop);
  h.resolve(kTensorA);
  h.at(330s);
  EXPECT_THAT(h.said(), IsEmpty());
  EXPECT_EQ(h.router().stats().ends_dropped, 1U);
  EXPECT_EQ(h.router().stats().owed, 0U);
  h.fire(kTensorA);
  unsilence_at(630s);
  EXPECT_THAT(h.said(), ElementsAre("new_issues update oncall 2/0"));
}

TEST_F(SuppressedEnds, WithoutResolvesNothingIsOwed) {
  h.integrations = {ends_by("oncall", true, SuppressedEnd::defer)};
  h.integrations[0].send_resolved = false;
  h.open();
  h.fire(kTensorA);
  h.at(30s);
  h.silenced = {{"tensor", "a"}};
  h.resolve(kTensorA);
  h.at(330s);
  EXPECT_EQ(h.router().stats().owed, 0U);
  EXPECT_EQ(h.router().stats().ends_deferred, 0U);
}

// ---- random suppression

struct Event {
  int kind = 0;  // 0–3 fire, 4–6 resolve, 7–8 silence, 9 end the silence, 10 kill
  int tensor = 0;
  int seconds = 0;
};

rc::Gen<Event> any_event() {
  return rc::gen::map(rc::gen::tuple(rc::gen::inRange(0, 11), rc::gen::inRange(0, 3),
                                     rc::gen::element(0, 1, 29, 31, 299, 301, 900)),
                      [](const std::tuple<int, int, int>& t) {
                        return Event{std::get<0>(t), std::get<1>(t), std::get<2>(t)};
                      });
}

core::Labels tensor(int number) { return with(kTensorA, "tensor", std::to_string(number)); }

void happens(Harness& h, const Event& event) {
  h.at(h.now() - kStart + event.seconds * 1s);
  if (event.kind <= 3) h.fire(tensor(event.tensor));
  if (event.kind >= 4 && event.kind <= 6) h.resolve(tensor(event.tensor));
  if (event.kind == 7 || event.kind == 8)
    h.silenced.emplace_back("tensor", std::to_string(event.tensor));
  if (event.kind == 9) h.silenced.clear();
  if (event.kind == 10) h.crash();
}

/// All six ways of an end.
void with_all_policies(Harness& h) {
  h.integrations.clear();
  h.tree.receivers.clear();
  for (const bool stateful : {true, false}) {
    for (const auto& [name, policy] :
         {std::pair{"send", SuppressedEnd::send}, std::pair{"defer", SuppressedEnd::defer},
          std::pair{"drop", SuppressedEnd::drop}}) {
      const std::string id = std::string(name) + (stateful ? "" : "-mail");
      h.integrations.push_back(ends_by(id, stateful, policy));
      h.tree.receivers.push_back(id);
    }
  }
  h.open();
}

TEST(SuppressedEndProperties, WhoeverIsToldHearsOfTheEndUnlessItIsDroppedAndNobodyHearsALie) {
  EXPECT_TRUE(rc::check("random suppression", [] {
    const auto events = *rc::gen::container<std::vector<Event>>(any_event());
    Harness h;
    with_all_policies(h);
    std::map<std::string, std::map<std::string, std::uint64_t>> told;  // by integration
    std::map<std::string, bool> open;
    h.fate = [&](const core::Notification& note) {
      auto& known = told[note.integration];
      for (const auto& line : note.issues) {
        const auto issue = h.router().find_issue(line.issue_key);
        if (line.issue.status == core::IssueStatus::firing) {
          // Nothing that is over is told as firing.
          RC_ASSERT(issue && issue->firing && issue->episodes == line.episode);
          known[line.issue_key] = line.episode;
        } else {
          RC_ASSERT(known.erase(line.issue_key) == 1U);
        }
      }
      const bool close = note.kind == core::NotificationKind::close;
      if (close) RC_ASSERT(open[note.integration] && !note.firing);
      open[note.integration] = !close;
      return core::DeliveryState::delivered;
    };
    for (const Event& event : events) happens(h, event);
    h.silenced.clear();
    for (int i = 0; i < 3; ++i) h.resolve(tensor(i));
    h.at(h.now() - kStart + 24h);
    for (const auto& [integration, known] : told) {
      if (integration.starts_with("drop")) continue;
      RC_ASSERT(known.empty());
      RC_ASSERT(!open[integration]);
    }
    RC_ASSERT(h.router().stats().owed == 0U);
    RC_ASSERT(h.router().stats().groups == 0U);
  }));
}

TEST(SuppressedEndProperties, NothingIsToldOfWhatIsSilencedButAnEnd) {
  EXPECT_TRUE(rc::check("silenced", [] {
    const auto events = *rc::gen::container<std::vector<Event>>(any_event());
    Harness h;
    with_all_policies(h);
    h.fate = [&](const core::Notification& note) {
      for (const auto& line : note.issues) {
        const bool silenced = std::any_of(
            h.silenced.begin(), h.silenced.end(),
            [&](const auto& one) { return line.issue.labels.get(one.first) == one.second; });
        if (!silenced) continue;
        RC_ASSERT(note.integration.starts_with("send"));
        RC_ASSERT(line.issue.status == core::IssueStatus::resolved);
      }
      return core::DeliveryState::delivered;
    };
    for (const Event& event : events) happens(h, event);
  }));
}

}  // namespace
}  // namespace tocsin::routing
