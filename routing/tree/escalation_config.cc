#include "routing/tree/escalation_config.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/text.h"

namespace tocsin::routing {
namespace {

using core::Duration;

/// Times and these have a sum.
constexpr Duration kLongestStep = std::chrono::hours(24 * 365);
constexpr std::size_t kMaxSteps = 32;
constexpr std::uint32_t kMaxRepeats = 1000;

void read_unless(config::Reader& in, EscalationStep& step) {
  std::vector<std::string> unless{"acked", "resolved"};
  in.optional("unless", unless,
              "what keeps the step from being carried out: acked, resolved; an incident that is "
              "resolved escalates no further in any case");
  if (in.describing()) return;
  for (const std::string& word : unless) {
    if (word == "acked" || word == "resolved") continue;
    const std::string near = core::nearest(word, {"acked", "resolved"});
    in.error("unless", "'" + word + "' is neither acked nor resolved" +
                           (near.empty() ? "" : "; did you mean '" + near + "'?"));
  }
  step.unless_acked = std::find(unless.begin(), unless.end(), "acked") != unless.end();
}

EscalationStep read_step(config::Reader& in, CheckReceiver check) {
  EscalationStep step;
  in.required("after", step.after, config::between(Duration(std::chrono::seconds(1)), kLongestStep),
              "from the first message of the incident");
  in.required("receiver", step.receiver, config::not_empty(), "who is told then");
  read_unless(in, step);
  in.section("repeat", "tells the receiver again while nothing has changed",
             [&](config::Reader& repeat) {
               repeat.required("every", step.every,
                               config::between(Duration(std::chrono::seconds(1)), kLongestStep),
                               "between two of its messages");
               step.repeats = 1;
               repeat.optional("max", step.repeats, config::between<std::uint32_t>(1, kMaxRepeats),
                               "how often at most");
             });
  if (!in.describing() && !step.receiver.empty()) check(in, "receiver", step.receiver);
  return step;
}

void read_steps(config::Reader& in, EscalationConfig& out, CheckReceiver check) {
  std::vector<EscalationStep> steps;
  in.list("escalation",
          "who is told next while nobody acknowledges: steps by time since the first message; "
          "inherited, [] = none",
          [&](config::Reader& item) {
            EscalationStep step = read_step(item, check);
            if (item.describing()) return;
            if (!steps.empty() && step.after <= steps.back().after) {
              item.error("after", "must be later than that of the step before");
            }
            if (steps.size() == kMaxSteps) {
              item.error("", "more than " + std::to_string(kMaxSteps) + " steps");
            }
            steps.push_back(std::move(step));
          });
  if (!in.describing() && in.has("escalation")) out.steps = std::move(steps);
}

void read_failure(config::Reader& in, EscalationConfig& out,
                  const std::vector<std::string>& receivers, CheckReceiver check) {
  FailureStep step;
  const bool there = in.section(
      "on_delivery_failure", "who is told when a message of this route does not arrive; inherited",
      [&](config::Reader& section) {
        section.optional("after", step.after,
                         config::between(Duration(std::chrono::seconds(1)), kLongestStep),
                         "a message that has not arrived for so long counts as failed");
        section.required("receiver", step.receiver, config::not_empty(), "the backup");
        if (section.describing() || step.receiver.empty()) return;
        check(section, "receiver", step.receiver);
        if (std::find(receivers.begin(), receivers.end(), step.receiver) != receivers.end()) {
          section.error("receiver", "'" + step.receiver +
                                        "' is a receiver of this route: it cannot stand in for "
                                        "itself");
        }
      });
  if (there && !in.describing()) out.on_failure = std::move(step);
}

}  // namespace

void read_escalation(config::Reader& in, EscalationConfig& out,
                     const std::vector<std::string>& receivers, CheckReceiver check) {
  read_steps(in, out, check);
  read_failure(in, out, receivers, check);
  bool propagate = false;
  in.optional("propagate_ack", propagate,
              "an acknowledgement is passed on to integrations whose tools know one; inherited");
  if (!in.describing() && in.has("propagate_ack")) out.propagate_ack = propagate;
}

}  // namespace tocsin::routing
