#include "tests/simulation/node_agent.h"

#include <algorithm>

#include "tests/simulation/broker_log.h"

namespace tocsin::simulation {
namespace {

using namespace std::chrono_literals;

constexpr core::Duration kSweepEvery = 5s;
constexpr const char* kSeries = "cpu/total";

}  // namespace

void NodeAgent::begin(std::shared_ptr<const app::StopsHere> here) {
  here_ = std::move(here);
  incarnation_ = std::max(incarnation_ + 1,
                          static_cast<std::uint64_t>(core::nanoseconds(ground_.clock->now())));
  targets_.clear();
  heard_.clear();
  watched_.clear();
  untold_.clear();
  out_.clear();
  registry_end_ = -1;
  next_sweep_ = ground_.clock->monotonic() + kSweepEvery;
}

void NodeAgent::step() {
  read_registry();
  listen();
  tell_deaths();
  if (ground_.clock->monotonic() >= next_sweep_) sweep();
  while (!out_.empty() && out_.front().leaves <= ground_.clock->monotonic()) {
    ground_.broker->append(std::move(out_.front().record));
    out_.pop_front();
  }
}

void NodeAgent::read_registry() {
  if (std::exchange(registry_end_, ground_.broker->end("registry")) ==
      ground_.broker->end("registry")) {
    return;
  }
  for (const auto& stored : ground_.broker->records("registry")) {
    const auto decoded = ingest::decode_event(view_of(stored));
    const auto* job = decoded ? std::get_if<core::JobEvent>(&decoded->event) : nullptr;
    if (job == nullptr) continue;
    if (job->phase == core::JobPhase::ended) {
      targets_.erase(job->run.uid);
      std::erase_if(watched_, [&](const Watched& one) { return one.rank->uid() == job->run.uid; });
      continue;
    }
    // The registry may still hold runs that ended without a word.
    const bool lives = std::any_of(ranks_.begin(), ranks_.end(), [&](const auto& rank) {
      return rank->uid() == job->run.uid && rank->alive();
    });
    if (!lives && !targets_.contains(job->run.uid)) continue;
    targets_[job->run.uid].attempt = job->run.attempt;
  }
}

void NodeAgent::listen() {
  for (const auto& rank : ranks_) {
    auto& heard = heard_.try_emplace(rank.get(), rank->announced()).first->second;
    if (std::exchange(heard, rank->announced()) == rank->announced()) continue;
    const bool known = std::any_of(watched_.begin(), watched_.end(), [&](const Watched& one) {
      return one.rank == rank.get() && one.incarnation == rank->incarnation();
    });
    if (!known) watched_.push_back({rank.get(), rank->incarnation()});
  }
}

/// Of a run that `registry` does not show yet it is told when it does.
void NodeAgent::tell_deaths() {
  std::erase_if(watched_, [&](const Watched& one) {
    if (one.rank->alive()) return false;
    untold_.push_back(one);
    return true;
  });
  std::erase_if(untold_, [&](const Watched& one) {
    const auto target = targets_.find(one.rank->uid());
    if (target == targets_.end()) return false;
    core::Lifecycle death;
    death.event = core::LifecycleEvent::died;
    death.died_worker = one.rank->worker();
    death.died_incarnation = one.incarnation;
    death.pid = one.rank->fence().pid;
    if (here_) death.command_id = here_->stop_of(one.rank->uid(), one.incarnation).command_id;
    ground_.trace->say("agent-0", "saw rank " + std::to_string(one.rank->rank()) + " of launch " +
                                      std::to_string(one.rank->launch()) + " end " +
                                      death.command_id);
    writer_.lifecycle(header(one.rank->uid(), target->second), ingest::encode_lifecycle(death));
    send(one.rank->uid());
    return true;
  });
}

void NodeAgent::sweep() {
  next_sweep_ = ground_.clock->monotonic() + kSweepEvery;
  for (auto& [run, target] : targets_) {
    if (!std::exchange(target.named, true)) {
      core::DictionaryEntry node;
      node.hash = core::name_hash(kHost);
      node.type = core::DictionaryType::node;
      node.name = kHost;
      core::DictionaryEntry series;
      series.hash = core::name_hash(kSeries);
      series.type = core::DictionaryType::series;
      series.name = kSeries;
      writer_.dictionary(header(run, target), std::vector{node, series});
      send(run);
    }
    const auto at = header(run, target);
    writer_.system(at, std::vector<core::SystemRow>{{core::name_hash(kSeries), at.time, 50.0, 0U}});
    send(run);
  }
}

core::FrameHeader NodeAgent::header(const core::RunUid& run, Target& target) const {
  core::FrameHeader out;
  out.run = run;
  out.attempt = target.attempt;
  out.rank = core::kNodeAgentRank;
  out.worker = core::name_hash(kHost);
  out.incarnation = incarnation_;
  out.mode = core::Mode::global;
  out.time = core::nanoseconds(ground_.clock->now());
  out.sequence = ++target.sequence;
  return out;
}

/// Queued, as the real one has it: what waits when it dies is never told.
void NodeAgent::send(const core::RunUid& run) {
  const auto bytes = writer_.finish();
  OnTheWay item;
  item.leaves =
      ground_.clock->monotonic() + random_.between(core::Duration(0ms), core::Duration(300ms));
  if (!out_.empty()) item.leaves = std::max(item.leaves, out_.back().leaves);
  item.record.topic = "telemetry";
  item.record.key = core::route_key(run);
  item.record.value.emplace(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  out_.push_back(std::move(item));
}

}  // namespace tocsin::simulation
