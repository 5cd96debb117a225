#include "tests/simulation/workers.h"

#include <algorithm>
#include <cmath>
#include <csignal>

#include "tests/simulation/broker_log.h"

namespace tocsin::simulation {
namespace {

using namespace std::chrono_literals;

std::string tensor_name(std::size_t tensor) { return "gradient/layer" + std::to_string(tensor); }

}  // namespace

TrainingRank::TrainingRank(const TrainingGround& ground, const RunPlan& run, std::size_t launch,
                           std::uint32_t rank, int pid, std::uint64_t pid_start, Random random)
    : ground_(ground),
      run_(run),
      plan_(run.launches[launch]),
      launch_(launch),
      rank_(rank),
      pid_(pid),
      pid_start_(pid_start),
      random_(random),
      uid_(core::run_uid_for("job", run.name)),
      worker_("worker_" + std::to_string(rank)),
      next_(ground.clock->monotonic() + plan_.starts + plan_.skew * rank),
      step_(plan_.first_step) {}

core::FrameHeader TrainingRank::header() {
  core::FrameHeader out;
  out.mode = core::Mode::train;
  out.run = uid_;
  // As the hook has it: restart counts begin anew with each launch, seconds do not.
  out.attempt = static_cast<std::uint32_t>(incarnation_ / 1'000'000'000ULL);
  out.rank = rank_;
  out.world_size = run_.ranks;
  out.step = step_;
  out.global_step = global_step_;
  out.time = core::nanoseconds(ground_.clock->now());
  out.sequence = ++sequence_;
  out.incarnation = incarnation_;
  out.worker = core::name_hash(worker_);
  return out;
}

void TrainingRank::send() {
  const auto bytes = writer_.finish();
  const auto& faults = ground_.scenario->faults;
  if (!calm_ && random_.chance(faults.missing)) {
    ground_.trace->fault("telemetry_missing", run_.name, "sequence " + std::to_string(sequence_));
    return;  // its number is used up: the visible gap
  }
  core::Duration arrives =
      ground_.clock->monotonic() + random_.between(core::Duration(0ms), core::Duration(20ms));
  if (!calm_ && random_.chance(faults.delayed)) {
    ground_.trace->fault("telemetry_delayed", run_.name, "");
    arrives += random_.between(core::Duration(500ms), core::Duration(15s));
  }
  if (!network_.empty()) arrives = std::max(arrives, network_.back().arrives);
  OnTheWay item;
  item.arrives = arrives;
  item.record.topic = "telemetry";
  item.record.key = core::route_key(uid_);
  item.record.value.emplace(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  if (!calm_ && random_.chance(faults.duplicated)) {
    ground_.trace->fault("telemetry_duplicated", run_.name, "");
    network_.push_back(item);
  }
  network_.push_back(std::move(item));
}

void TrainingRank::deliver() {
  const core::Duration now = ground_.clock->monotonic();
  while (!network_.empty() && (calm_ || network_.front().arrives <= now)) {
    ground_.broker->append(std::move(network_.front().record));
    network_.pop_front();
  }
}

void TrainingRank::lifecycle(core::Lifecycle event) {
  core::FrameHeader at = header();
  at.mode = core::Mode::global;
  writer_.lifecycle(at, ingest::encode_lifecycle(event));
  send();
}

void TrainingRank::open() {
  state_ = State::running;
  incarnation_ = static_cast<std::uint64_t>(core::nanoseconds(ground_.clock->now()));
  opened_ = ground_.clock->monotonic().count();
  opened_at_ = ground_.clock->now();
  heartbeat_ = ground_.clock->monotonic() + 5s;
  ++announced_;
  ground_.trace->say(run_.name, "rank " + std::to_string(rank_) + " of launch " +
                                    std::to_string(launch_) + " opens");
  core::Lifecycle start;
  start.event = core::LifecycleEvent::start;
  start.job = "job";
  start.pid = pid_;
  start.pid_start = static_cast<std::int64_t>(pid_start_);
  start.boot_id = kBootId;
  start.opened = opened_;
  start.host = start.node = kHost;
  start.launch = plan_.key;
  start.worker_name = worker_;
  start.platform_ref = core::ValueMap{{"pid", std::int64_t{pid_}},
                                      {"pid_start", static_cast<std::int64_t>(pid_start_)},
                                      {"host", std::string(kHost)},
                                      {"boot_id", std::string(kBootId)}};
  lifecycle(std::move(start));
  std::vector<std::string> names{worker_, "loss"};
  for (std::size_t i = 0; i < run_.tensors; ++i) names.push_back(tensor_name(i));
  std::vector<core::DictionaryEntry> entries;
  for (std::size_t i = 0; i < names.size(); ++i) {
    core::DictionaryEntry entry;
    entry.hash = core::name_hash(names[i]);
    entry.type = i == 0   ? core::DictionaryType::worker
                 : i == 1 ? core::DictionaryType::scalar
                          : core::DictionaryType::tensor;
    entry.role = i == 1 ? core::Role::loss : i > 1 ? core::Role::gradient : core::Role::other;
    entry.dtype = core::Dtype::f32;
    entry.name = names[i];
    entries.push_back(entry);
  }
  writer_.dictionary(header(), entries);
  send();
}

core::SummaryRow TrainingRank::row(std::size_t tensor) const {
  core::SummaryRow row;
  row.name = core::name_hash(tensor_name(tensor));
  row.count = 100;
  row.sumsq = 1.0;
  row.m2 = 1.0;
  row.abs_sum = 8.0;
  row.min = -0.3;
  row.max = 0.3;
  row.negative = 50;
  row.meta = core::meta::make(core::Dtype::f32, core::Role::gradient);
  for (const auto& anomaly : plan_.anomalies) {
    if (anomaly.rank != rank_ || anomaly.tensor != tensor || step_ < anomaly.first ||
        step_ > anomaly.last) {
      continue;
    }
    if (anomaly.what == Anomaly::What::nan) {
      row.nan = 3;
      row.sum = row.sumsq = row.min = row.max = std::nan("");
    } else {
      row.zero = row.count;
      row.sumsq = row.m2 = row.abs_sum = row.min = row.max = 0;
      row.negative = 0;
    }
  }
  return row;
}

void TrainingRank::train() {
  std::vector<core::SummaryRow> rows;
  for (std::size_t i = 0; i < run_.tensors; ++i) rows.push_back(row(i));
  writer_.summary(header(), rows);
  send();
  core::ScalarRow loss;
  loss.name = core::name_hash("loss");
  loss.step = step_;
  loss.global_step = global_step_;
  loss.time = core::nanoseconds(ground_.clock->now());
  // Falls for a while, then stays: the rules of losses have something to say, too.
  loss.value = 1.0 / static_cast<double>(1 + std::min<std::int64_t>(step_, 6));
  loss.meta = core::meta::make(core::Dtype::f64, core::Role::loss);
  writer_.scalars(header(), std::vector{loss});
  send();
  ++global_step_;
  core::StepEndRow end;
  end.step = step_;
  end.global_step = global_step_;
  end.end = core::nanoseconds(ground_.clock->now());
  end.start = end.end - run_.step_time.count();
  writer_.step_ends(header(), std::vector{end});
  send();
  ++step_;
}

void TrainingRank::end(const std::string& outcome, int exit_code) {
  core::Lifecycle last;
  last.event = core::LifecycleEvent::end;
  last.outcome = outcome;
  last.exit_code = exit_code;
  lifecycle(std::move(last));
  state_ = State::over;
  ground_.trace->say(run_.name, "rank " + std::to_string(rank_) + " ends: " + outcome);
}

void TrainingRank::step() {
  const core::Duration now = ground_.clock->monotonic();
  if (state_ == State::waiting && now >= next_) open();
  if (alive() && now >= heartbeat_) {
    heartbeat_ = now + 5s;
    ++announced_;
    core::Lifecycle beat;
    beat.event = core::LifecycleEvent::heartbeat;
    beat.step = step_;
    beat.launch = plan_.key;
    lifecycle(std::move(beat));
  }
  if (state_ == State::running && now >= next_) {
    const bool bad = plan_.end != WorkerEnd::completes && rank_ == plan_.bad_rank;
    if (bad && step_ >= plan_.ends_at) {
      if (plan_.end == WorkerEnd::fails) {
        end("failed", 1);
      } else if (plan_.end == WorkerEnd::dies) {
        ground_.trace->say(run_.name, "rank " + std::to_string(rank_) + " dies");
        state_ = State::over;
      } else {
        ground_.trace->say(run_.name, "rank " + std::to_string(rank_) + " hangs");
        state_ = State::hung;
      }
    } else if (step_ >= plan_.first_step + plan_.steps) {
      end("completed", 0);
    } else {
      train();
      next_ = now + run_.step_time;
    }
  }
  deliver();
}

void TrainingRank::calm() {
  calm_ = true;
  if (state_ == State::hung) state_ = State::over;
  deliver();
}

actions::ProcessFence TrainingRank::fence() const { return {pid_, pid_start_, kBootId, kHost}; }

bool TrainingRank::signal(int number, std::vector<Stopped>& stopped) {
  if (!alive()) return false;
  if (number == 0) return true;
  stopped.push_back(
      {uid_, launch_, rank_, number == SIGKILL ? "SIGKILL" : "SIGTERM", "", opened_at_});
  ground_.trace->say(run_.name, "rank " + std::to_string(rank_) + " of launch " +
                                    std::to_string(launch_) + " gets " + stopped.back().by);
  state_ = State::over;
  return true;
}

void TrainingRank::answer(const core::Command& command, const std::string& phase,
                          const std::string& reason) {
  core::Ack ack;
  ack.command_id = command.command_id;
  ack.revision = command.revision;
  ack.action = command.action;
  ack.phase = phase;
  ack.reason = reason;
  ack.run = uid_;
  ack.attempt = command.attempt;
  ack.rank = rank_;
  ack.worker = worker_;
  ack.incarnation = incarnation_;
  ack.node = kHost;
  ack.step = step_;
  ack.time = ground_.clock->now();
  ground_.broker->append(ingest::encode_ack(ack, ""));
}

/// docs/events.md: obeys only what was written for its own launch.
void TrainingRank::read_commands(std::vector<Stopped>& stopped) {
  if (state_ != State::running) return;
  if (std::exchange(commands_end_, ground_.broker->end("commands")) ==
      ground_.broker->end("commands"))
    return;
  for (const auto& stored : ground_.broker->records("commands")) {
    if (!stored.record.key.ends_with("/stop")) continue;
    const auto decoded = ingest::decode_command(view_of(stored));
    if (!decoded || decoded->run != uid_ || !decoded->command || decoded->action != "stop")
      continue;
    const core::Command& command = *decoded->command;
    auto& revision = handled_[command.command_id];
    if (command.dry_run || command.revision <= revision) continue;
    revision = command.revision;
    const auto it = command.launch.find(kHost);
    bool ours = false;
    if (it != command.launch.end()) {
      const auto slash = it->second.find('/');
      ours = it->second.substr(0, slash) == std::string(kBootId).substr(0, 8) &&
             slash != std::string::npos && std::stoll(it->second.substr(slash + 1)) >= opened_;
    }
    const bool late = command.expires_at && *command.expires_at < ground_.clock->now();
    answer(command, "received", "");
    if (!ours || late) {
      answer(command, "refused", late ? "expired" : "stale");
      continue;
    }
    for (const char* phase : {"accepted", "stopping", "stopped"}) answer(command, phase, "");
    stopped.push_back(
        {uid_, launch_, rank_, command.command_id, command.reason.event_id, opened_at_});
    end("stopped_by_rule", 77);
    return;
  }
}

}  // namespace tocsin::simulation
