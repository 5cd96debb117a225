#include "rules/evaluate/timed.h"

namespace tocsin::rules {

void judged_worker(Scope& scope, std::uint32_t worker, const Place& place, Verdict verdict,
                   Scope::Explain explain) {
  const core::Mode mode = place.mode.value_or(core::Mode::global);
  Subject subject;
  subject.worker = scope.worker(worker);
  subject.name = subject.worker;
  subject.mode = mode;
  subject.step = place.step;
  const auto labels = [&]() -> Labels {
    return {{"mode", std::string(core::to_string(mode))}, {"worker", subject.worker}};
  };
  scope.judged(unit_number({core::to_string(mode), subject.worker}), worker, verdict, place,
               subject, labels, explain);
}

}  // namespace tocsin::rules
