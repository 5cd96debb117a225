#include "app/cli/stop_run.h"

#include <unistd.h>

#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "app/cli/looking.h"
#include "app/log/log_console.h"
#include "app/process/exit_code.h"
#include "app/process/person.h"
#include "app/view/stop_progress.h"
#include "app/view/topic_view.h"
#include "app/view/view_text.h"
#include "app/view/which_run.h"
#include "core/json.h"
#include "core/system_clock.h"
#include "core/topics.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kStopPatience = 60s;   // for reading what is there
constexpr auto kStopWritten = 10s;    // until the command is durable
constexpr auto kStopPaceComes = 10s;  // ranks that have just started tell it by then
constexpr auto kAnswersUsually = 5s;  // a loop that asks answers sooner
constexpr auto kEndIsTold = 2s;       // by the engine, after the last rank's word

core::CurrentRun current(const core::JobEvent& run) {
  core::CurrentRun out;
  out.attempt = run.run.attempt;
  out.launch = run.launch;
  out.ended = run.phase == core::JobPhase::ended;
  out.world_size = run.world_size;
  out.step = run.step;
  out.step_seconds = run.step_seconds;
  out.step_at = run.time;
  return out;
}

std::string asked_to(const core::Command& command) {
  const std::string mode = core::text_at(command.args, "mode");
  std::string out = mode == "checkpoint_then_stop" ? "save a checkpoint and stop" : mode;
  if (const core::Value* step = core::find(command.args, "not_before_step")) {
    out += ", all ranks after step " + core::to_json(*step);
  }
  return out;
}

class StopRun {
 public:
  explicit StopRun(const StopRunOptions& options)
      : options_(options), colour_(shows_colour(STDOUT_FILENO)) {}

  int run() {
    if (auto opened = looking_.open(options_.config_file, options_.out); !opened) {
      return refuse(opened.error());
    }
    auto source = view_source(looking_.transport());
    if (!source) return refuse(source.error());
    source_ = std::move(*source);
    const auto apply = [this](const core::RecordView& record) { learn(record); };
    if (auto read = read_to_end(*source_, apply, kStopPatience); !read) return refuse(read.error());
    auto chosen = which_run(view_.runs(), options_.run, options_.job);
    if (!chosen) return refuse(chosen.error());
    run_ = std::move(*chosen);
    // A run that is lost may come back, and then finds what was asked.
    if (run_.phase == core::JobPhase::ended && run_.outcome != "lost") return ended();
    if (auto waited = wait_for_pace(); !waited) return refuse(waited.error());
    return decide();
  }

 private:
  // Everything that was there before: runs, and the answers to stops.
  void learn(const core::RecordView& record) {
    view_.apply(record);
    if (record.topic != core::topic::kAcks || record.tombstone) return;
    auto ack = ingest::decode_ack(record);
    if (ack && ack->action == "stop") answers_[ack->run].push_back(std::move(*ack));
  }

  [[nodiscard]] std::string who() const {
    return (run_.run.job.empty() ? "" : core::visible(run_.run.job) + ", ") + "run " +
           core::to_text(run_.run.uid) + ", attempt " + std::to_string(run_.run.attempt);
  }

  int ended() {
    const std::string outcome = run_.outcome.empty() ? "unknown" : run_.outcome;
    if (options_.json) return report("already_ended", "it has ended already: " + outcome, kOk);
    std::cout << who() << " has ended already: " << core::visible(outcome) << "\n";
    return kOk;
  }

  // Of several ranks the step after which all leave is reckoned from their pace.
  core::Status wait_for_pace() {
    const core::Duration until = clock_.monotonic() + kStopPaceComes;
    while (run_.world_size > 1 && !run_.step_seconds && clock_.monotonic() < until) {
      const auto read =
          source_->poll(200ms, 256, [this](const core::RecordView& record) { learn(record); });
      if (!read && !passes(read.error())) return read.error();
      const core::JobEvent& newest = view_.runs().at(run_.run.uid);
      if (clock_.now() - newest.time > kStopPaceComes) break;  // it says nothing at present
      run_ = newest;
    }
    return core::ok();
  }

  static bool passes(const core::Error& error) {
    return error.retryable() || error.code == core::Code::data_loss;
  }

  [[nodiscard]] std::optional<actions::HeldStop> held() const {
    const auto stop = view_.stops().find(run_.run.uid);
    if (stop == view_.stops().end()) return std::nullopt;
    actions::HeldStop out{stop->second.command, false, false};
    const auto answers = answers_.find(run_.run.uid);
    if (answers == answers_.end()) return out;
    for (const core::Ack& ack : answers->second) {
      if (ack.command_id != out.command.command_id) continue;
      const bool again = ack.reason == "duplicate" || ack.reason == "too_late";
      if (ack.phase != "received" && ack.phase != "refused") out.accepted = true;
      if (ack.phase == "refused" && !again && ack.revision >= out.command.revision) {
        out.refused = true;
      }
    }
    return out;
  }

  int decide() {
    const auto before = held();
    actions::StopByHand wanted =
        actions::stop_by_hand(options_.terms, run_.run, current(run_), before, clock_.now());
    if (wanted.leave == actions::StopByHand::Leave::newer_attempt) {
      std::cerr << "tocsin: attempt " << wanted.command.attempt << " of " << who()
                << " has begun, and is not in the registry yet; try again\n";
      return kTemporary;
    }
    command_ = std::move(wanted.command);
    if (wanted.leave == actions::StopByHand::Leave::under_way) return follow(true);
    command_.requested_by = this_person();
    command_.reason.summary = options_.reason;
    if (options_.dry_run) return would_ask();
    if (auto written = write(); !written) return refuse(written.error());
    return follow(false);
  }

  int would_ask() {
    if (options_.json) return report("dry_run", "nothing was written", kOk);
    std::cout << "would ask " << who() << ", to " << asked_to(command_)
              << (command_.launch.empty() ? "; cooperative only: its launch is unknown" : "")
              << "\n";
    return kOk;
  }

  core::Status write() {
    ingest::PublisherOptions publishing;
    publishing.writer = "stop-" + std::to_string(getpid());
    publishing.durable = true;
    auto publisher = looking_.transport().publisher(publishing);
    if (!publisher) return publisher.error();
    const std::string source = "/" + looking_.cluster() + "/cli";
    if (auto sent = (*publisher)->publish(ingest::encode_command(command_, source)); !sent) {
      return sent;
    }
    const auto issue = actions::stopped_by_hand_issue(command_, run_, looking_.cluster());
    if (auto sent = (*publisher)->publish(ingest::encode_issue(issue)); !sent) return sent;
    return (*publisher)->flush(kStopWritten);
  }

  void say(const std::string& line) const {
    if (!options_.json) std::cout << line << std::endl;
  }

  // What comes from now on about this run.
  void hear(const core::RecordView& record, StopProgress& progress) {
    if (record.tombstone) return;
    if (record.topic == core::topic::kCommands) {
      const auto decoded = ingest::decode_command(record);
      if (decoded && decoded->command && progress.on_command(*decoded->command)) {
        say(stop_line(*decoded->command, run_.run.job, colour_));
      }
    } else if (record.topic == core::topic::kAcks) {
      auto ack = ingest::decode_ack(record);
      if (!ack || !progress.on_ack(*ack)) return;
      say(ack_line(*ack, colour_));
      answers_[run_.run.uid].push_back(std::move(*ack));
    } else if (const auto event = ingest::decode_event(record)) {
      if (const auto* issue = std::get_if<core::Issue>(&event->event)) progress.on_issue(*issue);
      const auto* job = std::get_if<core::JobEvent>(&event->event);
      if (job == nullptr || job->run.uid != run_.run.uid) return;
      progress.on_job(*job);
      if (job->phase != core::JobPhase::heartbeat && record.topic == core::topic::kIssues) {
        say(job_line(*job, colour_));
      }
    }
  }

  int follow(bool before) {
    StopProgress progress(command_, run_.world_size);
    if (before) {
      say("already requested by " +
          (command_.reason.rule.empty() ? core::visible(command_.requested_by)
                                        : "the rule " + core::visible(command_.reason.rule)) +
          ": " + who());
    }
    say(stop_line(command_, run_.run.job, colour_));
    if (before) {
      for (const core::Ack& ack : answers_[run_.run.uid]) {
        if (progress.on_ack(ack)) say(ack_line(ack, colour_));
      }
    }
    follow_until_signalled();
    const core::Duration began = clock_.monotonic();
    bool hinted = false;
    std::optional<core::Duration> stopped;
    while (goes_on() && clock_.monotonic() - began < options_.wait) {
      const StopEnd end = progress.end(clock_.now());
      if (end == StopEnd::stopped && !stopped) stopped = clock_.monotonic();
      const bool told =
          !progress.outcome().empty() || (stopped && clock_.monotonic() - *stopped > kEndIsTold);
      if (end != StopEnd::open && (end != StopEnd::stopped || told)) break;
      const auto read = source_->poll(
          200ms, 256, [&](const core::RecordView& record) { hear(record, progress); });
      if (!read && !passes(read.error())) return refuse(read.error());
      if (!hinted && !progress.answered() && clock_.monotonic() - began > kAnswersUsually) {
        hinted = true;
        say("no rank has replied yet: only a loop that calls hook.should_stop() does; after " +
            core::to_text(options_.terms.ack) +
            " the agent on its node (tocsin up or tocsin collect) signals the process");
      }
    }
    command_ = progress.command();
    return conclude(progress, !goes_on());
  }

  int conclude(const StopProgress& progress, bool signalled) {
    const core::WallTime now = clock_.now();
    const StopEnd end = progress.end(now);
    if (end == StopEnd::open && options_.wait <= core::Duration::zero()) {
      return report("asked", "", kOk);
    }
    const std::string sentence = progress.sentence(now);
    if (end == StopEnd::open) {
      return report("open",
                    sentence + (signalled ? "; the request stays in force" : "; not ended yet") +
                        " (see: tocsin status, tocsin tail)",
                    kTemporary);
    }
    const bool stopped = end == StopEnd::stopped;
    return report(stopped ? "stopped" : "not_stopped", sentence, stopped ? kOk : kFailed);
  }

  int report(const char* state, const std::string& sentence, int code) {
    if (!options_.json) {
      if (!sentence.empty()) std::cout << core::visible(sentence) << "\n";
      return code;
    }
    core::ValueMap out{{"run", core::to_text(run_.run.uid)},
                       {"job", run_.run.job},
                       {"attempt", std::int64_t{run_.run.attempt}},
                       {"state", state},
                       {"detail", sentence}};
    if (!command_.command_id.empty()) {
      out.emplace_back("command_id", command_.command_id);
      out.emplace_back("revision", std::uint64_t{command_.revision});
      out.emplace_back("requested_by", command_.requested_by);
      core::ValueList acks;
      for (const core::Ack& ack : answers_[run_.run.uid]) {
        if (ack.command_id != command_.command_id) continue;
        acks.push_back(core::ValueMap{{"rank", std::int64_t{ack.rank}},
                                      {"worker", ack.worker},
                                      {"phase", ack.phase},
                                      {"step", ack.step},
                                      {"reason", ack.reason},
                                      {"checkpoint", ack.checkpoint_path}});
      }
      out.emplace_back("acks", std::move(acks));
    }
    std::cout << core::to_json(core::Value(std::move(out))) << "\n";
    return code;
  }

  const StopRunOptions& options_;
  bool colour_;
  core::SystemClock clock_;
  Looking looking_;
  std::unique_ptr<core::RecordSource> source_;
  TopicView view_;
  std::map<core::RunUid, std::vector<core::Ack>> answers_;  // to stops, in the order of the topic
  core::JobEvent run_;
  core::Command command_;
};

}  // namespace

int stop_run(const StopRunOptions& options) { return StopRun(options).run(); }

}  // namespace tocsin::app
