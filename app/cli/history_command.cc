#include "app/cli/history_command.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "app/cli/looking.h"
#include "app/process/exit_code.h"
#include "app/recordings/recording.h"
#include "app/view/delivery_audit.h"
#include "app/view/delivery_history.h"
#include "app/view/topic_view.h"
#include "app/view/view_words.h"
#include "app/view/which_run.h"
#include "core/system_clock.h"
#include "core/topics.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

constexpr std::chrono::seconds kHistoryPatience{60};
constexpr std::size_t kHistoryShown = 40;  // notifications, the newest

core::Status read_deliveries(ingest::Transport& transport, core::RecordHandler apply) {
  ingest::SourceOptions options;
  options.topics = {core::topic::kRouterOutbox, core::topic::kRouterDeliveries};
  options.start = ingest::Start::beginning;
  auto source = transport.source(std::move(options));
  if (!source) return source.error();
  return read_to_end(**source, apply, kHistoryPatience);
}

/// Issues by key, and the beginning of an id that no topic of issues has any more.
struct WantedIssues {
  std::set<std::string> keys;
  std::string id;
  [[nodiscard]] bool holds(const core::IssueRef& issue) const {
    if (keys.contains(issue.issue_key)) return true;
    return !id.empty() && (issue.issue_key.starts_with(id) || issue.event_id.starts_with(id));
  }
};

core::Result<WantedIssues> wanted_issues(const HistoryOptions& options, const TopicView& view) {
  WantedIssues out;
  out.id = options.issue;
  core::RunUid run{};
  if (!options.run.empty()) {
    const auto found = which_run(view.runs(), options.run, options.job);
    if (!found) return found.error();
    run = found->run.uid;
  }
  for (const auto& [key, seen] : view.issues()) {
    if (!options.run.empty() && seen.newest.run.uid != run) continue;
    if (!options.issue.empty() && !goes_by(key, seen.newest, options.issue)) continue;
    out.keys.insert(key);
  }
  if (!options.issue.empty() && !options.run.empty()) out.id.clear();
  return out;
}

int audit(const Looking& looking, bool json) {
  // First: what is read afterwards is at least as new.
  const auto stands =
      looking.positions_of(looking.prefix() + "-deliver", {core::topic::kRouterOutbox});
  DeliveryAudit audit(stands ? std::optional(*stands) : std::nullopt);
  const auto read = read_deliveries(looking.transport(),
                                    [&](const core::RecordView& record) { audit.apply(record); });
  if (!read) return refuse(read.error());
  const AuditVerdict verdict = audit.verdict();
  if (json) {
    std::cout << core::to_json(audit_value(verdict)) << "\n";
  } else {
    std::cout << audit_text(verdict, core::SystemClock().now());
  }
  return verdict.offenders.empty() ? kOk : kFailed;
}

int tell_history(const DeliveryHistory& history, const HistoryOptions& options) {
  auto messages = history.messages();
  if (options.json) {
    std::cout << core::to_json(history_value(messages)) << "\n";
    return kOk;
  }
  if (messages.empty()) {
    std::cout << "no notifications\n";
    return kOk;
  }
  const std::size_t cut =
      options.all || messages.size() <= kHistoryShown ? 0 : messages.size() - kHistoryShown;
  messages.erase(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(cut));
  if (cut > 0) std::cout << "… " << cut << " older notifications (--all)\n\n";
  std::cout << history_text(messages);
  return kOk;
}

}  // namespace

int history_command(const HistoryOptions& options) {
  Looking looking;
  if (auto opened = looking.open(options.config_file, options.out); !opened) {
    return refuse(opened.error());
  }
  if (auto reached = looking.transport().ping(std::chrono::seconds(5)); !reached) {
    return refuse(reached.error());
  }
  if (options.audit) return audit(looking, options.json);
  HistoryFilter filter;
  filter.integration = options.integration;
  if (!options.state.empty()) filter.state = core::delivery_state_from(options.state);
  const auto bound = parse_bound("--since", options.since, core::SystemClock().now());
  if (!bound || bound->offset) {
    std::cerr << "tocsin: "
              << (bound ? "--since takes a time or a span, no offset" : bound.error().message)
              << "\n";
    return kUsage;
  }
  filter.since = bound->time;
  if (!options.issue.empty() || !options.run.empty()) {
    TopicView view;
    if (auto read = read_view(looking.transport(), view, kHistoryPatience); !read) {
      return refuse(read.error());
    }
    auto wanted = wanted_issues(options, view);
    if (!wanted) return refuse(wanted.error());
    filter.tells_of = [issues = std::move(*wanted)](const core::IssueRef& issue) {
      return issues.holds(issue);
    };
  }
  DeliveryHistory history(std::move(filter));
  const auto read = read_deliveries(looking.transport(),
                                    [&](const core::RecordView& record) { history.apply(record); });
  return read ? tell_history(history, options) : refuse(read.error());
}

}  // namespace tocsin::app
