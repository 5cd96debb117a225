#include "rules/hosted/hosted_rule.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/statistics.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"
#include "rules/hosted/step_text.h"

namespace tocsin::rules::hosted {
namespace {

constexpr std::size_t kMostKept = 1U << 18;  // rows behind the newest step, of one rule and run
constexpr std::uint32_t kMostFailures = 5;   // of its process in a row; then it is given up
constexpr std::uint32_t kGoodAgain = 3;      // steps without an error, after one

/// What a process that was ended has to be given again, so that it goes on as if it never had been:
/// the steps that the rule may look back at, and what it remembers.
struct HostedState {
  StepSets sets;
  std::map<std::uint8_t, std::int64_t> judged;  // newest step per mode
  std::vector<KeptStep> kept;                   // judged ones, oldest first
  std::uint64_t kept_rows = 0;
  std::string saved;                           // of the rule, opaque
  std::map<std::string, std::uint32_t> known;  // keys that were told: steps without since
  std::map<std::string, std::string> labels;   // what a known key is
  std::uint32_t failures = 0;
  std::uint32_t good = 0;
  std::uint8_t failing = 0;

  template <typename A>
  friend void io(A& a, HostedState& s) {
    io_all(a, s.sets, s.judged, s.kept, s.kept_rows, s.saved, s.known, s.labels, s.failures, s.good,
           s.failing);
  }
};

core::Error precondition(std::string message) {
  return {core::Code::failed_precondition, std::move(message)};
}

// Every statistic beside the columns: which of them a rule asks for is known to it alone.
const std::vector<Sent>& all_sent() {
  static const std::vector<Sent> kAll = [] {
    std::vector<Sent> out;
    for (const core::Statistic& one : core::builtin_statistics()) {
      if (one.form == core::StatisticForm::sparse) {
        out.emplace_back(static_cast<core::SparseStat>(one.id));
      }
    }
    return out;
  }();
  return kAll;
}

class HostedEvaluator final : public EvaluatorOf<HostedState> {
 public:
  HostedEvaluator(const HostedConfig& config, const Common& common)
      : config_(config), common_(common) {}
  ~HostedEvaluator() override {
    // Whoever asked it is still there: an engine lives within its host.
    if (host_ != nullptr && session_ != 0) host_->forget(*config_.rule, session_);
  }

  void on_rows(const WorkerRows& rows, Scope& scope) override {
    if (!common_.wants_mode(rows.mode) || !common_.wants_step(rows.step)) return;
    const auto done = state.judged.find(static_cast<std::uint8_t>(rows.mode));
    if (done != state.judged.end() && rows.step <= done->second) {
      scope.late(rows.scalar != nullptr ? 1 : rows.rows.size());
      return;
    }
    if (state.sets.add(rows, false, all_sent(), scope)) return;
    scope.closed_early();
    if (auto oldest = state.sets.take_any()) judge(std::move(*oldest), scope);
  }
  void on_step_end(const WorkerStep& step, Scope& scope) override {
    state.sets.ended(step, false, scope);
  }
  void on_closed(core::Mode mode, std::int64_t step, Scope& scope) override {
    std::vector<StepSets::One> due;
    while (auto next = state.sets.take(Scope::kNoWorker, mode, step)) due.push_back(*next);
    if (mode == core::Mode::train) {
      for (const core::Mode other : {core::Mode::eval, core::Mode::predict}) {
        while (auto next = state.sets.take_before(other, step)) due.push_back(*next);
      }
    }
    judge_all(std::move(due), scope);
  }
  void on_end(Scope& scope) override {
    std::vector<StepSets::One> due;
    while (auto next = state.sets.take_any()) due.push_back(*next);
    judge_all(std::move(due), scope);
  }
  void on_restart(std::uint32_t worker) override { state.sets.forget(worker); }
  void load(Loader& in) override {
    EvaluatorOf::load(in);
    state.failures = 0;  // whoever starts again may have mended it
    opened_in_ = 0;
  }

 private:
  // In the order of training, whatever the modes: the rule counts steps over all of them.
  void judge_all(std::vector<StepSets::One> due, Scope& scope) {
    std::stable_sort(due.begin(), due.end(), [](const auto& a, const auto& b) {
      return a.second.global_step < b.second.global_step;
    });
    for (StepSets::One& one : due) judge(std::move(one), scope);
  }

  void judge(StepSets::One one, Scope& scope) {
    auto& [key, waiting] = one;
    Place place =
        at_step(static_cast<core::Mode>(key.mode), key.step, waiting.global_step, waiting.time);
    place.first_offset = waiting.first_offset;
    place.last_offset = waiting.last_offset;
    place.partial = !waiting.missing.empty();
    place.missing_ranks = waiting.missing;
    KeptStep step{key.mode, key.step, waiting.global_step, waiting.time, std::move(waiting.rows)};
    std::int64_t& newest = state.judged.try_emplace(key.mode, key.step).first->second;
    newest = std::max(newest, key.step);
    const core::Result<Answer> answer = ask(step, scope);
    keep(std::move(step));
    if (!answer) {
      ++state.failures;
      std::string why = answer.error().message;
      if (state.failures >= kMostFailures) {
        why += "; after " + std::to_string(state.failures) +
               " failures in a row it is asked no more in this run";
      }
      return went_wrong(std::move(why), scope);
    }
    if (answer->outcome == EvaluationOutcome::error) return went_wrong(answer->error, scope);
    state.failures = 0;
    if (answer->saved) state.saved = *answer->saved;
    if (state.failing != 0 && ++state.good >= kGoodAgain) {
      state.failing = 0;
      scope.recovered();
    }
    if (answer->outcome == EvaluationOutcome::ok || answer->outcome == EvaluationOutcome::hit) {
      tell(answer->issues, place, scope);
    } else {
      scope.counted(answer->outcome);
    }
  }

  void went_wrong(std::string why, Scope& scope) {
    state.failing = 1;
    state.good = 0;
    scope.failed(std::move(why));
  }

  void keep(KeptStep step) {
    state.kept_rows += step.rows.size();
    state.kept.push_back(std::move(step));
    std::size_t gone = 0;
    while (state.kept.size() - gone > 1 &&
           (state.kept.size() - gone > config_.history || state.kept_rows > kMostKept)) {
      state.kept_rows -= state.kept[gone++].rows.size();
    }
    state.kept.erase(state.kept.begin(), state.kept.begin() + static_cast<std::ptrdiff_t>(gone));
  }

  // A process that ended by itself is asked once more, in a new one: it may have been killed. One
  // that gave no answer is not: it would hang again.
  core::Result<Answer> ask(const KeptStep& step, Scope& scope) {
    if (state.failures >= kMostFailures) return precondition("it was given up");
    host_ = scope.host();
    if (host_ == nullptr) {
      return precondition("no processes of rules are run here: see tocsin rule-worker");
    }
    core::Result<Answer> answer = ask_once(step, scope);
    if (!answer && answer.error().code == core::Code::unavailable) answer = ask_once(step, scope);
    return answer;
  }

  core::Result<Answer> ask_once(const KeptStep& step, Scope& scope) {
    const HostedRule& rule = *config_.rule;
    const auto process = host_->ready(rule);
    if (!process) return process.error();
    if (*process != opened_in_) {
      if (auto opened = open(scope); !opened) return opened.error();
      opened_in_ = *process;
    }
    auto reply =
        host_->ask(rule, step_request(session_, step, state.kept.size(), scope, told_, true));
    if (!reply) {
      opened_in_ = 0;
      return reply.error();
    }
    return read_answer(*reply);
  }

  core::Status open(Scope& scope) {
    session_ = host_->session();
    told_.clear();
    const auto said = [&](const std::string& request) -> core::Status {
      const auto reply = host_->ask(*config_.rule, request);
      if (!reply) return reply.error();
      const auto answer = read_answer(*reply);
      if (!answer) return answer.error();
      if (answer->outcome == EvaluationOutcome::error) return precondition(answer->error);
      return core::ok();
    };
    if (auto status = said(open_request(session_, *config_.rule, scope, state.saved)); !status) {
      return status;
    }
    for (std::size_t i = 0; i < state.kept.size(); ++i) {
      auto status = said(step_request(session_, state.kept[i], i, scope, told_, false));
      if (!status) return status;
    }
    return core::ok();
  }

  void tell(const std::vector<Told>& issues, const Place& place, Scope& scope) {
    for (const Told& one : issues) {
      state.known[one.key] = 0;
      state.labels[one.key] = one.label;
      judged(one.key, hit(), &one, place, scope);
    }
    if (issues.empty() && !state.known.contains("")) judged("", kOk, nullptr, place, scope);
    for (auto at = state.known.begin(); at != state.known.end();) {
      const bool told = std::any_of(issues.begin(), issues.end(),
                                    [&](const Told& one) { return one.key == at->first; });
      if (!told) judged(at->first, kOk, nullptr, place, scope);
      if (!told && ++at->second >= common_.clear_after) {
        state.labels.erase(at->first);
        at = state.known.erase(at);
      } else {
        ++at;
      }
    }
  }

  void judged(const std::string& key, Verdict verdict, const Told* told, const Place& place,
              Scope& scope) {
    Subject subject;
    subject.name = key.empty() ? config_.rule->name : key;
    subject.mode = place.mode.value_or(core::Mode::global);
    subject.step = place.step;
    const auto labels = [&]() -> Labels {
      if (key.empty()) return {};
      return {{state.labels[key], key}};
    };
    const auto explain = [&](const Subject& at, unsigned) {
      Finding out;
      if (told == nullptr) return out;
      out = Finding::that(told->observed.name, told->observed.value);
      if (told->threshold) out.is(told->op, told->threshold->name, told->threshold->value);
      out.says(told->summary.empty()
                   ? "The condition of " + config_.rule->name + " holds at " + at.place() + "."
                   : told->summary);
      out.recommendation = told->recommendation;
      out.values = told->values;
      out.severity = told->severity;
      return out;
    };
    scope.judged(unit_number({key}), Scope::kNoWorker, verdict, place, subject, labels, explain);
  }

  const HostedConfig& config_;  // of the program, which outlives its evaluators
  const Common& common_;
  StepHost* host_ = nullptr;
  std::uint64_t session_ = 0;
  std::uint64_t opened_in_ = 0;  // process that knows the session; 0 none
  ToldNames told_;
};

}  // namespace

std::uint32_t HostedProgram::inputs() const noexcept {
  return input::kRows | input::kStepEnds | input::kClosedSteps;
}

std::unique_ptr<Evaluator> HostedProgram::evaluator() const {
  return std::make_unique<HostedEvaluator>(config, common);
}

}  // namespace tocsin::rules::hosted
