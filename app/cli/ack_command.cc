#include "app/cli/ack_command.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <set>
#include <vector>

#include "app/cli/looking.h"
#include "app/process/exit_code.h"
#include "app/process/person.h"
#include "app/view/ack_words.h"
#include "app/view/topic_view.h"
#include "app/view/view_text.h"
#include "app/view/view_words.h"
#include "app/view/which_run.h"
#include "core/fields/outbox.h"
#include "core/system_clock.h"
#include "core/topics.h"
#include "routing/routing.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using routing::Acknowledgement;

constexpr auto kAckPatience = 60s;
constexpr auto kAckWritten = 10s;
constexpr std::size_t kLeastHash = 8;  // digits of a hash that are looked for

core::Status write_acks(const Looking& looking, const std::vector<core::OutRecord>& records) {
  ingest::PublisherOptions publishing;
  publishing.writer = "ack-" + std::to_string(getpid());
  publishing.durable = true;
  auto publisher = looking.transport().publisher(publishing);
  if (!publisher) return publisher.error();
  for (const core::OutRecord& record : records) {
    if (auto sent = (*publisher)->publish(record); !sent) return sent;
  }
  return (*publisher)->flush(kAckWritten);
}

bool fires(const TopicView::SeenIssue& seen) {
  return seen.newest.status == core::IssueStatus::firing;
}

/// What is acknowledged, and which open issues that is.
struct AckChoice {
  Acknowledgement names;
  std::vector<std::pair<std::string, const TopicView::SeenIssue*>> open;  // key, issue
};

void choose_open(const TopicView& view, const std::set<std::string>& keys, AckChoice& out) {
  for (const auto& [key, seen] : view.issues()) {
    if (fires(seen) && keys.contains(key)) out.open.emplace_back(key, &seen);
  }
}

/// By the id of a message, or the hash of its group: what messages of that group have told.
core::Result<AckChoice> choose_told(const Looking& looking, const TopicView& view,
                                    const std::string& what) {
  ingest::SourceOptions options;
  options.topics = {core::topic::kRouterOutbox};
  options.start = ingest::Start::beginning;
  auto source = looking.transport().source(options);
  if (!source) return source.error();
  std::map<std::string, std::set<std::string>> told;  // group hash → issue keys
  std::set<std::string> groups;
  const auto apply = [&](const core::RecordView& record) {
    if (record.tombstone) return;
    auto message = ingest::open_notification(record);
    if (!message) return;
    if (message->notification_id.starts_with(what) || message->group_hash.starts_with(what)) {
      groups.insert(message->group_hash);
    }
    for (const core::IssueRef& one : core::listing_of(*message).issues) {
      told[message->group_hash].insert(one.issue_key);
    }
  };
  if (auto read = read_to_end(**source, apply, kAckPatience); !read) return read.error();
  AckChoice out;
  if (groups.size() > 1) {
    return core::Error{core::Code::failed_precondition,
                       std::to_string(groups.size()) + " groups begin with " + what};
  }
  if (groups.empty()) return out;
  out.names.group = *groups.begin();
  choose_open(view, told[out.names.group], out);
  for (const auto& one : out.open) {
    if (out.names.issues.size() < routing::kMaxAckIssues) out.names.issues.push_back(one.first);
  }
  return out;
}

bool is_hash(const std::string& text) {
  return text.size() >= kLeastHash &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

core::Result<AckChoice> choose_run(const TopicView& view, const AckOptions& options) {
  const auto run = which_run(known_runs(view), options.what, options.job);
  if (!run) return run.error();
  AckChoice out;
  out.names.run = core::to_text(run->run.uid);
  for (const auto& [key, seen] : view.issues()) {
    if (fires(seen) && seen.newest.run.uid == run->run.uid) out.open.emplace_back(key, &seen);
  }
  return out;
}

core::Result<AckChoice> choose(const Looking& looking, const TopicView& view,
                               const AckOptions& options) {
  AckChoice out;
  if (options.job.empty()) {
    for (const auto& [key, seen] : view.issues()) {
      if (fires(seen) && goes_by(key, seen.newest, options.what)) out.open.emplace_back(key, &seen);
    }
    if (out.open.size() > 1) {
      return core::Error{core::Code::failed_precondition,
                         std::to_string(out.open.size()) +
                             " open issues have IDs that begin with " + options.what +
                             "; see: tocsin issues list"};
    }
    if (out.open.size() == 1) {
      out.names.issues = {out.open.front().first};
      return out;
    }
    if (options.what.starts_with("ntf_") || is_hash(options.what)) {
      auto told = choose_told(looking, view, options.what);
      if (!told || !told->names.group.empty()) return told;
    }
    if (options.what.starts_with("iss_") || options.what.starts_with("ntf_")) {
      return core::Error{core::Code::not_found,
                         "nothing open has ID " + options.what + "; see: tocsin issues list"};
    }
  }
  return choose_run(view, options);
}

core::Result<std::optional<core::WallTime>> end_of(const AckOptions& options, core::WallTime now) {
  if (options.lasts > core::Duration::zero()) return std::optional(now + options.lasts);
  if (options.until.empty()) return std::optional<core::WallTime>();
  const auto time = core::parse_rfc3339(options.until);
  if (!time || *time <= now) {
    return core::invalid_argument("--until: \"" + options.until +
                                  "\" is no time to come, such as 2026-11-22T18:00:00Z");
  }
  return std::optional(*time);
}

std::string open_text(const AckChoice& choice, const TopicView& view, core::WallTime now) {
  std::vector<const TopicView::SeenIssue*> issues;
  for (const auto& one : choice.open) issues.push_back(one.second);
  return issues.empty() ? "" : issues_text(issues, view, now);
}

int take_back(const AckOptions& options, const Looking& looking, const TopicView& view,
              const AckChoice& choice, core::WallTime now) {
  std::set<std::string> ids;
  for (const auto& [key, seen] : choice.open) {
    for (const std::string& id : acks_of(view, key, *seen, now)) ids.insert(id);
  }
  if (ids.empty()) {
    std::cerr << "tocsin: nobody has acknowledged " << options.what << "\n";
    return kFailed;
  }
  std::vector<core::OutRecord> records;
  for (const std::string& id : ids) records.push_back(ack_tombstone(id));
  if (!options.dry_run) {
    if (const auto written = write_acks(looking, records); !written) return refuse(written.error());
  }
  for (const std::string& id : ids) {
    std::cout << id << (options.dry_run ? " would be taken back\n" : " taken back\n");
  }
  return kOk;
}

}  // namespace

int ack_command(const AckOptions& options) {
  Looking looking;
  TopicView view;
  if (auto opened = looking.open(options.config_file, options.out); !opened) {
    return refuse(opened.error());
  }
  if (auto read = read_view(looking.transport(), view, kAckPatience); !read) {
    return refuse(read.error());
  }
  const core::WallTime now = core::SystemClock().now();
  const auto until = end_of(options, now);
  if (!until) {
    std::cerr << "tocsin: " << until.error().message << "\n";
    return kUsage;
  }
  const auto choice = choose(looking, view, options);
  if (!choice) return refuse(choice.error());
  if (options.take_back) return take_back(options, looking, view, *choice, now);
  if (choice->open.empty()) {
    std::cerr << "tocsin: no issue of " << options.what
              << " is open; see: tocsin issues list --all\n";
    return kFailed;
  }
  Acknowledgement ack = choice->names;
  ack.by = options.author.empty() ? this_person() : options.author;
  ack.note = options.note;
  ack.at = now;
  ack.until = *until;
  ack.origin = "cli";
  ack.id = ack_id(ack);
  if (const auto good = routing::read_ack(ack_json(ack)); !good) {
    std::cerr << "tocsin: " << good.error().message << "\n";
    return kUsage;
  }
  if (!options.dry_run) {
    const auto written = write_acks(looking, ack_records(ack, view.acknowledgements(), now));
    if (!written) return refuse(written.error());
  }
  if (options.json) {
    std::cout << ack_json(ack) << "\n";
    return kOk;
  }
  std::cout << (options.dry_run ? "would acknowledge" : ack.id) << "\n"
            << "acknowledges " << choice->open.size()
            << (choice->open.size() == 1 ? " open issue" : " open issues")
            << ": no repeats and no escalation until "
            << (ack.until ? core::to_rfc3339(*ack.until) : "the end, at most ack_timeout (24h)")
            << "\n"
            << open_text(*choice, view, now);
  return kOk;
}

}  // namespace tocsin::app
