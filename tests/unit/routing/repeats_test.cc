// A router that takes what is only said again without reading it whole does what one does that reads
// everything.
#include "routing/tables/repeats.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <string>
#include <vector>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {
namespace {

Outline outline_of(std::uint64_t number) { return {number, ~number}; }

/// All but what an outline leaves out.
Outline outline_of(const core::Issue& issue) {
  std::string text = issue.source + "|" + core::issue_key(issue.labels) + "|" +
                     issue.labels.get("severity") + "|" + core::to_text(issue.run.uid) + "|" +
                     std::to_string(issue.run.attempt) + "|" + issue.run.job + "|" + issue.rule +
                     "|" + std::string(to_string(issue.status)) + "|" +
                     std::string(to_string(issue.severity)) + (issue.shadow ? "|shadow" : "|") +
                     (issue.explicit_expiry ? "|explicit" : "|");
  for (const core::Cause& cause : issue.caused_by) text += "|" + cause.event_id;
  return {std::hash<std::string>{}(text), std::hash<std::string>{}(text + "|")};
}

struct SaidOrDone {
  int kind = 0;  // 0–6 fires, 7 ends, 8 its job ends, 9 restart
  int issue = 0;
  int change = 0;   // what it says anew; from 20 on nothing
  int seconds = 0;  // before it
};

std::ostream& operator<<(std::ostream& out, const SaidOrDone& one) {
  return out << "{" << one.kind << " " << one.issue << " ~" << one.change << " +" << one.seconds
             << "}";
}

rc::Gen<SaidOrDone> any_said_or_done() {
  return rc::gen::map(
      rc::gen::tuple(rc::gen::inRange(0, 10), rc::gen::inRange(0, 4), rc::gen::inRange(0, 60),
                     rc::gen::element(0, 0, 1, 5, 30, 200, 301, 4000)),
      [](const std::tuple<int, int, int, int>& t) {
        return SaidOrDone{std::get<0>(t), std::get<1>(t), std::get<2>(t), std::get<3>(t)};
      });
}

class RepeatHistory {
 public:
  explicit RepeatHistory(bool quick) : quick_(quick) {
    h.tree.further.steps = {{{7min, "oncall", true, 3min, 2}}};
    h.options.limits.resolve_timeout = 10min;
    h.open();
  }

  void take(const SaidOrDone& one) {
    h.at(h.now() - kStart + one.seconds * 1s);
    if (one.kind == 9) {
      h.crash();
    } else if (one.kind == 8) {
      h.job(core::JobPhase::ended, attempt_);
    } else {
      give(make(one));
    }
    h.router().tick(h.now());
    h.commit();
  }

  Harness h;
  int repeats = 0;

 private:
  core::Issue make(const SaidOrDone& one) {
    core::Labels labels{{"rule", one.issue == 3 ? "job_failed" : "nan"},
                        {"tensor", std::to_string(one.issue)},
                        {"severity", "error"}};
    if (one.issue != 0) labels.set("run_uid", kRun);
    const bool ends = one.kind == 7;
    core::Issue issue =
        h.issue(labels, ends ? core::IssueStatus::resolved : core::IssueStatus::firing);
    issue.run.attempt = attempt_;
    issue.explicit_expiry = one.issue != 2;
    issue.summary = std::to_string(++serial_);
    issue.step = serial_;
    change(issue, one.change);
    last_ = issue;
    return issue;
  }

  void change(core::Issue& issue, int what) {
    switch (what) {
      case 0:
        issue.sequence = 0;
        break;
      case 1:
        issue.sequence = 1;
        break;
      case 2:
        issue.time -= 1h;
        break;
      case 3:
        issue.starts_at -= 1h;
        break;
      case 4:
        issue.starts_at += 48h;
        break;
      case 5:
        issue.severity = core::Severity::critical;
        issue.labels.set("severity", "critical");
        break;
      case 6:
        issue.shadow = true;
        break;
      case 7:
        issue.run.attempt = ++attempt_;
        break;
      case 8:
        issue.run.attempt = 0;
        break;
      case 9:
        issue.run.job = "another";
        break;
      case 10:
        issue.explicit_expiry = !issue.explicit_expiry;
        break;
      case 11:
        issue.ends_at = issue.time + 1h;
        break;
      case 12:
        issue.source = "/c2/others";
        break;
      case 13:
        issue.caused_by = {{"iss_0", "", "", "", {}, {}, {}}};
        break;
      case 14:
        issue.event_id = last_.event_id;
        break;
      case 15:
        issue.time = issue.starts_at = {};
        break;
      case 16:
        issue.run.uid = {};
        break;
      case 17:
        issue = last_;
        break;
      case 18:
        issue.severity = core::Severity::info;
        break;
      case 19:
        issue.source = "/c2/others";
        issue.sequence = 0;
        break;
      default:
        break;
    }
  }

  void give(const core::Issue& issue) {
    if (!quick_ || issue.ends_at) return h.router().on_issue(issue, h.now());
    const Outline outline = outline_of(issue);
    if (h.router().on_repeat(
            {outline, issue.source, issue.event_id, issue.sequence, issue.time, issue.starts_at},
            h.now())) {
      ++repeats;
    } else {
      h.router().on_issue(issue, h.now(), outline);
    }
  }

  bool quick_;
  std::uint32_t attempt_ = 1;
  int serial_ = 0;
  core::Issue last_;
};

std::vector<std::string> repeat_texts_of(const Harness& h) {
  std::vector<std::string> out;
  for (const auto& note : h.sent) {
    std::string text = note.notification_id + note.reason + core::to_rfc3339(note.decided_at);
    for (const auto& line : note.issues) {
      text += "|" + line.issue_key + std::to_string(line.episode) + line.issue.summary;
    }
    out.push_back(std::move(text));
  }
  return out;
}

auto repeat_counts_of(const Stats& stats) {
  return std::tuple(stats.events, stats.duplicates, stats.stale, stats.clamped, stats.rejected,
                    stats.firing, stats.orphan_resolves, stats.late_issues, stats.next_due);
}

TEST(Repeats, ChangeNothingOfWhatIsDecidedAndKept) {
  int repeats = 0;
  EXPECT_TRUE(rc::check([&] {
    const auto reports = *rc::gen::container<std::vector<SaidOrDone>>(any_said_or_done());
    RepeatHistory whole(false);
    RepeatHistory quick(true);
    for (const SaidOrDone& one : reports) {
      whole.take(one);
      quick.take(one);
      RC_ASSERT(quick.h.changelog == whole.h.changelog);
      RC_ASSERT(repeat_counts_of(quick.h.router().stats()) ==
                repeat_counts_of(whole.h.router().stats()));
    }
    for (RepeatHistory* one : {&whole, &quick}) one->h.at(one->h.now() - kStart + 24h);
    RC_ASSERT(repeat_texts_of(quick.h) == repeat_texts_of(whole.h));
    RC_ASSERT(quick.h.changelog == whole.h.changelog);
    const auto snapshot = [](RepeatHistory& told) {
      std::map<std::string, std::string> out;
      for (const StateRecord& record : told.h.router().snapshot()) out[record.key] = *record.value;
      return out;
    };
    RC_ASSERT(snapshot(quick) == snapshot(whole));
    repeats += quick.repeats;
  }));
  EXPECT_GT(repeats, 100) << "else the test compares nothing";
}

TEST(Repeats, AreTakenFromTheSecondReportOn) {
  Harness h;
  h.open();
  core::Issue issue = h.issue({{"rule", "nan"}}, core::IssueStatus::firing);
  const auto again = [&] {
    const core::Issue next = h.issue({{"rule", "nan"}}, core::IssueStatus::firing);
    return h.router().on_repeat(
        {outline_of(7), next.source, next.event_id, next.sequence, next.time, next.starts_at},
        h.now());
  };
  EXPECT_FALSE(again()) << "nobody knows it";
  issue.sequence = 0;
  h.router().on_issue(issue, h.now(), outline_of(7));
  EXPECT_TRUE(again());
  EXPECT_TRUE(again());
  h.resolve({{"rule", "nan"}});
  EXPECT_FALSE(again()) << "it fires anew";
}

TEST(Repeats, AreFoundAmongManyAndForgotten) {
  Repeats repeats;
  std::vector<IssueState> states(1000);
  for (std::size_t i = 0; i < states.size(); ++i) repeats.remember(states[i], outline_of(i * 64));
  for (std::size_t i = 0; i < states.size(); i += 3) repeats.forget(states[i]);
  for (std::size_t i = 1; i < states.size(); i += 3) {
    repeats.remember(states[i], outline_of(i * 64 + 1));
  }
  for (std::size_t i = 0; i < states.size(); ++i) {
    IssueState* const kept = i % 3 == 2 ? &states[i] : nullptr;
    EXPECT_EQ(repeats.find(outline_of(i * 64)), kept) << i;
    IssueState* const renamed = i % 3 == 1 ? &states[i] : nullptr;
    EXPECT_EQ(repeats.find(outline_of(i * 64 + 1)), renamed) << i;
  }
  for (IssueState& state : states) repeats.forget(state);
  EXPECT_EQ(repeats.size(), 0U);
}

}  // namespace
}  // namespace tocsin::routing
