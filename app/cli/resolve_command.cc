#include "app/cli/resolve_command.h"

#include <unistd.h>

#include <iostream>
#include <vector>

#include "app/cli/looking.h"
#include "app/process/exit_code.h"
#include "app/process/person.h"
#include "app/view/audit_record.h"
#include "app/view/topic_view.h"
#include "app/view/view_words.h"
#include "core/identity.h"
#include "core/system_clock.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kResolvePatience = 60s;
constexpr auto kResolveWritten = 10s;

// The one issue that goes by `id`; null: said why not.
const TopicView::SeenIssue* only_issue(const TopicView& view, const std::string& id) {
  std::vector<const TopicView::SeenIssue*> found;
  for (const auto& entry : view.issues()) {
    if (goes_by(entry.first, entry.second.newest, id)) found.push_back(&entry.second);
  }
  if (found.size() == 1) return found.front();
  std::cerr << "tocsin: " << (found.empty() ? "no issue" : std::to_string(found.size()) + " issues")
            << " with ID " << core::visible(id, 100) << "; see: tocsin issues list\n";
  return nullptr;
}

core::Issue resolved_by_hand(const core::Issue& found, const ResolveOptions& options,
                             const std::string& author, const std::string& cluster,
                             core::WallTime now) {
  core::Issue out = found;
  // A producer of its own: what the rule has numbered goes on.
  out.source = "/" + cluster + "/cli";
  out.sequence = 0;
  out.event_id = core::make_id("iss_", {"resolve", core::issue_key(found.labels), found.event_id,
                                        std::to_string(core::nanoseconds(now))});
  out.time = now;
  out.status = core::IssueStatus::resolved;
  out.resolution = core::Resolution::manual;
  out.ends_at = now;
  out.explicit_expiry = true;
  out.ending = core::Ending{"Resolved by " + author + ": " + options.note, out.event_id,
                            std::nullopt, std::nullopt};
  out.measured_at = out.published_at = out.evaluated_at = now;
  return out;
}

core::OutRecord audit_of_resolve(const core::Issue& resolve, const std::string& author,
                                 const std::string& note, core::WallTime now) {
  AuditEntry entry;
  entry.at = now;
  entry.who = author;
  entry.by = "command";
  const std::string person = this_person();
  entry.source = person.substr(person.find('@') + 1);
  entry.what = "issue.resolved";
  entry.subject = core::issue_key(resolve.labels);
  entry.after =
      core::ValueMap{{"event_id", resolve.event_id}, {"rule", resolve.rule}, {"note", note}};
  return audit_record(entry);
}

core::Status write_resolve(ingest::Transport& transport, const core::OutRecord& audit,
                           const core::OutRecord& resolve) {
  ingest::PublisherOptions publishing;
  publishing.writer = "resolve-" + std::to_string(getpid());
  publishing.durable = true;
  auto publisher = transport.publisher(publishing);
  if (!publisher) return publisher.error();
  for (const core::OutRecord* record : {&audit, &resolve}) {
    if (auto sent = (*publisher)->publish(*record); !sent) return sent;
  }
  return (*publisher)->flush(kResolveWritten);
}

}  // namespace

int issues_resolve(const ResolveOptions& options) {
  Looking looking;
  if (auto opened = looking.open(options.config_file, options.out); !opened)
    return refuse(opened.error());
  TopicView view;
  view.look_for(options.id);
  if (const auto read = read_view(looking.transport(), view, kResolvePatience); !read)
    return refuse(read.error());
  const auto* seen = only_issue(view, options.id);
  if (seen == nullptr) return kFailed;
  const core::Issue& issue = seen->newest;
  if (issue.status != core::IssueStatus::firing || view.outlived(issue) != core::Resolution::none) {
    std::cerr << "tocsin: this issue is over already: " << issue_headline(issue) << "\n";
    return kFailed;
  }
  const core::WallTime now = core::SystemClock().now();
  const std::string author = options.author.empty() ? this_person() : options.author;
  const core::Issue resolve = resolved_by_hand(issue, options, author, looking.cluster(), now);
  if (!options.dry_run) {
    const auto written =
        write_resolve(looking.transport(), audit_of_resolve(resolve, author, options.note, now),
                      ingest::encode_issue(resolve));
    if (!written) return refuse(written.error());
  }
  if (options.json) {
    std::cout << ingest::issue_json(resolve) << "\n";
    return kOk;
  }
  std::cout << (options.dry_run ? "would resolve " : "resolved ")
            << short_id(core::fingerprint(issue.labels)) << ": "
            << core::visible(issue.summary, 300) << "\n";
  if (!options.dry_run)
    std::cout
        << "whoever was told of it hears of the end; it fires again if it is reported again\n";
  return kOk;
}

}  // namespace tocsin::app
