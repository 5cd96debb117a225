// Joins the stop ladder with the processes of this machine.
#include <algorithm>
#include <csignal>
#include <map>

#include "actions/stop/stop_ladder.h"
#include "actions/stop/stop_metrics.h"
#include "core/json.h"

namespace tocsin::actions {

using core::WallTime;

namespace {

class PidfdControl final : public ProcessControl {
 public:
  explicit PidfdControl(std::string host) : host_(std::move(host)) {}

  Observed send(const ProcessFence& fence, int signal) override {
    auto held = held_.find(fence.pid);
    if (held != held_.end() && held->second.fence != fence) {
      held_.erase(held);
      held = held_.end();
    }
    if (held == held_.end()) {
      auto process = LocalProcess::open(fence, host_);
      if (!process) return observed(process.error());
      held = held_.emplace(fence.pid, Held{fence, std::move(*process)}).first;
    }
    if (held->second.process.ended()) {
      held_.erase(held);
      return Observed::ended;
    }
    if (signal == 0) return Observed::signalled;
    const auto sent = held->second.process.signal(signal);
    return sent ? Observed::signalled : observed(sent.error());
  }

 private:
  static Observed observed(const core::Error& error) {
    switch (error.code) {
      case core::Code::not_found:
        return Observed::ended;
      case core::Code::failed_precondition:
        return Observed::stale;
      default:
        return Observed::denied;
    }
  }

  struct Held {
    ProcessFence fence;
    LocalProcess process;
  };
  std::string host_;
  std::map<int, Held> held_;  // by pid; one descriptor each until the process has ended
};

}  // namespace

std::unique_ptr<ProcessControl> local_process_control(std::string this_host) {
  return std::make_unique<PidfdControl>(std::move(this_host));
}

LocalStopAgent::LocalStopAgent(std::string host, std::unique_ptr<ProcessControl> processes,
                               core::Log& log, core::Telemetry& telemetry)
    : host_(std::move(host)), processes_(std::move(processes)), log_(log), telemetry_(telemetry) {
  measure();
}

std::vector<StopTransition> LocalStopAgent::on_command(const core::Command& command, WallTime now) {
  if (const core::Value* value = core::find(command.args, "fence")) {
    const auto fence = process_fence(*value);
    const bool other_host = fence && !fence->host.empty() && fence->host != host_;
    if (other_host || (elsewhere_ && elsewhere_(*value))) {
      return carry_out(ladder_.on_foreign(command, now), now);
    }
  }
  auto out = carry_out(ladder_.on_command(command, now), now);
  // Look before anything is due: a process that has ended already was not stopped by us. Before the
  // first tick the end may still stand further on in what is being read.
  if (!ticking_) return out;
  for (const auto& [id, fence] : ladder_.watched()) {
    if (id != command.command_id) continue;
    auto more = carry_out(ladder_.on_observed(id, processes_->send(fence, 0), now), now);
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

std::vector<StopTransition> LocalStopAgent::on_ack(const core::Ack& ack, WallTime now) {
  return carry_out(ladder_.on_ack(ack, now), now);
}

std::vector<StopTransition> LocalStopAgent::on_job(const core::JobEvent& event, WallTime now) {
  return carry_out(ladder_.on_job(event, now), now);
}

std::vector<StopTransition> LocalStopAgent::on_withdrawn(const core::RunUid& run, WallTime now) {
  return carry_out(ladder_.on_withdrawn(run, now), now);
}

std::vector<StopTransition> LocalStopAgent::tick(WallTime now) {
  ticking_ = true;
  std::vector<StopTransition> out;
  const auto add = [&](std::vector<StopTransition> more) {
    out.insert(out.end(), more.begin(), more.end());
  };
  for (const auto& [id, fence] : ladder_.watched()) {
    const Observed seen = processes_->send(fence, 0);
    // Looking may be forbidden where waiting for an ack still helps; only signals need permission.
    if (seen != Observed::denied) add(carry_out(ladder_.on_observed(id, seen, now), now));
  }
  add(carry_out(ladder_.tick(now), now));
  return out;
}

std::vector<StopTransition> LocalStopAgent::carry_out(StopLadder::Step step, WallTime now) {
  std::vector<StopTransition> out = std::move(step.transitions);
  for (StopTransition& one : out) {
    one.replayed = one.at < started_;
    timing_.moved(one, "local");
    if (listener_) listener_(one);
    if (one.replayed || !is_final(one.to)) continue;
    count_stop(telemetry_, "local", one.to);
  }
  for (const StopSignal& signal : step.signals) {
    log_.warn(
        "process_signalled",
        {{"command", signal.command_id}, {"pid", signal.fence.pid}, {"signal", signal.number}});
    const Observed seen = processes_->send(signal.fence, signal.number);
    auto more = carry_out(ladder_.on_observed(signal.command_id, seen, now), now);
    out.insert(out.end(), more.begin(), more.end());
  }
  if (!out.empty()) measure();
  return out;
}

void LocalStopAgent::measure() { measure_stops(telemetry_, ladder_, "local"); }

}  // namespace tocsin::actions
