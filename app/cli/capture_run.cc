#include "app/cli/capture_run.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include "app/cli/looking.h"
#include "app/process/exit_code.h"
#include "app/process/person.h"
#include "app/view/capture_order.h"
#include "app/view/topic_view.h"
#include "app/view/view_text.h"
#include "app/view/which_run.h"
#include "core/json.h"
#include "core/system_clock.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kCapturePatience = 60s;  // for reading what is there
constexpr auto kCaptureWritten = 10s;   // until the command is durable
constexpr auto kCapturePaceComes = 10s;
constexpr auto kNewcomer = 5s;  // until a run has told of a rank that has opened
// A trace begins so many seconds ahead, as steps.
constexpr double kAhead = 3;
constexpr int kMostTries = 4;  // each three times as far ahead

CaptureOrder order_of(const CaptureRunOptions& options, const std::string& person) {
  CaptureOrder out;
  out.kind = options.stacks                    ? CaptureOrder::Kind::stacks
             : options.trace > 0               ? CaptureOrder::Kind::trace
             : options.pause || options.resume ? CaptureOrder::Kind::pause
                                               : CaptureOrder::Kind::more;
  out.collections = options.collections;
  out.statistics = options.statistics;
  out.raw = options.raw;
  out.every = options.every;
  out.steps = options.trace > 0 ? options.trace : options.steps;
  out.person = person;
  out.reason = options.reason;
  out.wait = options.wait;
  return out;
}

class CaptureRun {
 public:
  explicit CaptureRun(const CaptureRunOptions& options)
      : options_(options), person_(this_person()), order_(order_of(options, person_)) {}

  int run() {
    if (auto opened = looking_.open(options_.config_file, options_.out); !opened) {
      return refuse(opened.error());
    }
    auto source = view_source(looking_.transport());
    if (!source) return refuse(source.error());
    source_ = std::move(*source);
    const auto apply = [this](const core::RecordView& record) { view_.apply(record); };
    if (auto read = read_to_end(*source_, apply, kCapturePatience); !read)
      return refuse(read.error());
    auto chosen = which_run(view_.runs(), options_.run, options_.job);
    if (!chosen) return refuse(chosen.error());
    run_ = std::move(*chosen);
    if (run_.phase == core::JobPhase::ended) return report("ended", who() + " has ended", kFailed);
    return options_.end || options_.resume ? withdraw() : ask();
  }

 private:
  [[nodiscard]] std::string who() const {
    return (run_.run.job.empty() ? "" : core::visible(run_.run.job) + ", ") + "run " +
           core::to_text(run_.run.uid) + ", attempt " + std::to_string(run_.run.attempt);
  }

  core::Status publish(const core::OutRecord& record) {
    ingest::PublisherOptions publishing;
    publishing.writer = "capture-" + std::to_string(getpid());
    publishing.durable = true;
    auto publisher = looking_.transport().publisher(publishing);
    if (!publisher) return publisher.error();
    if (auto sent = (*publisher)->publish(record); !sent) return sent;
    return (*publisher)->flush(kCaptureWritten);
  }

  int withdraw() {
    if (options_.dry_run) return report("dry_run", "nothing was written", kOk);
    const auto written = publish(ingest::withdraw_command(run_.run.uid, order_.slot()));
    if (!written) return refuse(written.error());
    if (options_.resume) return report("resumed", "captures resumed: " + who(), kOk);
    return report("withdrawn", "what " + person_ + " had asked for is withdrawn: " + who(), kOk);
  }

  // The step from which all trace is reckoned from their pace.
  void wait_for_pace() {
    const core::Duration until = clock_.monotonic() + kCapturePaceComes;
    while (!run_.step_seconds && clock_.monotonic() < until) {
      const auto apply = [this](const core::RecordView& record) { view_.apply(record); };
      if (!source_->poll(200ms, 256, apply)) return;
      run_ = view_.runs().at(run_.run.uid);
    }
  }

  int ask() {
    if (options_.trace > 0) wait_for_pace();
    if (const int failed = write(); failed != kOk || options_.dry_run) return failed;
    return follow();
  }

  int write() {
    const core::WallTime now = clock_.now();
    if (options_.trace > 0) order_.from = first_common_step(run_, now, ahead_);
    CaptureAsked asked = capture_command(order_, run_, now);
    command_ = std::move(asked.command);
    until_ = asked.until;
    std::string what = who();
    if (until_ > 0) what += ", until step " + std::to_string(until_);
    if (asked.from > 0) what += ", from step " + std::to_string(asked.from);
    if (options_.dry_run) {
      const int code = report("dry_run", "would ask " + what, kOk);
      if (options_.json) return code;
      for (const std::string& one : capture_cautions(order_)) std::cout << one << "\n";
      return code;
    }
    const std::string source = "/" + looking_.cluster() + "/cli";
    if (auto sent = publish(ingest::encode_command(command_, source)); !sent) {
      return refuse(sent.error());
    }
    if (!options_.json) std::cout << "asked " << what << std::endl;
    return kOk;
  }

  // A rank has passed the step: asked again for a later one, by what it says of where it is.
  bool too_late(const core::Ack& ack) {
    if (options_.trace == 0 || ack.phase != "refused" || !ack.reason.starts_with("too_late") ||
        tries_ >= kMostTries) {
      return false;
    }
    run_.step = std::max<std::int64_t>(run_.step.value_or(0), ack.step);
    run_.time = clock_.now();
    again_ = true;
    return true;
  }

  // A rank that has opened since the run last told of itself: asked again once the run has told of it.
  bool unknown(const core::Ack& ack) {
    if (order_.profiles() || ack.phase != "refused" || ack.reason != "stale" ||
        tries_ >= kMostTries) {
      return false;
    }
    again_ = newcomer_ = true;
    return true;
  }

  [[nodiscard]] std::size_t ranks() const { return std::max<std::size_t>(1, run_.world_size); }

  // True: the launch is another than when it was asked, or that takes too long.
  bool known_again() {
    if (!newcomer_) return true;
    if (told_until_ == core::Duration::zero()) told_until_ = clock_.monotonic() + kNewcomer;
    const auto now = view_.runs().find(run_.run.uid);
    const bool another = now != view_.runs().end() && now->second.launch != run_.launch;
    if (!another && clock_.monotonic() < told_until_) return false;
    if (another) run_ = now->second;
    newcomer_ = false;
    told_until_ = core::Duration::zero();
    return true;
  }

  void hear(const core::RecordView& record) {
    view_.apply(record);
    if (record.tombstone) return;
    if (record.topic == core::topic::kAcks) {
      auto ack = ingest::decode_ack(record);
      if (!ack || ack->command_id != command_.command_id || ack->phase == "received") return;
      if (!options_.json) tell(*ack);
      if (too_late(*ack) || unknown(*ack)) return;
      // `ended` says nothing of what was, or was not, given; a trace is there only then.
      const bool final = ack->phase == "refused" || (ack->phase == "ended") == (options_.trace > 0);
      if (final) answers_[ack->rank] = std::move(*ack);
    } else if (const auto event = ingest::decode_event(record)) {
      const auto* job = std::get_if<core::JobEvent>(&event->event);
      if (job == nullptr || job->run.uid != run_.run.uid) return;
      over_ = over_ || job->phase == core::JobPhase::ended || job->run.attempt > run_.run.attempt;
    }
  }

  void tell(const core::Ack& ack) const {
    std::cout << "rank " << ack.rank << ": " << core::visible(ack.phase)
              << (ack.effective_step ? " from step " + std::to_string(*ack.effective_step) : "");
    std::istringstream lines(ack.reason);
    std::size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
      std::cout << (number++ == 0 ? ": " : "\n  ") << core::visible(line);
    }
    std::cout << std::endl;
  }

  // kOk: all have answered, or nobody is waited for any more.
  int hear_answers() {
    const core::Duration until = clock_.monotonic() + options_.wait;
    while (goes_on() && !over_ && answers_.size() < ranks() && clock_.monotonic() < until) {
      const auto read =
          source_->poll(200ms, 256, [this](const core::RecordView& record) { hear(record); });
      const bool passes =
          read || read.error().retryable() || read.error().code == core::Code::data_loss;
      if (!passes) return refuse(read.error());
      if (again_ && known_again()) {
        again_ = false;
        ++tries_;
        ahead_ *= 3;
        answers_.clear();
        if (const int failed = write(); failed != kOk) return failed;
      }
    }
    return kOk;
  }

  int follow() {
    follow_until_signalled();
    if (const int failed = hear_answers(); failed != kOk) return failed;
    // Answered by all, or too late: a launch to come is not asked.
    if (order_.profiles() && options_.wait > core::Duration::zero()) {
      if (auto gone = publish(ingest::withdraw_command(run_.run.uid, command_.action)); !gone) {
        return refuse(gone.error());
      }
    }
    const auto given = static_cast<std::size_t>(
        std::count_if(answers_.begin(), answers_.end(),
                      [](const auto& one) { return one.second.phase != "refused"; }));
    const std::string share = std::to_string(given) + " of " + std::to_string(ranks()) + " ranks ";
    const std::string done = options_.pause      ? "have paused"
                             : order_.profiles() ? "have sent it"
                                                 : "capture it";
    if (given < answers_.size()) return report("refused", share + done, kFailed);
    if (given >= ranks() && given > 1 && options_.trace > 0 && !options_.json) tell_together();
    if (given >= ranks()) return report("applied", share + done, kOk);
    if (over_) return report("ended", share + done + "; the run has ended", kFailed);
    if (options_.wait <= core::Duration::zero()) return report("asked", "", kOk);
    return report(
        "open",
        share + done +
            (order_.profiles() ? " so far" : " so far; the other ranks reply at their next step"),
        kTemporary);
  }

  // One command for the traces of all ranks; each answer says "… at step 131 of worker_0, …".
  void tell_together() const {
    std::string places;
    for (const auto& [rank, ack] : answers_) {
      const std::size_t step = ack.reason.find(" at step ");
      const std::size_t of = ack.reason.find(" of ", step);
      const std::size_t end = ack.reason.find(',', of);
      if (end == std::string::npos) return;
      places += " " + ack.reason.substr(of + 4, end - of - 4) + "@" +
                ack.reason.substr(step + 9, of - step - 9);
    }
    std::cout << "together: python3 -m tocsin.trace " << core::to_text(run_.run.uid)
              << core::visible(places) << "\n";
  }

  int report(const char* state, const std::string& sentence, int code) {
    if (!options_.json) {
      (code == kFailed ? std::cerr << "tocsin: " : std::cout) << sentence << "\n";
      return code;
    }
    core::ValueList acks;
    for (const auto& [rank, ack] : answers_) {
      acks.push_back(
          core::ValueMap{{"rank", std::int64_t{rank}},
                         {"phase", ack.phase},
                         {"reason", ack.reason},
                         {"effective_step",
                          ack.effective_step ? core::Value(*ack.effective_step) : core::Value()}});
    }
    std::cout << core::to_json(core::ValueMap{{"run", core::to_text(run_.run.uid)},
                                              {"job", run_.run.job},
                                              {"attempt", std::int64_t{run_.run.attempt}},
                                              {"state", state},
                                              {"detail", sentence},
                                              {"command_id", command_.command_id},
                                              {"until_step", until_},
                                              {"acks", std::move(acks)}})
              << "\n";
    return code;
  }

  const CaptureRunOptions& options_;
  std::string person_;
  CaptureOrder order_;
  core::SystemClock clock_;
  Looking looking_;
  std::unique_ptr<core::RecordSource> source_;
  TopicView view_;
  core::JobEvent run_;
  core::Command command_;
  double ahead_ = kAhead;
  int tries_ = 1;
  bool again_ = false;
  bool newcomer_ = false;         // of `again_`: as soon as the run has told of it
  core::Duration told_until_{0};  // that is waited for until then, at most
  std::int64_t until_ = 0;
  std::map<std::uint32_t, core::Ack> answers_;  // by rank
  bool over_ = false;
};

}  // namespace

int capture_run(const CaptureRunOptions& options) { return CaptureRun(options).run(); }

}  // namespace tocsin::app
