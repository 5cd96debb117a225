#include "tests/simulation/receivers.h"

#include <algorithm>

namespace tocsin::simulation {

using namespace std::chrono_literals;
using core::OutcomeClass;

Receivers::Answer Receivers::call(const actions::Attempt& attempt, const std::string& by,
                                  bool led) {
  enum class Mood { well, refuses, hangs, overloaded, broken, acts_and_drops };
  const Mood mood = random_.chance(mood_) ? static_cast<Mood>(random_.between(1, 5)) : Mood::well;
  Answer answer;
  answer.at = clock_.monotonic() + random_.between(core::Duration(1ms), core::Duration(80ms));
  core::AttemptOutcome& outcome = answer.outcome;
  bool acts = false;
  switch (mood) {
    case Mood::well:
      acts = true;
      outcome.code = "204";
      break;
    case Mood::refuses:
      outcome.outcome = OutcomeClass::transient;
      outcome.code = "connection refused";
      break;
    case Mood::hangs:
      answer.at = clock_.monotonic() + attempt.budget;
      outcome.outcome = OutcomeClass::transient;
      outcome.code = "timeout";
      break;
    case Mood::overloaded:
      outcome.outcome = OutcomeClass::throttled;
      outcome.code = "429";
      outcome.retry_after = random_.between(core::Duration(1s), core::Duration(10s));
      break;
    case Mood::broken:
      outcome.outcome = OutcomeClass::transient;
      outcome.code = "500";
      break;
    case Mood::acts_and_drops:
      acts = true;
      outcome.outcome = OutcomeClass::transient;
      outcome.code = "connection reset";
      break;
  }
  const bool people = attempt.integration.starts_with("people/");
  if (gone_ > 0 && people && gone_random_.chance(gone_)) {
    acts = false;
    outcome.outcome = OutcomeClass::gone;
    outcome.code = "410";
  }
  const std::string& id = attempt.notification->notification_id;
  if (outcome.outcome != OutcomeClass::delivered) trace_.fault("receiver_" + outcome.code, by, id);
  if (acts) {
    effects_.push_back(
        {id, attempt.integration, by, attempt.number, led, finished_(id), clock_.monotonic()});
    trace_.say(by, "tells " + attempt.integration + " " + id + " (" + attempt.notification->reason +
                       ", attempt " + std::to_string(attempt.number) + ")");
  }
  return answer;
}

void SimulatedCaller::submit(actions::Attempt attempt) {
  Waiting waiting;
  waiting.started = leads_();
  core::Action* const action = real_(attempt.integration);
  if (waiting.started && action != nullptr) {
    waiting.answer.outcome = action->execute(*attempt.notification, attempt.number, attempt.budget);
    waiting.answer.at = clock_.monotonic();
  } else if (waiting.started) {
    waiting.answer = receivers_.call(attempt, process_, true);
  } else {
    waiting.answer.at = clock_.monotonic();
  }
  waiting.attempt = std::move(attempt);
  waiting_.push_back(std::move(waiting));
}

std::vector<actions::CallResult> SimulatedCaller::take() {
  std::vector<actions::CallResult> out;
  std::erase_if(waiting_, [&](Waiting& waiting) {
    if (waiting.answer.at > clock_.monotonic()) return false;
    std::optional<core::AttemptOutcome> outcome;
    if (waiting.started) outcome = std::move(waiting.answer.outcome);
    out.push_back({std::move(waiting.attempt), std::move(outcome)});
    return true;
  });
  return out;
}

}  // namespace tocsin::simulation
