#include "collectors/hook/abi/step_lane.h"

namespace tocsin::hook {

std::int64_t StepLane::now() const { return core::nanoseconds(clock_.now()); }

void StepLane::scalar(Session& session, std::uint64_t name, double value, bool quiet) {
  if (first_value_ == 0) first_value_ = now();
  if (quiet && prompt_ && value_count_ < kMost) {
    values_[value_count_++] = {name, value};
    return;
  }
  if (value_count_ > 0) tell_held(session);
  session.scalars({&name, 1}, {&value, 1});
}

void StepLane::time(Session& session, const PhaseTime& time) {
  if (time.duration < short_ && time_count_ < kMost) {
    times_[time_count_++] = time;
    return;
  }
  tell_held(session);
  session.span(time.name, 0, time.start, time.duration, 0);
}

void StepLane::tell_held(Session& session) {
  const std::size_t values = value_count_;
  const std::size_t times = time_count_;
  value_count_ = time_count_ = 0;
  for (std::size_t i = 0; i < values; ++i)
    session.scalars({&values_[i].name, 1}, {&values_[i].value, 1});
  for (std::size_t i = 0; i < times; ++i) {
    session.span(times_[i].name, 0, times_[i].start, times_[i].duration, 0);
  }
}

bool StepLane::step_end(Session& session, bool optimizer_skipped, std::uint32_t micro_steps) {
  if (first_value_ != 0) {
    prompt_ = now() - first_value_ < short_;
    first_value_ = 0;
  }
  const std::size_t values = value_count_;
  const std::size_t times = time_count_;
  value_count_ = time_count_ = 0;
  return !session.step_next({values_.data(), values}, {times_.data(), times}, optimizer_skipped,
                            micro_steps);
}

}  // namespace tocsin::hook
