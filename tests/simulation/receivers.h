// The far sides: what they were asked to do, what they did, and their moods.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actions/actions.h"
#include "tests/simulation/clock.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/trace.h"

namespace tocsin::simulation {

/// Something happened outside because a notification was carried out.
struct Effect {
  std::string notification_id;
  std::string integration;
  std::string by;  // process
  std::uint32_t attempt = 1;
  bool led = false;       // the process held the lease at that moment
  bool finished = false;  // a final state was committed before
  core::Duration at{};
};

/// All receivers of a world.
class Receivers {
 public:
  /// `finished`: is a final state of this notification committed? `rates`: how
  /// often calls go wrong.
  Receivers(const SimulatedClock& clock, Trace& trace, Random random, const FaultRates& rates,
            std::function<bool(const std::string& notification_id)> finished)
      : clock_(clock),
        trace_(trace),
        random_(random),
        gone_random_(random.next()),
        mood_(rates.receiver),
        gone_(rates.gone),
        finished_(std::move(finished)) {}

  struct Answer {
    core::Duration at{};  // steady
    core::AttemptOutcome outcome;
  };
  /// One call: acts or not, and says when the caller learns what.
  Answer call(const actions::Attempt& attempt, const std::string& by, bool led);
  void calm() { mood_ = gone_ = 0; }
  [[nodiscard]] const std::vector<Effect>& effects() const { return effects_; }

 private:
  const SimulatedClock& clock_;
  Trace& trace_;
  Random random_;
  Random gone_random_;  // its own: what came later changes no world that was there before
  double mood_;
  double gone_;
  std::function<bool(const std::string&)> finished_;
  std::vector<Effect> effects_;
};

/// Carries the attempts of one process out, without a thread: answers come when the simulated time
/// has come. `real`: the product's own action where the world has one, else the far side acts.
class SimulatedCaller final : public actions::Caller {
 public:
  SimulatedCaller(Receivers& receivers, const SimulatedClock& clock, std::string process,
                  std::function<bool()> leads,
                  std::function<core::Action*(std::string_view integration)> real)
      : receivers_(receivers),
        clock_(clock),
        process_(std::move(process)),
        leads_(std::move(leads)),
        real_(std::move(real)) {}

  void submit(actions::Attempt attempt) override;
  std::vector<actions::CallResult> take() override;
  [[nodiscard]] std::size_t in_flight() const override { return waiting_.size(); }

 private:
  struct Waiting {
    actions::Attempt attempt;
    Receivers::Answer answer;
    bool started = true;
  };
  Receivers& receivers_;
  const SimulatedClock& clock_;
  std::string process_;
  std::function<bool()> leads_;
  std::function<core::Action*(std::string_view)> real_;
  std::deque<Waiting> waiting_;
};

}  // namespace tocsin::simulation
