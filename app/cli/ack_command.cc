#include "app/cli/ack_command.h"

#include <unistd.h>

#include <iostream>
#include <set>
#include <vector>

#include "app/cli/command_audit.h"
#include "app/cli/looking.h"
#include "app/process/exit_code.h"
#include "app/process/person.h"
#include "app/view/ack_choice.h"
#include "app/view/ack_words.h"
#include "app/view/topic_view.h"
#include "app/view/view_text.h"
#include "core/json.h"
#include "core/system_clock.h"
#include "core/topics.h"
#include "routing/routing.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using routing::Acknowledgement;

constexpr auto kAckPatience = 60s;
constexpr auto kAckWritten = 10s;

core::Value ack_value(const Acknowledgement& ack) {
  const std::string json = ack_json(ack);
  auto out = core::parse_json(json, json.size());
  return out ? std::move(*out) : core::Value();
}

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

/// What messages have told, read once.
core::Result<AckChoice> choose(const Looking& looking, const TopicView& view,
                               const AckOptions& options) {
  ToldGroups groups;
  const auto told = [&]() -> core::Result<const ToldGroups*> {
    ingest::SourceOptions reading;
    reading.topics = {core::topic::kRouterOutbox};
    reading.start = ingest::Start::beginning;
    auto source = looking.transport().source(reading);
    if (!source) return source.error();
    const auto apply = [&](const core::RecordView& record) { groups.apply(record); };
    if (auto read = read_to_end(**source, apply, kAckPatience); !read) return read.error();
    return &groups;
  };
  return choose_acknowledged(view, options.what, options.job, told);
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
  for (const std::string& id : ids) {
    const auto known = view.acknowledgements().find(id);
    const core::Value before =
        known == view.acknowledgements().end() ? core::Value() : ack_value(known->second);
    records.push_back(command_audit("ack.ended", id, before, core::Value(), now));
    records.push_back(ack_tombstone(id));
  }
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
    std::vector<core::OutRecord> records{
        command_audit("ack.set", ack.id, core::Value(), ack_value(ack), now, ack.by)};
    for (core::OutRecord& one : ack_records(ack, view.acknowledgements(), now)) {
      records.push_back(std::move(one));
    }
    const auto written = write_acks(looking, records);
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
