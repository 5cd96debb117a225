#include "app/cli/replay_command.h"

#include <iostream>
#include <set>
#include <utility>

#include "app/config/transport_settings.h"
#include "app/process/exit_code.h"
#include "app/recordings/recording.h"
#include "app/replay/compare.h"
#include "app/replay/judge.h"
#include "app/replay/judgement_text.h"
#include "app/replay/sweep.h"
#include "core/system_clock.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

int say_why(int code, const std::string& message) {
  std::cerr << "tocsin: " << message << "\n";
  return code;
}

/// Why the command ends here.
struct Stop {
  int code = kOk;
  std::string message;
};

class Replay {
 public:
  explicit Replay(const ReplayOptions& options) : options_(options) {}
  int run();

 private:
  std::optional<Stop> prepare();
  std::optional<Stop> read_span();
  std::optional<Stop> open();
  std::optional<Stop> judge();
  std::optional<Stop> read_live();
  int show();
  [[nodiscard]] std::string where() const;

  const ReplayOptions& options_;
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  embedded::ChosenRules rules_;
  Span span_;                                // what is shown
  std::optional<core::WallTime> read_from_;  // what is read: the warm-up too
  std::optional<Sweep> sweep_;
  std::unique_ptr<ingest::Transport> transport_;
  std::unique_ptr<Judge> judge_;
  std::unique_ptr<LiveIssues> live_;
  std::uint64_t gaps_ = 0;
};

std::optional<Stop> Replay::read_span() {
  const core::WallTime now = core::SystemClock().now();
  const auto from = parse_bound(options_.since_word, options_.since, now);
  if (!from) return Stop{kUsage, from.error().message};
  const auto to = parse_bound(options_.until_word, options_.until, now);
  if (!to) return Stop{kUsage, to.error().message};
  span_ = {*from, *to, options_.partition};
  read_from_ = span_.from.time;
  if (options_.warm_up.empty()) return std::nullopt;
  const auto before = core::parse_duration(options_.warm_up);
  if (!before || *before <= core::Duration{}) {
    return Stop{kUsage, "--warm-up " + options_.warm_up + ": expected a duration such as 2h"};
  }
  if (!span_.from.time) {
    return Stop{kUsage, "--warm-up needs a time in " + options_.since_word};
  }
  read_from_ = *span_.from.time - *before;
  return std::nullopt;
}

std::optional<Stop> Replay::open() {
  const auto settings = transport_settings(options_.rules.config_file, options_.out);
  if (!settings) return Stop{exit_code(settings.error()), settings.error().message};
  const bool kafka = !settings->transport.kafka.is_null();
  rules_.topic_prefix = settings->topics.prefix;
  rules_.plugins.out = out_of(settings->transport);
  rules_.plugins.config = options_.rules.config_file;
  auto opened =
      kafka ? ingest::Transport::open(settings->transport, settings->topics, log_, telemetry_)
            : ingest::Transport::open_recording(settings->transport.journal, settings->topics, log_,
                                                telemetry_);
  if (!opened) return Stop{exit_code(opened.error()), opened.error().message};
  transport_ = std::move(*opened);
  const auto fits = check_span(span_, kafka, options_.since_word, options_.until_word);
  if (!fits) return Stop{kUsage, fits.error().message};
  if (const auto reached = transport_->ping(5s); !reached) {
    return Stop{kUnreachable, reached.error().message};
  }
  return std::nullopt;
}

std::optional<Stop> Replay::prepare() {
  if (auto stop = read_span()) return stop;
  if (const int code = choose_rules(options_.rules, rules_); code != kOk) return Stop{code, ""};
  if (!options_.sweep.empty()) {
    auto made = make_sweep(options_.sweep, rules_.rules);
    if (!made) return Stop{kUsage, made.error().message};
    sweep_ = std::move(*made);
  }
  if (auto stop = open()) return stop;
  auto judge = Judge::create(rules_, runs_named(options_.run, options_.job));
  if (!judge) return Stop{kConfiguration, judge.error().message};
  judge_ = std::move(*judge);
  return std::nullopt;
}

std::optional<Stop> Replay::judge() {
  Span read = span_;
  read.from.time = read_from_;
  const auto end = read_recording(
      *transport_, core::topic::kTelemetry, read,
      [&](const core::RecordView& record) { judge_->handle(record); }, [&] { judge_->collect(); });
  if (!end) {
    const bool usage = end.error().code == core::Code::invalid_argument;
    return Stop{usage ? kUsage : kUnreachable, end.error().message};
  }
  gaps_ = end->gaps;
  judge_->finish();
  if (!judge_->judgement().rows.empty()) return std::nullopt;
  const bool other_runs = judge_->judgement().records > 0 && !options_.run.empty();
  return Stop{other_runs ? kUsage : kUnreachable,
              other_runs ? "there is no run " + options_.run + " in " + where()
                         : "there is no telemetry of a run in " + where()};
}

// All that was told since the beginning of the span: who judged may have been late.
std::optional<Stop> Replay::read_live() {
  std::set<std::string> names;
  for (const auto& rule : rules_.rules.rules) names.insert(rule.name);
  live_ = std::make_unique<LiveIssues>(std::move(names));
  Span since;
  since.from.time = span_.from.time;
  const auto read = read_recording(
      *transport_, core::topic::kIssues, since,
      [&](const core::RecordView& record) { live_->handle(record); }, [] {});
  // A directory that only hooks have written has no such topic: nothing was told.
  const bool none =
      !transport_->is_kafka() && !read && read.error().code == core::Code::unavailable;
  if (!read && !none) return Stop{kUnreachable, read.error().message};
  return std::nullopt;
}

std::string Replay::where() const {
  const auto end = [](const Bound& bound, const char* open) -> std::string {
    if (bound.time) return core::to_rfc3339(*bound.time);
    return bound.offset ? "@" + std::to_string(*bound.offset) : open;
  };
  return transport_->describe() + ", " + end(span_.from, "the beginning") + " to " +
         end(span_.to, "the end");
}

int Replay::show() {
  const Judgement& judgement = judge_->judgement();
  const JudgementHead head{where(), rules_, gaps_};
  if (sweep_) {
    std::cout << (options_.json ? core::to_json(sweep_value(*sweep_, judgement)) + "\n"
                                : head.source + "\n" + sweep_text(*sweep_, judgement));
    return kOk;
  }
  // Runs of which the span has nothing (another partition, retention) cannot fire again in it.
  const auto judged = [&](const core::RunUid& run) { return judgement.rows.contains(run); };
  const auto differences = compare(issue_stories(judgement), issue_stories(live_->told()),
                                   span_.from.time, span_.to.time, judged);
  if (options_.json) {
    std::cout << core::to_json(core::ValueMap{{"source", head.source},
                                              {"rules", rules_.from},
                                              {"records", judgement.records},
                                              {"gaps", gaps_},
                                              {"refused", judgement.refused},
                                              {"failed", failure_value(judgement)},
                                              {"compared", difference_value(differences)}})
              << "\n";
  } else {
    std::cout << judgement_heading(head, judgement) << difference_text(differences, live_->others())
              << failure_text(judgement);
  }
  if (!failures_of(judgement).empty()) return kFailed;
  for (const Difference& one : differences) {
    if (one.change != Change::same) return kFailed;
  }
  return kOk;
}

int Replay::run() {
  auto stop = prepare();
  if (!stop) stop = judge();
  if (!stop && !sweep_) stop = read_live();
  if (!stop) return show();
  return stop->message.empty() ? stop->code : say_why(stop->code, stop->message);
}

}  // namespace

int replay_command(const ReplayOptions& options) { return Replay(options).run(); }

}  // namespace tocsin::app
