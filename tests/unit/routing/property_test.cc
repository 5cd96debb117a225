// Properties over random histories: a crash anywhere changes nothing, told sets lose no episode,
// every open gets its close.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

struct Step {
  int kind = 0;  // 0–4 fire, 5–7 resolve, 8 silence, 9 unsilence, 10 job ended, 11 next attempt,
                 // 12 reload with another tree, 13 acknowledge, 14 take back
  int tensor = 0;  // which of a few issues
  int severity = 0;
  int seconds = 0;  // time that passes before it
  bool crash = false;
};

rc::Gen<Step> any_step() {
  return rc::gen::map(
      rc::gen::tuple(rc::gen::inRange(0, 15), rc::gen::inRange(0, 5), rc::gen::inRange(0, 4),
                     rc::gen::element(0, 1, 5, 29, 30, 60, 299, 300, 1000),
                     rc::gen::arbitrary<bool>()),
      [](const std::tuple<int, int, int, int, bool>& t) {
        return Step{std::get<0>(t), std::get<1>(t), std::get<2>(t), std::get<3>(t), std::get<4>(t)};
      });
}

std::ostream& operator<<(std::ostream& out, const Step& step) {
  return out << "{" << step.kind << " " << step.tensor << " " << step.severity << " +"
             << step.seconds << (step.crash ? " crash}" : "}");
}

core::Labels labels_of(const Step& step) {
  core::Labels out{{"rule", step.tensor % 2 == 0 ? "nan" : "overfit"},
                   {"job", step.tensor < 3 ? "one" : "two"},
                   {"tensor", std::to_string(step.tensor)}};
  const auto severity = static_cast<core::Severity>(step.severity);
  out.set("severity", to_string(severity));
  if (step.tensor != 4) out.set("run_uid", kRun);
  return out;
}

/// A tree with every feature: continue, own grouping, urgent lane, filters, all three policies.
void configure(Harness& h, bool send_resolved) {
  h.integrations = {webhook("oncall"), webhook("mail"), webhook("stop"), webhook("second")};
  h.integrations[0].acknowledges = true;
  h.tree.further.steps = {{{7min, "second", true, 3min, 2}}};
  h.tree.further.propagate_ack = true;
  h.integrations[0].send_resolved = send_resolved;
  h.integrations[1].stateful = false;
  h.integrations[1].when = "rule!=\"overfit\"";
  RouteConfig page;
  page.matchers = {"severity=~\"error|critical\""};
  page.receivers = {"oncall", "mail"};
  page.proceed = true;
  page.group_by = {{"job"}};
  page.group_wait = 5s;
  page.immediate_on = "severity=critical";
  RouteConfig rest;
  rest.matchers = {"rule=nan"};
  rest.receivers = {"mail"};
  rest.repeat_interval = std::vector<RepeatStep>{{std::nullopt, 10min}};
  h.tree.routes = {page, rest};
  h.rule_actions = {{"nan", {"stop"}}};
}

/// Issues that are inhibited, that inhibit, and that do both; at once, with a delay and with an echo.
void inhibit(Harness& h) {
  InhibitRule severe;
  severe.name = "severe-hides-rest";
  severe.source_matchers = {"severity=~\"error|critical\""};
  severe.target_matchers = {"severity!=critical"};
  severe.equal = {"job"};
  InhibitRule echo;
  echo.name = "echo";
  echo.source_matchers = {"tensor=1"};
  echo.target_matchers = {"rule=nan"};
  echo.equal = {"run_uid"};
  echo.source_min_age = 30s;
  echo.hold_after = 400s;
  h.options.inhibit_rules = {severe, echo};
}

/// Another tree for the same receivers: a route less, other grouping, other receivers.
void reconfigure(Harness& h, int variant) {
  configure(h, h.integrations[0].send_resolved);
  if (variant == 1) h.tree.routes.pop_back();
  if (variant == 2) h.tree.routes[0].group_by = {{"job", "rule"}};
  if (variant == 3) h.tree.routes[1].receivers = {"oncall", "mail"};
  if (variant == 4) h.tree.routes[0].receivers = {"oncall"};
}

class History {
 public:
  explicit History(bool send_resolved, bool inhibits = false) {
    configure(h, send_resolved);
    if (inhibits) inhibit(h);
    h.open();
  }
  /// Nobody can be silenced: flushes with nothing new are passed over.
  void without_suppressors() {
    h.options.suppressors.clear();
    h.open();
  }

  void run(const std::vector<Step>& steps, bool with_crashes) {
    for (const Step& step : steps) {
      h.at(h.now() - kStart + step.seconds * 1s);
      if (step.kind == 8) h.silenced = {{"tensor", std::to_string(step.tensor)}};
      if (step.kind == 9) h.silenced.clear();
      if (step.kind >= 13) ask(step);
      if (with_crashes && step.crash) {
        // The work since the last commit is lost, and done again from the same input.
        const std::uint64_t attempt = attempt_;
        const std::uint64_t serial = serial_;
        apply(step);
        attempt_ = attempt;
        serial_ = serial;
        h.crash();
      }
      apply(step);
      h.commit();
    }
  }

  /// Ends everything and lets all timers run out.
  void finish() {
    h.silenced.clear();
    h.at(h.now() - kStart + 1s);
    for (int tensor = 0; tensor < 5; ++tensor) {
      Step step;
      step.tensor = tensor;
      core::Issue issue = make(step, core::IssueStatus::resolved);
      h.report(issue);
    }
    h.at(h.now() - kStart + 24h);
  }

  Harness h;

 private:
  core::Issue make(const Step& step, core::IssueStatus status) {
    core::Issue issue = h.issue(labels_of(step), status);
    issue.sequence = 0;  // ordered by time
    issue.event_id = "e" + std::to_string(++serial_);
    issue.run.attempt = static_cast<std::uint32_t>(attempt_);
    return issue;
  }

  /// A record of `router-control` is committed by itself: it is not read again after a crash.
  void ask(const Step& step) {
    Acknowledgement ack;
    ack.id = "ack_" + std::to_string(step.tensor);
    ack.issues = {core::issue_key(labels_of(step))};
    ack.by = "ada";
    ack.at = h.now();
    ack.origin = step.severity == 0 ? "oncall" : "cli";
    const std::string json = ack_json(ack);
    std::optional<std::string_view> value;
    if (step.kind == 13) value = json;
    RC_ASSERT(h.router().on_control("ack/" + ack.id, value, h.now()));
    h.router().tick(h.now());
    h.commit();
  }

  void apply(const Step& step) {
    if (step.kind <= 4) {
      h.router().on_issue(make(step, core::IssueStatus::firing), h.now());
    } else if (step.kind <= 7) {
      h.router().on_issue(make(step, core::IssueStatus::resolved), h.now());
    } else if (step.kind >= 10 && step.kind <= 12) {
      core::JobEvent event;
      event.run.uid = *core::parse_run_uid(kRun);
      if (step.kind == 11) ++attempt_;
      event.run.attempt = static_cast<std::uint32_t>(attempt_);
      event.phase = step.kind == 10 ? core::JobPhase::ended : core::JobPhase::started;
      event.time = h.now();
      h.router().on_job(event, h.now());
    }
    if (step.kind == 12) {
      reconfigure(h, step.tensor);
      h.open();
    }
    h.router().tick(h.now());
  }

  std::uint64_t serial_ = 0;
  std::uint64_t attempt_ = 1;
};

std::string text_of(const core::Notification& note) {
  std::string out = note.notification_id + " " + note.integration + " " + note.reason + " " +
                    std::string(to_string(note.kind)) + " " + note.group_key + " " +
                    core::to_rfc3339(note.decided_at) + (note.firing ? " firing" : " over");
  for (const auto* list : {&note.issues, &note.suppressed}) {
    out += " |";
    for (const auto& line : *list) {
      out += " " + line.issue_key + "#" + std::to_string(line.episode) +
             std::string(to_string(line.issue.status));
    }
  }
  return out;
}

std::vector<std::string> texts_of(const std::vector<core::Notification>& notes) {
  std::vector<std::string> out;
  for (const auto& note : notes) out.push_back(text_of(note));
  return out;
}

TEST(Properties, ACrashAnywhereChangesNoNotification) {
  EXPECT_TRUE(rc::check("crash anywhere", [] {
    const auto steps = *rc::gen::container<std::vector<Step>>(any_step());
    const bool inhibits = *rc::gen::arbitrary<bool>();
    History whole(true, inhibits);
    History broken(true, inhibits);
    whole.run(steps, false);
    broken.run(steps, true);
    whole.finish();
    broken.finish();
    RC_ASSERT(texts_of(broken.h.sent) == texts_of(whole.h.sent));
    RC_ASSERT(broken.h.changelog == whole.h.changelog);
  }));
}

TEST(Properties, AFlushThatIsPassedOverWouldHaveSaidNothing) {
  EXPECT_TRUE(rc::check("quiet flushes", [] {
    auto steps = *rc::gen::container<std::vector<Step>>(any_step());
    std::erase_if(steps, [](const Step& step) { return step.kind == 8; });
    const bool inhibits = *rc::gen::arbitrary<bool>();
    History looks(true, inhibits);
    History passes_over(true, inhibits);
    History breaks(true, inhibits);
    passes_over.without_suppressors();
    breaks.without_suppressors();
    looks.run(steps, false);
    passes_over.run(steps, false);
    breaks.run(steps, true);
    looks.finish();
    passes_over.finish();
    breaks.finish();
    RC_ASSERT(texts_of(passes_over.h.sent) == texts_of(looks.h.sent));
    RC_ASSERT(texts_of(breaks.h.sent) == texts_of(looks.h.sent));
  }));
}

/// A third of the messages is lost. Empty: nothing was updated or closed that never arrived, and what
/// arrived is closed at the end.
std::string fault_of_losses(const std::vector<Step>& steps, bool inhibits) {
  History history(true, inhibits);
  std::set<std::string> incidents;  // open at the far side
  std::set<std::string> said_over;  // with the news, where nobody keeps incidents
  std::string fault;
  history.h.fate = [&](const core::Notification& note) {
    const std::string place = note.integration + " " + note.group_hash;
    const bool close = note.kind == core::NotificationKind::close;
    if (!close && std::hash<std::string>{}(note.notification_id) % 3 == 0) {
      return core::DeliveryState::expired;
    }
    if (note.kind != core::NotificationKind::open && incidents.count(place) == 0 && fault.empty()) {
      fault = "never arrived: " + text_of(note);
    }
    if (close) {
      incidents.erase(place);
    } else {
      incidents.insert(place);
    }
    said_over.erase(place);
    if (!note.firing && note.integration == "mail") said_over.insert(place);
    return core::DeliveryState::delivered;
  };
  history.run(steps, false);
  history.finish();
  for (const std::string& place : said_over) incidents.erase(place);
  if (fault.empty() && !incidents.empty()) fault = "left open: " + *incidents.begin();
  if (fault.empty() && history.h.router().stats().undelivered != 0) fault = "undelivered";
  return fault;
}

TEST(Properties, NothingIsUpdatedOrClosedThatNeverArrived) {
  EXPECT_TRUE(rc::check("lost messages", [] {
    auto steps = *rc::gen::container<std::vector<Step>>(any_step());
    std::erase_if(steps, [](const Step& step) { return step.kind == 12; });
    const std::string fault = fault_of_losses(steps, *rc::gen::arbitrary<bool>());
    RC_LOG() << fault;
    RC_ASSERT(fault.empty());
  }));
}

// An acknowledgement in the tick of the message that opens the incident, which is lost.
TEST(Properties, AnAcknowledgementIsNotPassedOnToAnIncidentThatNeverArrived) {
  const std::vector<Step> steps{{0, 1, 0, 299, false},
                                {11, 0, 0, 300, false},
                                {0, 1, 0, 299, false},
                                {0, 0, 0, 299, false},
                                {13, 1, 1, 29, false}};
  EXPECT_EQ(fault_of_losses(steps, false), "");
}

/// Mail keeps no incident open: when the grouping changes, nothing is closed there.
bool lost_sight_of(const std::string& integration, const std::vector<Step>& steps) {
  return integration.starts_with("mail") &&
         std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.kind == 12; });
}

/// It ended with its job or attempt: told as news although it is over.
bool never_recovered(const core::Issue& issue) {
  return issue.resolution == core::Resolution::job_ended ||
         issue.resolution == core::Resolution::superseded;
}

TEST(Properties, EveryOpenGetsItsCloseAndNoIdComesTwice) {
  EXPECT_TRUE(rc::check("open and close", [] {
    const auto steps = *rc::gen::container<std::vector<Step>>(any_step());
    History history(true, *rc::gen::arbitrary<bool>());
    history.run(steps, false);
    history.finish();
    std::map<std::string, bool> is_open;
    std::map<std::string, bool> said_over;
    std::set<std::string> ids;
    for (const auto& note : history.h.sent) {
      RC_ASSERT(ids.insert(note.notification_id).second);
      bool& open = is_open[note.integration + note.group_hash];
      if (note.kind == core::NotificationKind::close) {
        RC_ASSERT(open);
        RC_ASSERT(!note.firing);
        RC_ASSERT(note.firing_count == 0U);
      }
      // mail defers resolves: its incident may stay open until the debt is paid.
      if (note.kind == core::NotificationKind::open && note.integration != "mail") RC_ASSERT(!open);
      if (note.kind == core::NotificationKind::repeat) RC_ASSERT(open);
      open = note.kind != core::NotificationKind::close;
      // What is told as over leaves nothing to close where nobody keeps incidents.
      const bool over = !note.firing && note.integration == "mail";
      said_over[note.integration + note.group_hash] = over;
    }
    for (const auto& [key, open] : is_open) {
      RC_ASSERT(!open || said_over[key] || lost_sight_of(key, steps));
    }
    RC_ASSERT(history.h.router().stats().owed == 0U);
    RC_ASSERT(history.h.router().stats().groups == 0U);
  }));
}

TEST(Properties, WhoeverIsToldOfAnEpisodeHearsOfItsEnd) {
  EXPECT_TRUE(rc::check("told sets lose no episode", [] {
    const auto steps = *rc::gen::container<std::vector<Step>>(any_step());
    History history(true, *rc::gen::arbitrary<bool>());
    history.run(steps, false);
    history.finish();
    // Per integration and group: an episode told as firing ends in a message that shows it
    // resolved, shows a later episode, or closes the incident.
    std::map<std::string, std::map<std::string, std::uint64_t>> told;
    std::set<std::string> told_as_over;  // messages may name it until the incident is closed
    for (const auto& note : history.h.sent) {
      auto& known = told[note.integration + note.group_hash];
      for (const auto& line : note.issues) {
        if (line.issue.status == core::IssueStatus::firing) {
          const auto before = known.find(line.issue_key);
          if (before != known.end()) RC_ASSERT(line.episode >= before->second);
          known[line.issue_key] = line.episode;
        } else {
          const std::string one = note.integration + note.group_hash + line.issue_key + "#" +
                                  std::to_string(line.episode);
          // Over before anybody heard of it.
          const bool news = known.count(line.issue_key) == 0 && !told_as_over.contains(one);
          RC_ASSERT(!news || never_recovered(line.issue));
          RC_ASSERT(!news || note.kind != core::NotificationKind::close);
          known.erase(line.issue_key);
          if (news && note.integration != "mail") {
            known[line.issue_key] = line.episode;
            told_as_over.insert(one);
          }
        }
      }
      const bool lost = lost_sight_of(note.integration, steps);
      if (note.kind == core::NotificationKind::close) RC_ASSERT(known.empty() || lost);
    }
    for (const auto& [key, known] : told) RC_ASSERT(known.empty() || lost_sight_of(key, steps));
  }));
}

TEST(Properties, NoMessageNamesAnEndedThingAsFiringAndNoneRepeatsWhatIsTakenOn) {
  EXPECT_TRUE(rc::check("what messages name", [] {
    const auto steps = *rc::gen::container<std::vector<Step>>(any_step());
    History history(true, *rc::gen::arbitrary<bool>());
    history.h.fate = [&](const core::Notification& note) {
      for (const auto& line : note.issues) {
        const auto known = history.h.router().find_issue(line.issue_key);
        const bool fires = line.issue.status == core::IssueStatus::firing;
        RC_ASSERT(!fires || (known && known->firing && known->episodes == line.episode));
        RC_ASSERT(fires || !line.acknowledged);
      }
      if (note.kind == core::NotificationKind::repeat) {
        RC_ASSERT(std::any_of(note.issues.begin(), note.issues.end(),
                              [](const auto& line) { return !line.acknowledged; }));
      }
      if (note.reason == "escalation") RC_ASSERT(note.integration == "second" && !note.why.empty());
      return core::DeliveryState::delivered;
    };
    history.run(steps, false);
    history.finish();
  }));
}

TEST(Properties, AStepIsClimbedAtMostAsOftenAsItMayBe) {
  EXPECT_TRUE(rc::check("ladder", [] {
    const auto steps = *rc::gen::container<std::vector<Step>>(any_step());
    History history(true, *rc::gen::arbitrary<bool>());
    history.run(steps, true);
    history.finish();
    std::map<std::string, int> climbed;  // by group, since its incident was closed
    for (const auto& note : history.h.sent) {
      if (note.integration != "second") continue;
      int& times = climbed[note.group_hash];
      if (note.reason == "escalation") RC_ASSERT(++times <= 3);
      if (note.kind == core::NotificationKind::close) times = 0;
    }
  }));
}

TEST(Properties, WithoutResolvesNobodyHearsOfAnEndAndNoEpisodeOpensTwice) {
  EXPECT_TRUE(rc::check("send_resolved: false", [] {
    auto steps = *rc::gen::container<std::vector<Step>>(any_step());
    for (Step& step : steps) {
      if (step.kind == 8 || step.kind == 9 || step.kind == 12) step.kind = 0;  // fire instead
    }
    History history(false);
    history.run(steps, false);
    history.finish();
    std::map<std::string, std::set<std::string>> told;
    for (const auto& note : history.h.sent) {
      if (note.integration != "oncall") continue;
      RC_ASSERT(note.kind != core::NotificationKind::close);
      for (const auto& line : note.issues) {
        RC_ASSERT(line.issue.status == core::IssueStatus::firing || never_recovered(line.issue));
        const bool first = told[note.group_hash]
                               .insert(line.issue_key + "#" + std::to_string(line.episode))
                               .second;
        if (note.reason == "first") RC_ASSERT(first);
      }
    }
  }));
}

}  // namespace
}  // namespace tocsin::routing
