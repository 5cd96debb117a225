#include "app/cli/feedback_command.h"

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <utility>
#include <vector>

#include "app/cli/looking.h"
#include "app/process/exit_code.h"
#include "app/process/person.h"
#include "app/view/audit_record.h"
#include "app/view/issue_episodes.h"
#include "app/view/issue_feedback.h"
#include "app/view/said_of_issues.h"
#include "core/fields/issue_feedback.h"
#include "core/json.h"
#include "core/system_clock.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using Episode = IssueEpisodes::Episode;

constexpr auto kFeedbackPatience = 60s;
constexpr auto kFeedbackWritten = 10s;
/// What is older goes with the next word: the page keeps an issue shorter (insights.keep).
constexpr core::Duration kFeedbackKept = std::chrono::hours(24 * 366);

/// The place, the issue that is meant, and what was said so far.
struct Sayings {
  Looking looking;
  Episode episode;
  FeedbackView said;
  std::string author;
  core::WallTime now{};
};

// kOk, or the exit code once it is said why.
int look_at_feedback(const FeedbackOptions& options, Sayings& out) {
  if (auto opened = out.looking.open(options.config_file, options.out); !opened)
    return refuse(opened.error());
  SaidOfIssues all;
  if (auto read = read_said(out.looking.transport(), all, kFeedbackPatience); !read)
    return refuse(read.error());
  out.said = std::move(all.feedback);
  auto chosen = all.episodes.choose(options.id);
  if (!chosen) {
    std::cerr << "tocsin: " << chosen.error().message << "\n";
    return kFailed;
  }
  out.episode = std::move(*chosen);
  out.author = options.author.empty() ? this_person() : options.author;
  out.now = core::SystemClock().now();
  return kOk;
}

core::OutRecord audit_of_feedback(const Sayings& sayings, const std::string& what,
                                  const std::string& key, core::Value before, core::Value after) {
  const auto with_issue = [&](core::Value said) {
    if (said.is_null()) return core::Value();
    return core::Value(core::ValueMap{{"issue", sayings.episode.names.issue},
                                      {"event_id", sayings.episode.names.event_id},
                                      {"said", std::move(said)}});
  };
  AuditEntry entry;
  entry.at = sayings.now;
  entry.who = sayings.author;
  entry.by = "command";
  const std::string person = this_person();
  entry.source = person.substr(person.find('@') + 1);
  entry.what = what;
  entry.subject = key;
  entry.before = with_issue(std::move(before));
  entry.after = with_issue(std::move(after));
  return audit_record(entry);
}

// Both, and tombstones of what is over for long.
core::Status write_feedback(const Sayings& sayings, core::OutRecord audit, core::OutRecord said) {
  ingest::PublisherOptions publishing;
  publishing.writer = "feedback-" + std::to_string(getpid());
  publishing.durable = true;
  auto publisher = sayings.looking.transport().publisher(publishing);
  if (!publisher) return publisher.error();
  const std::string key = said.key;
  std::vector<core::OutRecord> records{std::move(audit), std::move(said)};
  for (const std::string& old : sayings.said.older_than(sayings.now - kFeedbackKept)) {
    if (old != key) records.push_back(core::feedback_tombstone(old));
  }
  for (const core::OutRecord& record : records) {
    if (auto sent = (*publisher)->publish(record); !sent) return sent;
  }
  return (*publisher)->flush(kFeedbackWritten);
}

int unusable(const core::Error& error) {
  std::cerr << "tocsin: " << error.message << "\n";
  return kUsage;
}

int take_verdict_back(const FeedbackOptions& options, const Sayings& sayings,
                      const core::IssueVerdict* standing) {
  if (standing == nullptr) {
    std::cerr << "tocsin: nobody has given a verdict on " << sayings.episode.headline << "\n";
    return kFailed;
  }
  const std::string key = core::verdict_key(sayings.episode.names);
  if (!options.dry_run) {
    const auto written = write_feedback(
        sayings, audit_of_feedback(sayings, "verdict.taken_back", key, verdict_value(standing), {}),
        core::feedback_tombstone(key));
    if (!written) return refuse(written.error());
  }
  if (options.json) {
    std::cout << core::verdict_json(*standing) << "\n";
    return kOk;
  }
  std::cout << (options.dry_run ? "would take back " : "took back ") << standing->verdict << ": "
            << sayings.episode.headline << "\n";
  return kOk;
}

}  // namespace

int verdict_command(const FeedbackOptions& options) {
  Sayings sayings;
  if (const int code = look_at_feedback(options, sayings); code != kOk) return code;
  const core::IssueEpisode& of = sayings.episode.names;
  const core::IssueVerdict* standing = sayings.said.verdict(of.issue, of.event_id);
  if (options.take_back) return take_verdict_back(options, sayings, standing);
  const core::IssueVerdict verdict{of,          options.verdict, sayings.author,
                                   sayings.now, options.text,    "cli"};
  if (const auto good = core::read_issue_verdict(core::verdict_json(verdict)); !good)
    return unusable(good.error());
  if (!options.dry_run) {
    const auto written =
        write_feedback(sayings,
                       audit_of_feedback(sayings, "verdict.set", core::verdict_key(of),
                                         verdict_value(standing), verdict_value(&verdict)),
                       core::verdict_record(verdict));
    if (!written) return refuse(written.error());
  }
  if (options.json) {
    std::cout << core::verdict_json(verdict) << "\n";
    return kOk;
  }
  std::cout << (options.dry_run ? "would be " : "") << verdict.verdict << ": "
            << sayings.episode.headline << "\n";
  if (standing != nullptr)
    std::cout << "it takes the place of: " << verdict_text(*standing, sayings.now) << "\n";
  return kOk;
}

int note_command(const FeedbackOptions& options) {
  Sayings sayings;
  if (const int code = look_at_feedback(options, sayings); code != kOk) return code;
  const core::IssueEpisode& of = sayings.episode.names;
  if (sayings.said.notes(of.issue, of.event_id).size() >= core::kMostNotesOfAnIssue) {
    std::cerr << "tocsin: this issue has " << core::kMostNotesOfAnIssue
              << " notes, as many as it may have\n";
    return kFailed;
  }
  core::IssueNote note{"", of, sayings.author, sayings.now, options.text, "cli"};
  note.id = core::note_id(note);
  if (const auto good = core::read_issue_note(core::note_json(note)); !good)
    return unusable(good.error());
  if (!options.dry_run) {
    core::OutRecord record = core::note_record(note);
    core::OutRecord audit =
        audit_of_feedback(sayings, "note.set", record.key, {}, note_value(note));
    const auto written = write_feedback(sayings, std::move(audit), std::move(record));
    if (!written) return refuse(written.error());
  }
  if (options.json) {
    std::cout << core::note_json(note) << "\n";
    return kOk;
  }
  std::cout << (options.dry_run ? "would note on " : "noted on ") << sayings.episode.headline
            << "\n";
  return kOk;
}

}  // namespace tocsin::app
