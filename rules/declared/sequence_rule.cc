#include "rules/declared/sequence_rule.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "rules/contract/sentence.h"
#include "rules/declared/step_axis.h"
#include "rules/evaluate/evaluator.h"
#include "rules/evaluate/spare_nodes.h"

namespace tocsin::rules::declared {
namespace {

struct SequenceConfig {
  SequenceTexts texts;
  Links links;
};

using ModeStep = std::pair<std::uint8_t, std::int64_t>;  // mode, its step

/// Hits of one unit. Workers come in any order: what is kept does not depend on it.
struct Hits {
  std::uint64_t which = 0;
  Moment at;

  void add(std::uint64_t bits, const Moment& moment) {
    which |= bits;
    const std::int64_t time = at.known() ? std::max(at.time, moment.time) : moment.time;
    const std::int64_t global = std::max(at.global_step, moment.global_step);
    const bool first =
        !at.known() || std::make_pair(moment.mode, moment.step) < std::make_pair(at.mode, at.step);
    if (first) at = moment;
    at.time = time;
    at.global_step = global;
  }

  template <typename A>
  friend void io(A& a, Hits& h) {
    io_all(a, h.which, h.at);
  }
};

/// Values of `by`, in its order.
using UnitLabels = std::vector<std::string>;

struct SequenceMemory {
  StepAxis axis;
  std::map<ModeStep, Moment> ends;                         // steps that are not settled
  std::map<ModeStep, std::map<UnitLabels, Hits>> waiting;  // for their step to be settled
  std::map<UnitLabels, Chain> chains;
  Moment newest;  // settled

  template <typename A>
  friend void io(A& a, SequenceMemory& m) {
    io_all(a, m.axis, m.ends, m.waiting, m.chains, m.newest);
  }
};

class SequenceEvaluator final : public EvaluatorOf<SequenceMemory> {
 public:
  explicit SequenceEvaluator(const SequenceConfig& config) : config_(config) {}

  void on_step_end(const WorkerStep& step, Scope&) override {
    state.axis.ended(step);
    const auto mode = static_cast<std::uint8_t>(step.mode);
    Moment& end = nodes_.at(state.ends, {mode, step.step});
    const std::int64_t time = end.known() ? std::max(end.time, step.end) : step.end;
    end = {0, time, mode, step.step, std::max(end.global_step, step.global_step)};
  }
  void on_restart(std::uint32_t worker) override { state.axis.restarted(worker); }

  void on_fired(std::size_t which, const Place& place, const Labels& unit) override {
    UnitLabels values;
    for (const std::string& label : config_.texts.by) {
      const auto found = std::find_if(unit.begin(), unit.end(),
                                      [&](const auto& one) { return one.first == label; });
      if (label == "mode" && found == unit.end() && place.mode) {
        values.emplace_back(core::to_string(*place.mode));
        continue;
      }
      if (found == unit.end()) return;  // speaks of more than such a unit
      values.push_back(found->second);
    }
    const core::Mode mode = place.mode.value_or(core::Mode::global);
    const auto number = static_cast<std::uint8_t>(mode);
    const Moment at{0, place.time, number, place.step, place.global_step};
    state.waiting[{number, place.step}][values].add(std::uint64_t{1} << which, at);
  }

  void on_settled(core::Mode mode, std::int64_t step, Scope& scope) override {
    const auto number = static_cast<std::uint8_t>(mode);
    for (auto at = state.ends.lower_bound({number, INT64_MIN});
         at != state.ends.end() && at->first.first == number && at->first.second <= step;) {
      Moment moment = at->second;
      at = nodes_.erase(state.ends, at);
      moment.place = state.axis.place(mode, moment.step).value_or(state.newest.place);
      settle(moment, scope);
    }
    // Evaluations are over with the training step behind them.
    if (mode != core::Mode::train && mode != core::Mode::global) return;
    for (auto end = state.ends.begin(); end != state.ends.end();) {
      const auto where =
          state.axis.place(static_cast<core::Mode>(end->first.first), end->first.second);
      const bool over = where && *where <= state.newest.place;
      end = over ? nodes_.erase(state.ends, end) : std::next(end);
    }
    state.axis.settled(state.newest.place);
  }

  void on_end(Scope& scope) override {
    if (state.waiting.empty()) return;
    Moment last = state.newest;
    for (const auto& [step, units] : state.waiting) {
      const auto place = state.axis.place(static_cast<core::Mode>(step.first), step.second);
      for (const auto& [unit, hits] : units) {
        if (place.value_or(last.place) < last.place) continue;
        last = hits.at;
        last.place = std::max(place.value_or(state.newest.place), state.newest.place);
      }
    }
    settle(last, scope);
  }

 private:
  void settle(const Moment& at, Scope& scope) {
    const std::int64_t before = state.newest.place;
    if (at.place >= before) state.newest = at;
    std::map<std::int64_t, std::map<UnitLabels, Hits>> due;  // by place
    for (auto next = state.waiting.begin(); next != state.waiting.end();) {
      const auto place =
          state.axis.place(static_cast<core::Mode>(next->first.first), next->first.second);
      if (!place || *place > state.newest.place) {
        ++next;
        continue;
      }
      // Of a step that was settled before: a verdict about the past, which is heard now.
      const std::int64_t heard = std::max(*place, before);
      for (const auto& [unit, hits] : next->second) {
        Moment moment = hits.at;
        moment.place = heard;
        due[heard][unit].add(hits.which, moment);
      }
      next = state.waiting.erase(next);
    }
    for (const auto& [place, units] : due) {
      for (const auto& [unit, hits] : units) {
        state.chains[unit].take(config_.links, hits.which, hits.at);
      }
    }
    if (state.chains.empty()) scope.counted(EvaluationOutcome::ok);
    for (auto one = state.chains.begin(); one != state.chains.end();) {
      judge(one->first, one->second, one->second.settle(config_.links, state.newest), scope);
      one =
          one->second.idle(config_.links, state.newest) ? state.chains.erase(one) : std::next(one);
    }
  }

  void judge(const UnitLabels& unit, const Chain& chain, bool holds, Scope& scope) const {
    UnitText text;
    for (std::size_t i = 0; i < unit.size(); ++i) {
      text.add(config_.texts.by[i]).add("=").add(unit[i]).add("\x1e");
    }
    const std::uint64_t number = text.add("\x1e").number();
    if (scope.quiet(number, holds ? hit() : kOk)) return;
    const Moment& at = holds ? chain.held() : state.newest;
    Place place = at_step(static_cast<core::Mode>(at.mode), at.step, at.global_step, at.time);
    Subject subject;
    subject.mode = *place.mode;
    subject.step = at.step;
    for (std::size_t i = 0; i < unit.size(); ++i) subject.name += (i == 0 ? "" : ", ") + unit[i];
    const auto labels = [&]() -> Labels {
      Labels out;
      for (std::size_t i = 0; i < unit.size(); ++i) out.emplace_back(config_.texts.by[i], unit[i]);
      return out;
    };
    scope.judged(number, Scope::kNoWorker, holds ? hit() : kOk, place, subject, labels,
                 [&](const Subject& about, unsigned) { return explain(unit, chain, about); });
  }

  [[nodiscard]] Finding explain(const UnitLabels& unit, const Chain& chain,
                                const Subject& subject) const {
    const SequenceTexts& texts = config_.texts;
    const bool by_steps = texts.within.steps;
    const Moment& first = chain.first();
    const Moment& last = chain.last();
    const double took = by_steps ? static_cast<double>(StepAxis::steps(first.place, last.place))
                                 : static_cast<double>(distance(last.time, first.time)) / 1e9;
    const std::string unit_of = !by_steps ? " s" : took == 1 ? " step" : " steps";
    const std::string from = where(first);
    const std::string who = subject.name.empty() ? std::string() : subject.name + ": ";
    std::string story;
    if (config_.links.awaits()) {
      story = sentence("{}{} hit at {}, and {} did not within {}.", who, texts.rules.front(), from,
                       joined(texts.without, " or "), texts.within_text);
    } else {
      story = sentence("{}{} hit at {} and {} at {}, {}{} later.", who, texts.rules.front(), from,
                       joined({texts.rules.begin() + 1, texts.rules.end()}, ", then "), where(last),
                       took, unit_of);
    }
    Finding out = Finding::that(by_steps ? "steps" : "seconds", took);
    const double limit = by_steps ? static_cast<double>(texts.within.amount)
                                  : static_cast<double>(texts.within.amount) / 1e9;
    out.is(config_.links.awaits() ? ">=" : "<=", "within", limit);
    if (texts.evidence) {
      out.says(who + filled(*texts.evidence, unit, chain, took) + ".").adds(story);
    } else {
      out.says(story);
    }
    out.with("first", texts.rules.front()).with("first_step", first.step);
    out.with("first_mode", std::string(core::to_string(static_cast<core::Mode>(first.mode))));
    return out.since(first.mode == last.mode ? first.step : last.step,
                     config_.links.awaits() ? 1 : texts.rules.size());
  }

  [[nodiscard]] std::string filled(const Template& text, const UnitLabels& unit, const Chain& chain,
                                   double took) const {
    std::string out = text.texts.front();
    for (std::size_t i = 0; i < text.expressions.size(); ++i) {
      const std::string& name = text.expressions[i].text;
      const auto label = std::find(config_.texts.by.begin(), config_.texts.by.end(), name);
      if (label != config_.texts.by.end()) {
        out += unit[static_cast<std::size_t>(label - config_.texts.by.begin())];
      } else if (name == "first") {
        out += where(chain.first());
      } else if (name == "last") {
        out += where(chain.last());
      } else {
        out += figure(took);
      }
      out += text.texts[i + 1];
    }
    return out;
  }

  static std::string where(const Moment& at) {
    return std::string(core::to_string(static_cast<core::Mode>(at.mode))) + " step " +
           std::to_string(at.step);
  }
  static std::string joined(const std::vector<std::string>& names, const char* by) {
    std::string out;
    for (const std::string& name : names) out += (out.empty() ? "" : by) + name;
    return out;
  }

  const SequenceConfig& config_;  // of the program, which outlives it
  SpareNodes<std::map<ModeStep, Moment>, 64> nodes_;
};

class SequenceProgram final : public Program {
 public:
  explicit SequenceProgram(SequenceTexts texts) {
    config_.links = {texts.rules.size(), texts.without.size(), texts.within};
    for (std::size_t i = 0; i < texts.rules.size(); ++i) {
      follows.push_back({texts.rules[i], "sequence[" + std::to_string(i) + "]", 0});
    }
    for (const std::string& rule : texts.without) follows.push_back({rule, "without", 0});
    config_.texts = std::move(texts);
  }
  [[nodiscard]] std::uint32_t inputs() const noexcept override {
    return input::kStepEnds | input::kClosedSteps;
  }
  // What is found in one shard is not known in another: B would seem absent.
  [[nodiscard]] TensorUse tensor_use() const noexcept override { return TensorUse::several; }
  [[nodiscard]] std::unique_ptr<Evaluator> evaluator() const override {
    return std::make_unique<SequenceEvaluator>(config_);
  }

 private:
  SequenceConfig config_;
};

}  // namespace

const std::vector<std::string>& sequence_names() {
  static const std::vector<std::string> kNames{"first", "last", "took"};
  return kNames;
}

std::shared_ptr<Program> sequence_program(SequenceTexts texts) {
  return std::make_shared<SequenceProgram>(std::move(texts));
}

}  // namespace tocsin::rules::declared
