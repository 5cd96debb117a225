#include "app/view/topic_view.h"

#include <iterator>
#include <set>

#include "actions/actions.h"
#include "app/view/refused_records.h"
#include "core/episode.h"
#include "core/labels.h"
#include "core/text.h"
#include "core/topics.h"

namespace tocsin::app {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMostOfADetail = 300;  // bytes

bool ails(const core::RuleStatusEvent& rule) {
  return rule.status == core::RuleState::error ||
         (rule.status == core::RuleState::no_data && !rule.missing.empty());
}

bool over(const core::JobEvent& run, std::uint32_t attempt) {
  return attempt < run.run.attempt ||
         (attempt == run.run.attempt && run.phase == core::JobPhase::ended);
}

bool obeys(const core::Ack& ack) { return ack.phase != "received" && ack.phase != "refused"; }

}  // namespace

const std::vector<std::string>& TopicView::topics() {
  static const std::vector<std::string> kTopics{
      core::topic::kRegistry, core::topic::kIssues,           core::topic::kCommands,
      core::topic::kAcks,     core::topic::kRouterDeliveries, core::topic::kRouterControl,
      core::topic::kDlq};
  return kTopics;
}

void TopicView::apply(const core::RecordView& record) {
  if (record.topic == core::topic::kCommands) return apply_command(record);
  if (record.topic == core::topic::kRouterControl) return apply_control(record);
  if (record.tombstone) return;
  if (record.topic == core::topic::kRegistry || record.topic == core::topic::kIssues)
    return apply_event(record);
  if (record.topic == core::topic::kAcks) {
    if (auto ack = ingest::decode_ack(record)) apply_ack(std::move(*ack));
  } else if (record.topic == core::topic::kRouterDeliveries) {
    if (auto delivery = ingest::decode_delivery(record)) {
      deliveries_[delivery->integration] = std::move(*delivery);
    }
  } else if (record.topic == core::topic::kDlq) {
    if (record.header(dlq_act::kAct)) {  // a person has seen to it
      if (refused_.records > 0) --refused_.records;
      return;
    }
    ++refused_.records;
    if (const auto code = record.header("error-code")) refused_.newest = *code;
    if (const auto detail = record.header("error-detail"); detail && !detail->empty()) {
      refused_.newest += ": " + std::string(core::cut_utf8(*detail, kMostOfADetail));
    }
  }
}

void TopicView::apply_event(const core::RecordView& record) {
  auto decoded = ingest::decode_event(record);
  if (!decoded) return;
  if (auto* issue = std::get_if<core::Issue>(&decoded->event)) {
    apply_issue(std::move(*issue));
  } else if (const auto* job = std::get_if<core::JobEvent>(&decoded->event)) {
    apply_job(*job);
  } else if (const auto* rule = std::get_if<core::RuleStatusEvent>(&decoded->event)) {
    apply_rule(*rule);
  }
}

void TopicView::apply_rule(const core::RuleStatusEvent& rule) {
  const std::pair key{rule.run.uid, rule.rule};
  const auto run = runs_.find(rule.run.uid);
  const bool ended = run != runs_.end() && over(run->second, rule.run.attempt);
  const auto known = rules_.find(key);
  const bool kept = rule.summary.empty() && known != rules_.end() &&
                    known->second.run.attempt == rule.run.attempt && !known->second.summary.empty();
  if (kept) {  // a status without one does not take back what was summed up before
    core::ValueMap summary = std::move(known->second.summary);
    known->second = rule;
    known->second.summary = std::move(summary);
  } else if (!rule.summary.empty() || (!ended && ails(rule))) {
    rules_[key] = rule;
  } else {
    rules_.erase(key);
  }
}

// What a rule lacked, or where it failed, is told of runs that go on.
void TopicView::forget_ailing_rules(const core::JobEvent& run) {
  auto rule = rules_.lower_bound({run.run.uid, ""});
  while (rule != rules_.end() && rule->first.first == run.run.uid) {
    const bool gone = rule->second.summary.empty() && over(run, rule->second.run.attempt);
    rule = gone ? rules_.erase(rule) : std::next(rule);
  }
}

void TopicView::apply_issue(core::Issue issue) {
  const std::string key = core::issue_key(issue.labels);
  const std::string event_id = issue.event_id;
  SeenIssue& seen = issues_[key];
  const bool fires = issue.status == core::IssueStatus::firing;
  const bool first = seen.reports == 0;
  ++seen.reports;
  const bool begins = first || (fires && seen.newest.status == core::IssueStatus::resolved);
  if (begins) {
    seen.since = issue.starts_at == core::WallTime{} ? issue.time : issue.starts_at;
    if (!fires) core::end_alone(issue);
    seen.newest = std::move(issue);
  } else if (!fires) {
    core::end_with(seen.newest, issue);
  } else if (core::outranks(issue, seen.newest)) {
    seen.newest = std::move(issue);
  }
  if (!wanted_id_.empty()) keep_found(key, begins, event_id);
}

void TopicView::keep_found(const std::string& key, bool begins, const std::string& event_id) {
  if (begins) going_on_.erase(key);
  if (event_id.starts_with(wanted_id_)) going_on_.insert(key);
  if (going_on_.contains(key)) found_[key] = issues_[key];
}

void TopicView::apply_job(const core::JobEvent& event) {
  core::JobEvent& known = runs_[event.run.uid];
  const bool later_attempt = event.run.attempt > known.run.attempt;
  if (event.run.attempt < known.run.attempt) return;
  if (!later_attempt && event.time < known.time) return;
  core::JobEvent newest = event;
  if (!later_attempt) {  // a heartbeat need not say everything again, and an end is an end
    if (!newest.step) newest.step = known.step;
    if (!newest.started_at) newest.started_at = known.started_at;
    if (known.phase == core::JobPhase::ended) {
      newest.phase = core::JobPhase::ended;
      if (newest.outcome.empty()) newest.outcome = known.outcome;
    }
  }
  known = std::move(newest);
  if (known.phase == core::JobPhase::ended) forget_ailing_rules(known);
}

void TopicView::apply_command(const core::RecordView& record) {
  auto decoded = ingest::decode_command(record);
  if (decoded && decoded->action == "capture/pause") {
    if (decoded->command) {
      pauses_.insert_or_assign(decoded->run, std::move(*decoded->command));
    } else {
      pauses_.erase(decoded->run);
    }
  }
  if (!decoded || decoded->action != "stop") return;
  if (!decoded->command) {
    stops_.erase(decoded->run);
    return;
  }
  SeenStop stop{std::move(*decoded->command), std::nullopt, std::nullopt, {}};
  core::StopCourse& course = courses_[stop.command.command_id];
  core::note(course, stop.command);
  stop.told = course.told;
  if (const auto early = early_acks_.find(stop.command.command_id); early != early_acks_.end()) {
    stop.newest = early->second;
  }
  if (const auto known = checkpoints_.find(stop.command.command_id); known != checkpoints_.end()) {
    stop.checkpoint = known->second;
  }
  stops_[decoded->run] = std::move(stop);
}

void TopicView::apply_ack(core::Ack ack) {
  const bool platform = ack.action == actions::kPlatformAck;
  if (ack.action != "stop" && !platform) return;
  core::StopCourse& course = courses_[ack.command_id];
  course.told.command_id = ack.command_id;
  if (const auto run = runs_.find(ack.run); run != runs_.end()) {
    course.told.answers.asked = run->second.world_size;
  }
  core::note(course, ack);
  const auto asked = stops_.find(ack.run);
  const bool of_newest =
      asked != stops_.end() && asked->second.command.command_id == ack.command_id;
  if (of_newest) asked->second.told = course.told;
  if (platform) return;  // no rank has answered
  if (!ack.checkpoint_path.empty()) {
    checkpoints_[ack.command_id] = ack;
    if (of_newest) asked->second.checkpoint = ack;
  }
  const auto early = early_acks_.find(ack.command_id);
  // Who is started again refuses what was meant for the launch before, and has not undone it.
  if (early != early_acks_.end() && obeys(early->second) && !obeys(ack) &&
      ack.revision <= early->second.revision) {
    return;
  }
  if (of_newest) asked->second.newest = ack;
  early_acks_[ack.command_id] = std::move(ack);
}

void TopicView::apply_control(const core::RecordView& record) {
  constexpr std::string_view kSilence = "silence/";
  constexpr std::string_view kAck = "ack/";
  const std::string_view key = record.key.value_or("");
  if (key.starts_with(core::kApprovalPrefix)) return apply_request(record);
  if (key.starts_with(kAck)) {
    const std::string id(key.substr(kAck.size()));
    acknowledgements_.erase(id);
    if (record.tombstone) return;
    if (auto ack = routing::read_ack(record.text())) acknowledgements_[id] = std::move(*ack);
    return;
  }
  if (!key.starts_with(kSilence)) return;
  const std::string id(key.substr(kSilence.size()));
  if (record.tombstone) {
    silences_.erase(id);
  } else if (auto silence = routing::read_silence(record.text())) {
    // As the router takes it: a change that comes too late changes nothing.
    const auto known = silences_.find(id);
    auto next =
        routing::follow(known == silences_.end() ? nullptr : &known->second, std::move(*silence));
    if (next && next->id == id) silences_[id] = std::move(*next);
  }
}

void TopicView::apply_request(const core::RecordView& record) {
  const std::string key(record.key.value_or(""));
  const std::string id = key.substr(std::min(key.size(), core::kApprovalPrefix.size() + 1));
  if (record.tombstone) {
    stop_requests_.erase(id);
  } else if (auto request = core::read_stop_request(record.text())) {
    stop_requests_[id] = std::move(*request);
  }
}

void TopicView::narrow_to(const core::RunUid& run) {
  const auto of_another = [&](const auto& entry) { return entry.first != run; };
  std::erase_if(runs_, of_another);
  std::erase_if(stops_, of_another);
  std::erase_if(pauses_, of_another);
  std::erase_if(rules_, [&](const auto& entry) { return entry.first.first != run; });
  std::erase_if(issues_, [&](const auto& entry) { return entry.second.newest.run.uid != run; });
  deliveries_.clear();
  silences_.clear();
  std::erase_if(stop_requests_, [&](const auto& one) { return one.second.run.uid != run; });
  remarks_.clear();
  refused_ = {};
  of_one_run_ = true;
}

core::Resolution TopicView::outlived(const core::Issue& issue) const {
  const auto run = runs_.find(issue.run.uid);
  if (issue.status != core::IssueStatus::firing || run == runs_.end())
    return core::Resolution::none;
  const core::JobEvent& newest = run->second;
  if (issue.run.attempt > 0 && issue.run.attempt < newest.run.attempt)
    return core::Resolution::superseded;
  const bool by_hand = actions::is(issue.rule, actions::ActionIssue::stopped_by_hand) ||
                       actions::is(issue.rule, actions::ActionIssue::stop_waits);
  return by_hand && newest.phase == core::JobPhase::ended ? core::Resolution::job_ended
                                                          : core::Resolution::none;
}

void TopicView::forget(core::WallTime before) {
  std::set<core::RunUid> needed;
  std::erase_if(stop_requests_, [&](const auto& one) {
    return one.second.state != "waiting" && one.second.asked_at < before;
  });
  std::erase_if(issues_, [&](const auto& entry) {
    const core::Issue& issue = entry.second.newest;
    const bool over =
        issue.status == core::IssueStatus::resolved || outlived(issue) != core::Resolution::none;
    const bool gone = over && issue.ends_at.value_or(issue.time) < before;
    if (!gone) needed.insert(issue.run.uid);
    return gone;
  });
  std::erase_if(runs_, [&](const auto& entry) {
    return entry.second.time < before && !needed.contains(entry.first);
  });
  const auto unknown = [&](const core::RunUid& run) { return !runs_.contains(run); };
  std::erase_if(stops_, [&](const auto& entry) { return unknown(entry.first); });
  std::erase_if(pauses_, [&](const auto& entry) { return unknown(entry.first); });
  std::erase_if(rules_, [&](const auto& entry) { return unknown(entry.first.first); });
  std::erase_if(early_acks_, [&](const auto& entry) { return unknown(entry.second.run); });
  std::erase_if(checkpoints_, [&](const auto& entry) { return unknown(entry.second.run); });
  std::set<std::string> asked;
  for (const auto& [run, stop] : stops_) asked.insert(stop.command.command_id);
  for (const auto& [id, ack] : early_acks_) asked.insert(id);
  std::erase_if(courses_, [&](const auto& entry) { return !asked.contains(entry.first); });
}

void TopicView::close_ended() {
  for (auto& [uid, stop] : stops_) {
    const auto run = runs_.find(uid);
    if (run == runs_.end() || !over(run->second, stop.command.attempt)) continue;
    core::StopCourse& course = courses_[stop.command.command_id];
    core::note_end(course, run->second.world_size);
    stop.told = course.told;
  }
  for (auto& [key, seen] : issues_) {
    core::Issue& issue = seen.newest;
    const core::Resolution how = outlived(issue);
    if (how == core::Resolution::none) continue;
    issue.resolution = how;
    issue.status = core::IssueStatus::resolved;
    issue.ending = core::Ending{std::string(core::end_sentence(how)), {}, {}, {}};
    if (const auto& ended = runs_.at(issue.run.uid).ended_at; ended) issue.ends_at = ended;
  }
  for (const std::string& key : going_on_) found_[key] = issues_[key];
}

core::Result<std::unique_ptr<core::RecordSource>> view_source(ingest::Transport& transport) {
  if (auto reached = transport.ping(5s); !reached) return reached.error();
  ingest::SourceOptions options;
  options.topics = TopicView::topics();
  options.start = ingest::Start::beginning;
  return transport.source(options);
}

core::Status read_to_end(core::RecordSource& source, core::RecordHandler apply,
                         std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < end) {
    const auto read = source.poll(100ms, 1024, apply);
    if (!read && read.error().code != core::Code::data_loss) return read.error();
    if (read && *read == 0 && source.at_end()) return core::ok();
  }
  return core::Error{core::Code::deadline_exceeded,
                     "the topics were not read to their end in time"};
}

core::Status read_view(ingest::Transport& transport, TopicView& view,
                       std::chrono::milliseconds patience, const Moment& moment) {
  auto source = view_source(transport);
  if (!source) return source.error();
  const auto apply = [&](const core::RecordView& record) {
    if (moment.holds(record)) view.apply(record);
  };
  if (auto read = read_to_end(**source, apply, patience); !read) return read;
  view.close_ended();
  return core::ok();
}

}  // namespace tocsin::app
