// What a job says of its task beside its losses: the rate, the plan, the loss calls of the ledger. course asks it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "rules/builtin/shared/pairing_course.h"
#include "rules/builtin/shared/reward_names.h"
#include "rules/contract/rule.h"

namespace tocsin::rules {

/// Trivially copyable, without padding.
struct CourseTask {
  static constexpr std::uint8_t kCall = 0xFC;  // key of a loss call in the place of a mode
  static constexpr double kMostCalls = 8;
  static constexpr double kSmooth = 64;  // steps over which the trivial loss is averaged
  static constexpr double kSame = 0.1;   // of a loss: the logged one is that of the loss call
  static constexpr std::string_view kSelected =
      "^ledger/([^/]+/(samples|loss|trivial|pairs|wins|straight|crossed|one_target|calls)|plan/"
      "updates)$";

  PairingRun run;
  double rate = 0;
  double rises = 0;  // how often the rate rose
  double calls = 0;  // different loss calls so far
  double known = 0;  // per sample: the loss of the best constant
  double said = 0;   // what the ledger and the log say of the loss of the same steps
  double logged = 0;
  double averaged = 0;  // steps behind these

  /// What the loss calls come to, taken together.
  struct Standing {
    bool compared = false;  // one has a constant beside it
    bool knows = false;     // one is better, or its outputs know their targets
    bool nothing = false;   // none is, and one will not get there
    double skill = 0;       // the largest
  };

  /// Values that are no rows of the ledger go to `rest`.
  void hear(SeriesMemory& memory, const StepPoint& point, std::vector<SeriesValue>& rest) {
    std::vector<LedgerCall> heard;
    const bool trains = point.mode != core::Mode::eval;
    if (trains) run.updates = static_cast<double>(point.step) + 1;
    for (const SeriesValue& one : point.values) {
      const auto name = LedgerName::read(one.text);
      if (!name) {
        rest.push_back(one);
        if (std::isfinite(one.value)) note(one);
      } else if (trains && std::isfinite(one.value)) {
        if (name->call == "plan") {
          run.planned = one.value;
        } else {
          add(heard, *name, one);
        }
      }
    }
    for (const LedgerCall& call : heard) follow(memory, call);
    if (heard.size() == 1 && heard.front().comparable()) average(heard.front(), rest);
  }

  /// Loss of the best constant in the unit of the logged loss, which must be that of the only loss call; NaN: not known.
  [[nodiscard]] double trivial() const {
    const double far = std::fabs(said - logged);
    const bool same = far <= kSame * std::max(std::fabs(said), std::fabs(logged));
    const bool there = averaged > 0 && calls == 1 && known > 0;
    return there && same ? known : std::numeric_limits<double>::quiet_NaN();
  }

  static Standing standing(SeriesMemory& memory) {
    Standing out;
    memory.each<PairingCourse>([&](const SeriesKey&, const PairingCourse& course) {
      if (course.skill.used == 0) return;
      const double skill = PairingCourse::skill_of(course.skill.window());
      out.skill = out.compared ? std::max(out.skill, skill) : skill;
      out.compared = true;
      out.knows = out.knows || course.knows != 0;
      out.nothing = out.nothing || course.short_of != 0;
    });
    out.nothing = out.nothing && !out.knows;
    return out;
  }

 private:
  void note(const SeriesValue& one) {
    if (learns_by_reward(one.text)) run.rewarded = 1;
    if (one.text != "learning_rate") return;
    if (one.value > rate) ++rises;
    rate = one.value;
    if (rate > run.rate) {
      run.rate = rate;
      run.rate_at = run.updates;
    }
  }
  static void add(std::vector<LedgerCall>& heard, const LedgerName& name,
                  const SeriesValue& value) {
    const auto* const field =
        std::find(LedgerCall::kNames.begin(), LedgerCall::kNames.end(), name.field);
    if (field == LedgerCall::kNames.end()) return;
    auto at = std::find_if(heard.begin(), heard.end(),
                           [&](const LedgerCall& one) { return one.name == name.call; });
    if (at == heard.end()) {
      at = heard.insert(heard.end(), LedgerCall{});
      at->name = name.call;
    }
    const auto place = static_cast<std::size_t>(field - LedgerCall::kNames.begin());
    at->sums[place] = value.value * value.workers;  // values are means over the workers
    at->rows[place] = value.workers;
  }
  void follow(SeriesMemory& memory, const LedgerCall& call) {
    // Real and made samples.
    if (call[LedgerCall::one_target] > 0 && call[LedgerCall::calls] > 1) return;
    const std::uint64_t name = core::name_hash(call.name);
    bool there = false;
    memory.each<PairingCourse>(
        [&](const SeriesKey& key, const PairingCourse&) { there = there || key.name == name; });
    if (!there && calls == kMostCalls) return;
    if (!there) ++calls;
    auto* course = memory.of<PairingCourse>({name, kCall});
    if (course != nullptr) course->train(call, run, PairingBounds{});
  }
  void average(const LedgerCall& call, const std::vector<SeriesValue>& rest) {
    const SeriesValue* loss = nullptr;
    for (const SeriesValue& one : rest) {
      if (one.role != core::Role::loss || !std::isfinite(one.value)) continue;
      if (loss != nullptr) return;  // which of them is it?
      loss = &one;
    }
    if (loss == nullptr) return;
    averaged = std::min(averaged + 1, kSmooth);
    const auto move = [&](double& mean, double value) { mean += (value - mean) / averaged; };
    move(known, call[LedgerCall::trivial] / call[LedgerCall::samples]);
    move(said, call[LedgerCall::loss] / call[LedgerCall::samples]);
    move(logged, loss->value);
  }
};

}  // namespace tocsin::rules
