#include "app/cli/view_commands.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <map>

#include "app/cli/looking.h"
#include "app/cli/routing_knowledge.h"
#include "app/log/log_console.h"
#include "app/process/exit_code.h"
#include "app/view/episode_text.h"
#include "app/view/held_back.h"
#include "app/view/said_of_issues.h"
#include "app/view/status_text.h"
#include "app/view/told_issues.h"
#include "app/view/topic_view.h"
#include "app/view/unjudged.h"
#include "app/view/view_text.h"
#include "app/view/view_words.h"
#include "app/view/which_run.h"
#include "core/json.h"
#include "core/system_clock.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kViewPatience = 60s;

/// What is looked at, and as of when.
struct Sight {
  Looking looking;
  TopicView view;
  Moment moment;
  core::WallTime now;  // of ages
  RoutingKnowledge routing;
};

// kOk, or why nothing is seen, which was said. `id`: of an issue that is looked for.
template <typename Options>
int look(const Options& options, Sight& sight, const std::string& id = {}) {
  const core::WallTime present = core::SystemClock().now();
  const auto moment = parse_moment(options.at, present);
  if (!moment) {
    std::cerr << "tocsin: " << moment.error().message << "\n";
    return kUsage;
  }
  sight.moment = *moment;
  sight.now = moment->now(present);
  if (auto opened = sight.looking.open(options.config_file, options.out); !opened)
    return refuse(opened.error());
  sight.view.look_for(id);
  const auto read = read_view(sight.looking.transport(), sight.view, kViewPatience, sight.moment);
  if (!read) return refuse(read.error());
  sight.routing.read_config(options.config_file);
  if (sight.moment.at) return kOk;  // what the router's state was then is not kept
  const auto state = sight.routing.read_state(sight.looking.transport());
  return state ? kOk : refuse(state.error());
}

template <typename Options>
bool wanted(const core::Issue& issue, const Options& options) {
  return (options.job.empty() || options.job == issue.run.job) &&
         (options.rule.empty() || options.rule == issue.rule);
}

// Open ones, worst first, then oldest.
std::vector<const TopicView::SeenIssue*> chosen(const TopicView& view,
                                                const IssueListOptions& options) {
  std::vector<const TopicView::SeenIssue*> out;
  for (const auto& [key, seen] : view.issues()) {
    const bool open = seen.newest.status == core::IssueStatus::firing;
    if ((open || options.all) && wanted(seen.newest, options)) out.push_back(&seen);
  }
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) {
    const auto rank = [](const TopicView::SeenIssue& one) {
      return std::tuple(one.newest.status != core::IssueStatus::firing,
                        -static_cast<int>(one.newest.severity), one.since, one.newest.event_id);
    };
    return rank(*a) < rank(*b);
  });
  return out;
}

/// What `tail` prints of each record.
class Tail {
 public:
  Tail(const TailOptions& options, bool colour) : options_(options), colour_(colour) {}

  void take(const core::RecordView& record) {
    if (record.tombstone) return;
    if (record.topic == core::topic::kIssues) return event(record);
    if (options_.json || !options_.rule.empty()) return;
    if (record.topic == core::topic::kCommands) {
      const auto decoded = ingest::decode_command(record);
      if (!decoded || !decoded->command || decoded->action != "stop" || !heard(decoded->run))
        return;
      std::cout << stop_line(*decoded->command, jobs_[decoded->run], colour_) << "\n";
    } else if (const auto ack = ingest::decode_ack(record)) {
      const bool told = ack->action == "stop" || ack->phase != "received";
      if (told && heard(ack->run)) std::cout << ack_line(*ack, colour_) << "\n";
    }
  }

 private:
  void event(const core::RecordView& record) {
    const auto decoded = ingest::decode_event(record);
    if (!decoded) return;
    if (const auto* issue = std::get_if<core::Issue>(&decoded->event)) {
      jobs_[issue->run.uid] = issue->run.job;
      if (!wanted(*issue, options_)) return;
      std::cout << (options_.json ? ingest::issue_json(*issue) : issue_line(*issue, colour_))
                << "\n";
    } else if (const auto* job = std::get_if<core::JobEvent>(&decoded->event)) {
      jobs_[job->run.uid] = job->run.job;
      const bool news = job->phase != core::JobPhase::heartbeat && options_.rule.empty();
      if (news && heard(job->run.uid) && !options_.json) {
        std::cout << job_line(*job, colour_) << "\n";
      }
    }
  }
  bool heard(const core::RunUid& run) { return options_.job.empty() || options_.job == jobs_[run]; }

  const TailOptions& options_;
  bool colour_;
  std::map<core::RunUid, std::string> jobs_;  // as far as they were seen
};

}  // namespace

int status_command(const StatusOptions& options) {
  Sight sight;
  if (const int code = look(options, sight); code != kOk) return code;
  const std::string transport = sight.looking.transport().describe();
  const bool of_one_run = !options.run.empty();
  if (of_one_run) {
    const auto run = which_run(known_runs(sight.view), options.run, options.job);
    if (!run) return refuse(run.error());
    sight.view.narrow_to(run->run.uid);
  } else if (auto full = sight.looking.transport().space_warning(); !full.empty()) {
    sight.view.remark(std::move(full));
  }
  const std::size_t most = options.all ? std::numeric_limits<std::size_t>::max() : kStatusLines;
  Unjudged unjudged;  // of the present: who read a journal once is not known
  const bool looks = !of_one_run && !sight.moment.at && !sight.looking.journal().empty();
  if (looks) {
    unjudged = find_unjudged(sight.looking.transport(), sight.looking.journal(),
                             sight.looking.prefix(), sight.view, sight.now);
  }
  if (options.json) {
    const std::string json =
        status_json(sight.view, transport, sight.now, sight.moment, sight.routing.sight());
    std::cout << (looks ? with_unjudged(json, unjudged) : json) << "\n";
  } else {
    std::cout << status_text(sight.view, transport + sight.moment.text(), sight.now, most,
                             sight.routing.sight())
              << unjudged_text(unjudged, sight.now);
  }
  return is_unhealthy(sight.view, sight.now) || unjudged.alarming() ? kFailed : kOk;
}

int issues_list(const IssueListOptions& options) {
  Sight sight;
  if (const int code = look(options, sight); code != kOk) return code;
  const auto found = chosen(sight.view, options);
  if (options.json) {
    core::ValueList list;
    list.reserve(found.size());
    const HeldBackView held_back(sight.view, sight.routing.sight(), sight.now);
    for (const auto* seen : found) {
      const HeldBack held = held_back.of(sight.view, core::issue_key(seen->newest.labels), *seen);
      list.push_back(issue_with_held_back(seen->newest, held));
    }
    std::cout << core::to_json(core::Value(std::move(list))) << "\n";
  } else {
    std::cout << (found.empty() ? "no open issues" + sight.moment.text() + "\n"
                                : issues_text(found, sight.view, sight.now, sight.routing.sight()));
  }
  return kOk;
}

int issues_show(const IssueShowOptions& options) {
  Sight sight;
  if (const int code = look(options, sight, options.id); code != kOk) return code;
  std::vector<const TopicView::SeenIssue*> found;
  for (const auto& [key, seen] : sight.view.found()) found.push_back(&seen);
  for (const auto& [key, seen] : sight.view.issues()) {
    const bool by_event = sight.view.found().contains(key);
    if (!by_event && goes_by(key, seen.newest, options.id)) found.push_back(&seen);
  }
  std::vector<TopicView::SeenIssue> told;  // what no topic of issues holds, messages may
  if (found.empty() && options.id.starts_with("iss_")) {
    auto read = told_issues(sight.looking.transport(), options.id, kViewPatience, sight.moment);
    if (!read) return refuse(read.error());
    told = std::move(*read);
    for (const auto& seen : told) found.push_back(&seen);
  }
  if (found.size() != 1) {
    std::cerr << "tocsin: "
              << (found.empty() ? "no issue" : std::to_string(found.size()) + " issues")
              << " with ID " << options.id << sight.moment.text()
              << "; see: tocsin issues list --all\n";
    return kFailed;
  }
  SaidOfIssues said;
  const auto read = read_said(sight.looking.transport(), said, kViewPatience, sight.moment);
  if (!read) return refuse(read.error());
  std::cout << (options.json ? with_said(said, options.id,
                                         episode_json(*found[0], sight.view, sight.now,
                                                      sight.routing.sight())) +
                                   "\n"
                             : issue_text(*found[0], sight.view, sight.now, sight.routing.sight()) +
                                   said_text(said, options.id, sight.now));
  return kOk;
}

int tail_command(const TailOptions& options) {
  Looking looking;
  if (const auto opened = looking.open(options.config_file, options.out); !opened)
    return refuse(opened.error());
  if (const auto reached = looking.transport().ping(5s); !reached) return refuse(reached.error());
  ingest::SourceOptions from;
  from.topics = {core::topic::kIssues, core::topic::kCommands, core::topic::kAcks};
  from.start = options.all ? ingest::Start::beginning : ingest::Start::end;
  auto source = looking.transport().source(from);
  if (!source) return refuse(source.error());
  follow_until_signalled();
  Tail tail(options, shows_colour(STDOUT_FILENO));
  std::string trouble;  // said once while it lasts
  while (goes_on()) {
    const auto read =
        (*source)->poll(200ms, 256, [&](const core::RecordView& record) { tail.take(record); });
    std::cout.flush();
    if (read) {
      trouble.clear();
      continue;
    }
    if (trouble != read.error().message) {
      trouble = read.error().message;
      std::cerr << "tocsin: " << trouble << "\n";
    }
    const bool passes = read.error().retryable() || read.error().code == core::Code::data_loss;
    if (!passes) return exit_code(read.error());
  }
  return kOk;
}

}  // namespace tocsin::app
