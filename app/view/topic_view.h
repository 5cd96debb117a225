// What the topics say at this moment, folded from their records: runs, issues, stops, and what is
// not well. For people and scripts that look; nothing is decided by it.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/recordings/moment.h"
#include "core/command.h"
#include "core/fields/stop_request.h"
#include "core/issue.h"
#include "core/notification.h"
#include "core/record_source.h"
#include "core/stop_course.h"
#include "ingest/ingest.h"
#include "routing/routing.h"

namespace tocsin::app {

class TopicView {
 public:
  struct SeenIssue {
    /// The newest episode: what was found, and in `ending` how it ended (core/episode.h).
    core::Issue newest;
    core::WallTime since{};     // begin of the newest episode
    std::uint64_t reports = 0;  // records of this issue that are still in the topic
  };
  struct SeenStop {
    core::Command command;
    std::optional<core::Ack> newest;      // the answer that came last; of who obeys, where one does
    std::optional<core::Ack> checkpoint;  // the answer that names the checkpoint, and its node
    core::StopTold told;  // what came of it: answers, checkpoint with its host, exit code
  };
  struct Refused {
    std::uint64_t records = 0;  // dead letters that are still in the topic
    std::string newest;         // code of the last one, and which field is wrong
  };

  /// Before anything is applied: episodes with a report of such an id are kept, ended ones too. A
  /// later report of an episode, and its resolve, have ids of their own.
  void look_for(std::string event_id) { wanted_id_ = std::move(event_id); }
  /// By issue key, the newest such episode of each.
  [[nodiscard]] const std::map<std::string, SeenIssue>& found() const { return found_; }

  /// The short names of the topics that apply() understands.
  static const std::vector<std::string>& topics();

  /// Any record of those topics, in the order of its partition; what cannot be read is counted.
  void apply(const core::RecordView& record);
  /// Once everything is read: what no producer resolves is over when its attempt is, and the word
  /// that a person stops a run when the run has ended.
  void close_ended();

  /// How an issue that nobody has resolved is over all the same: its attempt is not the newest, or a
  /// person was to stop a run that has ended. none: it fires, or it was resolved.
  [[nodiscard]] core::Resolution outlived(const core::Issue& issue) const;
  /// Of one that is followed for long: drops issues, runs and stops that ended before `before`, and
  /// runs unheard of since. An issue that fires keeps its run.
  void forget(core::WallTime before);

  /// Once it is closed: of this run alone, with what is unhealthy of it, whenever it was.
  void narrow_to(const core::RunUid& run);
  [[nodiscard]] bool of_one_run() const { return of_one_run_; }

  /// What is wrong with the place itself; shown with what is unhealthy.
  void remark(std::string sentence) { remarks_.push_back(std::move(sentence)); }
  [[nodiscard]] const std::vector<std::string>& remarks() const { return remarks_; }

  /// By run: the newest event of the newest attempt.
  [[nodiscard]] const std::map<core::RunUid, core::JobEvent>& runs() const { return runs_; }
  /// By issue key.
  [[nodiscard]] const std::map<std::string, SeenIssue>& issues() const { return issues_; }
  /// By run: the newest stop that was not withdrawn.
  [[nodiscard]] const std::map<core::RunUid, SeenStop>& stops() const { return stops_; }
  /// By run: the pause of its captures that was not taken back.
  [[nodiscard]] const std::map<core::RunUid, core::Command>& pauses() const { return pauses_; }
  /// By integration: the delivery that came last.
  [[nodiscard]] const std::map<std::string, core::Delivery>& deliveries() const {
    return deliveries_;
  }
  /// By run and rule: what the rule is doing, of those that have summed something up, and of runs
  /// that go on those that fail or lack their data. The others, fifty for each run of a year, are
  /// not kept.
  [[nodiscard]] const std::map<std::pair<core::RunUid, std::string>, core::RuleStatusEvent>& rules()
      const {
    return rules_;
  }
  /// By id: silences that are in the topic, ended ones too.
  [[nodiscard]] const std::map<std::string, routing::Silence>& silences() const {
    return silences_;
  }
  /// By command id: stops that wait for a person's word, or waited.
  [[nodiscard]] const std::map<std::string, core::StopRequest>& stop_requests() const {
    return stop_requests_;
  }
  [[nodiscard]] const Refused& refused() const { return refused_; }

 private:
  void apply_event(const core::RecordView& record);
  void apply_issue(core::Issue issue);
  void keep_found(const std::string& key, bool begins, const std::string& event_id);
  void apply_job(const core::JobEvent& event);
  void apply_rule(const core::RuleStatusEvent& rule);
  void forget_ailing_rules(const core::JobEvent& run);
  void apply_command(const core::RecordView& record);
  void apply_ack(core::Ack ack);
  void apply_control(const core::RecordView& record);
  void apply_request(const core::RecordView& record);

  std::map<core::RunUid, core::Command> pauses_;
  std::map<core::RunUid, core::JobEvent> runs_;
  std::map<std::string, SeenIssue> issues_;
  std::map<core::RunUid, SeenStop> stops_;
  std::map<std::string, core::Ack> early_acks_;      // by command id: the command is read later
  std::map<std::string, core::Ack> checkpoints_;     // the same, of answers that name one
  std::map<std::string, core::StopCourse> courses_;  // by command id, for the same reason
  std::map<std::string, core::Delivery> deliveries_;
  std::vector<std::string> remarks_;
  std::map<std::pair<core::RunUid, std::string>, core::RuleStatusEvent> rules_;
  std::map<std::string, routing::Silence> silences_;
  std::map<std::string, core::StopRequest> stop_requests_;
  Refused refused_;
  bool of_one_run_ = false;
  std::string wanted_id_;
  std::map<std::string, SeenIssue> found_;
  std::set<std::string> going_on_;  // keys of found_ whose episode is the newest of the issue
};

/// A source of all topics of the view, from their beginning: as nobody, so that no position is
/// committed and no lease is touched.
core::Result<std::unique_ptr<core::RecordSource>> view_source(ingest::Transport& transport);
/// Up to the present end. deadline_exceeded: it did not come to an end.
core::Status read_to_end(core::RecordSource& source, core::RecordHandler apply,
                         std::chrono::milliseconds patience);
/// All of it that was there at the moment, closed.
core::Status read_view(ingest::Transport& transport, TopicView& view,
                       std::chrono::milliseconds patience, const Moment& moment = {});

}  // namespace tocsin::app
