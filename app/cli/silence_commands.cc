#include "app/cli/silence_commands.h"
#include "app/health/own_issues.h"
#include "app/process/exit_code.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "actions/actions.h"
#include "app/cli/looking.h"
#include "app/process/person.h"
#include "app/view/audit_record.h"
#include "app/view/silence_records.h"
#include "app/view/topic_view.h"
#include "app/view/view_text.h"
#include "app/view/which_run.h"
#include "core/json.h"
#include "core/system_clock.h"
#include "core/text.h"
#include "core/text_table.h"
#include "core/visible_text.h"
#include "routing/routing.h"
#include "rules/rules.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using routing::Silence;

constexpr auto kSilencePatience = 60s;
constexpr auto kSilenceWritten = 10s;
constexpr std::size_t kSilenceIdLength = 14;

// `what`: "silence.set" or "silence.ended".
core::OutRecord audit_of_silence(const TopicView& view, const Silence& silence, const char* what,
                                 core::WallTime now) {
  AuditEntry entry;
  entry.at = now;
  entry.who = this_person();
  entry.by = "command";
  entry.source = entry.who.substr(entry.who.find('@') + 1);
  entry.what = what;
  entry.subject = silence.id;
  const auto before = view.silences().find(silence.id);
  if (before != view.silences().end()) entry.before = silence_fields(before->second);
  entry.after = silence_fields(silence);
  return audit_record(entry);
}

core::Status write_silence(const Looking& looking, const TopicView& view, const Silence& silence,
                           const char* what, core::WallTime now) {
  ingest::PublisherOptions publishing;
  publishing.writer = "silence-" + std::to_string(getpid());
  publishing.durable = true;
  auto publisher = looking.transport().publisher(publishing);
  if (!publisher) return publisher.error();
  auto records = silence_records(silence, view.silences(), now);
  records.insert(records.begin(), audit_of_silence(view, silence, what, now));
  for (const core::OutRecord& record : records) {
    if (auto sent = (*publisher)->publish(record); !sent) return sent;
  }
  return (*publisher)->flush(kSilenceWritten);
}

core::Status look(const SilenceOptions& options, Looking& looking, TopicView& view) {
  if (auto opened = looking.open(options.config_file, options.out); !opened) return opened;
  return read_view(looking.transport(), view, kSilencePatience);
}

int wrong(const std::string& text) {
  std::cerr << "tocsin: " << text << "\n";
  return kUsage;
}

bool matches(const routing::Matchers& matchers, const TopicView::SeenIssue& seen) {
  return seen.newest.status == core::IssueStatus::firing && matchers.matches(seen.newest.labels);
}

std::string what_is_held_back(const Silence& silence) {
  if (silence.actions == "notify") return "mutes notifications of ";
  if (silence.actions == "stop_training") return "mutes stops of ";
  return "mutes notifications and stops of ";
}

// {job="a",run_uid="…"} of what was given.
core::Result<std::string> matchers_of(const SilenceOptions& options, const TopicView& view) {
  std::vector<std::string> terms = options.matchers;
  if (!options.run.empty()) {
    const auto run = which_run(view.runs(), options.run, options.job);
    if (!run) return run.error();
    terms.push_back("run_uid=\"" + core::to_text(run->run.uid) + "\"");
  } else if (!options.job.empty()) {
    terms.push_back("job=" + core::to_json(core::Value(options.job)));
  }
  const auto parsed = routing::Matchers::parse(terms);
  if (!parsed) return parsed.error();
  return parsed->canonical();
}

// Names and values that nothing here has: most likely misspelt, and then nobody is silenced. Not
// refused, since what is to come may have them.
void say_unknown(const routing::Matchers& matchers, const TopicView& view) {
  std::vector<std::string> labels(rules::issue_labels().begin(), rules::issue_labels().end());
  std::vector<std::string> rules;
  std::vector<std::string> jobs;
  for (const auto own :
       {rules::own_issues(), routing::own_issues(), actions::own_issues(), app::own_issues()}) {
    for (const core::OwnIssue& issue : own) rules.emplace_back(issue.name);
  }
  for (const auto& rule : rules::builtin_rules()) rules.emplace_back(rule.name);
  for (const auto& [key, seen] : view.issues()) {
    rules.push_back(seen.newest.rule);
    for (const auto& [name, value] : seen.newest.labels.entries()) labels.push_back(name);
  }
  for (const auto& [uid, event] : view.runs()) {
    jobs.push_back(event.run.job);
    for (const auto& [name, value] : event.labels.entries()) labels.push_back(name);
    for (const std::string& rule : event.rules) rules.push_back(rule);
  }
  const auto look_for = [](const std::string& what, const std::string& name,
                           const std::vector<std::string>& known) {
    if (std::find(known.begin(), known.end(), name) != known.end()) return;
    const std::string near = core::nearest(name, known);
    std::cerr << "tocsin: " << what << " \"" << core::visible(name) << "\" so far"
              << (near.empty() ? "" : "; did you mean \"" + core::visible(near) + "\"?") << "\n";
  };
  for (const auto& term : matchers.terms()) {
    look_for("no issue has a label", term.name, labels);
    if (term.op != routing::MatchOperator::equal) continue;
    if (term.name == "rule") look_for("there is no rule", term.value, rules);
    if (term.name == "job") look_for("there is no job", term.value, jobs);
  }
}

}  // namespace

int silence_add(const SilenceOptions& options) {
  Looking looking;
  TopicView view;
  if (const auto seen = look(options, looking, view); !seen) return refuse(seen.error());
  const core::SystemClock clock;
  Silence silence;
  silence.created_at = clock.now();
  silence.starts_at = silence.created_at + options.begins;
  silence.ends_at = silence.starts_at + options.lasts;
  silence.created_by = options.author.empty() ? this_person() : options.author;
  silence.comment = options.comment;
  silence.actions = options.actions;
  const auto matchers = matchers_of(options, view);
  if (!matchers) {
    const bool usage = matchers.error().code == core::Code::invalid_argument;
    return usage ? wrong(matchers.error().message) : refuse(matchers.error());
  }
  silence.matchers = *matchers;
  if (const auto good = routing::check(silence); !good) return wrong(good.error().message);
  silence.id = silence_id(silence);
  if (!options.dry_run) {
    const auto written = write_silence(looking, view, silence, "silence.set", clock.now());
    if (!written) return refuse(written.error());
  }
  if (options.json) {
    std::cout << silence_json(silence) << "\n";
    return kOk;
  }
  const auto parsed = routing::Matchers::parse(silence.matchers);
  say_unknown(*parsed, view);
  std::vector<const TopicView::SeenIssue*> open;
  for (const auto& [key, seen] : view.issues()) {
    if (matches(*parsed, seen)) open.push_back(&seen);
  }
  std::cout << (options.dry_run ? "would begin" : silence.id) << "\n"
            << what_is_held_back(silence) << silence.matchers << " from "
            << core::to_rfc3339(silence.starts_at) << " until " << core::to_rfc3339(silence.ends_at)
            << "; matching open issues: " << open.size() << "\n"
            << (open.empty() ? "" : issues_text(open, view, clock.now()));
  return kOk;
}

int silence_list(const SilenceOptions& options) {
  Looking looking;
  TopicView view;
  if (const auto seen = look(options, looking, view); !seen) return refuse(seen.error());
  const core::WallTime now = core::SystemClock().now();
  core::ValueList list;
  std::vector<core::TableRow> rows{
      {"ID", "STATE", "UNTIL", "BY", "ACTIONS", "MATCHERS", "COMMENT"}};
  for (const auto& [id, silence] : view.silences()) {
    if (silence.ends_at <= now && !options.all) continue;
    if (const auto value = core::parse_json(silence_json(silence), 1U << 16)) {
      list.push_back(*value);
    }
    rows.push_back({id.substr(0, kSilenceIdLength), silence_state(silence, now),
                    core::to_rfc3339(silence.ends_at), core::visible(silence.created_by),
                    silence.actions.empty() ? "all" : core::visible(silence.actions),
                    core::visible(silence.matchers), core::visible(silence.comment)});
  }
  if (options.json) {
    std::cout << core::to_json(core::Value(std::move(list))) << "\n";
  } else {
    std::cout << (rows.size() == 1 ? "no silences\n" : core::text_table(rows));
  }
  return kOk;
}

int silence_expire(const SilenceOptions& options) {
  Looking looking;
  TopicView view;
  if (const auto seen = look(options, looking, view); !seen) return refuse(seen.error());
  const core::WallTime now = core::SystemClock().now();
  std::vector<Silence> found;
  for (const auto& [id, silence] : view.silences()) {
    if (!options.id.empty() && id.starts_with(options.id) && silence.ends_at > now) {
      found.push_back(silence);
    }
  }
  if (found.size() != 1) {
    std::cerr << "tocsin: "
              << (found.empty() ? "no silence" : std::to_string(found.size()) + " silences")
              << " active or pending with ID " << options.id << "; see: tocsin silence list\n";
    return kFailed;
  }
  const Silence silence = ended_silence(found.front(), now);
  if (const auto written = write_silence(looking, view, silence, "silence.ended", now); !written) {
    return refuse(written.error());
  }
  std::cout << silence.id << " ended\n";
  return kOk;
}

}  // namespace tocsin::app
