#include "tests/simulation/world.h"

#include <algorithm>
#include <cstdio>

#include "tests/simulation/broker_log.h"

namespace tocsin::simulation {
namespace {

using namespace std::chrono_literals;

constexpr core::Duration kDrainAtMost = 30min;
constexpr core::Duration kSettle = 45s;    // longer than any group waits
constexpr core::Duration kAllOver = 200s;  // longer than a silent job counts as alive

BrokerOptions broker_options(const Scenario& scenario, Mutation mutation, const core::Clock& clock,
                             Trace& trace) {
  BrokerOptions out;
  out.topics.partitions = scenario.partitions;
  out.clock = &clock;
  out.markers = scenario.markers;
  out.eager = scenario.eager;
  out.fences = mutation != Mutation::drop_fence;
  out.seed = scenario.seed + 1;
  if (trace.prints()) {
    out.say = [&trace](std::string_view client, const std::string& what) {
      trace.say(client, what);
    };
  }
  return out;
}

}  // namespace

World::World(Scenario scenario, Mutation mutation, bool print)
    : scenario_(std::move(scenario)),
      mutation_(mutation),
      trace_(clock_, print),
      broker_(broker_options(scenario_, mutation, clock_, trace_)),
      order_(scenario_.seed * 4 + 1),
      harm_(scenario_.seed * 4 + 2),
      chance_(scenario_.seed * 4 + 3),
      late_(scenario_.seed * 4 + 5),
      receivers_(clock_, trace_, Random(scenario_.seed * 4 + 4), scenario_.faults.receiver,
                 [this](const std::string& id) { return finished(id); }),
      node_agent_({&broker_, &clock_, &trace_, &scenario_}, ranks_, late_.fork()) {
  roles_.scenario = &scenario_;
  roles_.mutation = mutation_;
  roles_.receivers = &receivers_;
  roles_.rules = parse_rules(scenario_.rules);
  roles_.signal = [this](const actions::ProcessFence& fence, int number) {
    return signal(fence, number);
  };
  roles_.agent_begins = [this](std::shared_ptr<const app::StopsHere> here) {
    node_agent_.begin(std::move(here));
  };
  make_ranks();
  make_processes();
  broker_.on_call([this](std::string_view client, Call call) { return fault(client, call); });
}

World::~World() { broker_.heal(); }

void World::make_ranks() {
  const TrainingGround ground{&broker_, &clock_, &trace_, &scenario_};
  int pid = 1000;
  for (const auto& run : scenario_.runs) {
    std::vector<int> pids(run.ranks);
    std::vector<std::uint64_t> starts(run.ranks);
    for (std::size_t launch = 0; launch < run.launches.size(); ++launch) {
      for (std::uint32_t rank = 0; rank < run.ranks; ++rank) {
        if (!run.launches[launch].in_place) {
          pids[rank] = ++pid;
          starts[rank] = static_cast<std::uint64_t>(pid) * 100;
        }
        ranks_.push_back(std::make_unique<TrainingRank>(ground, run, launch, rank, pids[rank],
                                                        starts[rank], chance_.fork()));
      }
    }
  }
}

void World::make_processes() {
  const Ground ground{&broker_, &clock_, &trace_, &telemetry_};
  const auto wrap = [this](ingest::Transport& inner) { return mutate(mutation_, inner); };
  const auto add = [&](const std::string& name, Process::Build build) {
    processes_.push_back(std::make_unique<Process>(ground, name, std::move(build), wrap));
    processes_.back()->start();
  };
  for (std::size_t i = 0; i < scenario_.evaluators; ++i) {
    add("evaluator-" + std::to_string(i),
        [this, i](Process& process) { build_evaluator(process, roles_, i); });
  }
  for (std::size_t i = 0; i < scenario_.leaders; ++i) {
    add("leader-" + std::to_string(i),
        [this](Process& process) { build_leader(process, roles_, chance_.fork()); });
  }
  if (scenario_.stops || scenario_.agent) {
    add("agent-0", [this](Process& process) { build_agent(process, roles_); });
  }
}

actions::Observed World::signal(const actions::ProcessFence& fence, int number) {
  bool known = false;
  for (const auto& rank : ranks_) {
    if (rank->fence() != fence) continue;
    known = true;
    if (rank->signal(number, stopped_)) return actions::Observed::signalled;
  }
  return known ? actions::Observed::ended : actions::Observed::stale;
}

void World::note_commands() {
  if (broker_.end("commands") == std::exchange(commands_end_, broker_.end("commands"))) return;
  for (const auto& stored : broker_.records("commands")) {
    if (!stored.record.key.ends_with("/stop")) continue;
    const auto decoded = ingest::decode_command(view_of(stored));
    if (decoded && decoded->command) commands_[decoded->command->command_id] = *decoded->command;
  }
}

std::optional<std::size_t> World::launch_of(const core::FrameHeader& header) const {
  for (const auto& rank : ranks_) {
    if (rank->uid() == header.run && rank->rank() == header.rank &&
        rank->incarnation() == header.incarnation) {
      return rank->launch();
    }
  }
  return std::nullopt;
}

// ── Harm ─────────────────────────────────────────────────────────────────────────────────────

/// Called by the broker for every call.
Fault World::fault(std::string_view client, Call call) {
  Fault fault;
  if (calm_ || client == "test") return fault;
  const auto away = away_until_.find(client);
  if (away != away_until_.end() && clock_.monotonic() < away->second) {
    fault.kind = Fault::Kind::refused;
    return fault;
  }
  const auto& rates = scenario_.faults;
  if (call == Call::poll && harm_.chance(rates.poll)) {
    trace_.fault("poll_failed", client, "");
    fault.kind = Fault::Kind::refused;
  } else if (call == Call::read_all && harm_.chance(rates.read)) {
    trace_.fault("state_unreadable", client, "");
    fault.kind = harm_.chance(0.5) ? Fault::Kind::refused : Fault::Kind::halfway;
  } else if (call == Call::commit && harm_.chance(rates.commit)) {
    switch (harm_.between(0, 7)) {
      case 0:
        trace_.fault("commit_refused", client, "");
        fault.kind = Fault::Kind::refused;
        break;
      case 1:
        trace_.fault("disk_full", client, "");
        fault.kind = Fault::Kind::refused;
        fault.error = {core::Code::resource_exhausted, "no space left"};
        break;
      case 2:
        trace_.fault("commit_answer_lost", client, "");
        fault.kind = Fault::Kind::lost;
        fault.error = {core::Code::deadline_exceeded, "no answer to the commit"};
        break;
      case 3:
        trace_.fault("commit_hangs", client, "");
        fault.kind = Fault::Kind::hangs;
        fault.error = {core::Code::deadline_exceeded, "no answer to the commit"};
        if (harm_.chance(0.6))
          fault.arrives = harm_.between(core::Duration(100ms), core::Duration(12s));
        break;
      case 4:
        // Frozen inside of the call: the request leaves when others have gone on.
        trace_.fault("commit_late", client, "");
        fault.kind = Fault::Kind::late;
        fault.error = {core::Code::deadline_exceeded, "no answer to the commit"};
        fault.arrives = harm_.between(core::Duration(1s), core::Duration(25s));
        freeze(client, fault.arrives + harm_.between(core::Duration(0s), core::Duration(2s)));
        break;
      case 5:
        // The producer was lost in the commit, see ingest/kafka/publisher.cc.
        trace_.fault("commit_in_doubt", client, "");
        fault.kind = harm_.chance(0.5) ? Fault::Kind::lost : Fault::Kind::hangs;
        fault.error = {core::Code::failed_precondition, "the producer was lost in a commit"};
        break;
      case 6:
        trace_.fault("dies_before_commit", client, "");
        fault.kind = Fault::Kind::refused;
        fault.dies = true;
        break;
      default:
        trace_.fault("dies_after_commit", client, "");
        fault.kind = Fault::Kind::lost;
        fault.dies = true;
        break;
    }
  }
  return fault;
}

void World::freeze(std::string_view client, core::Duration length) {
  for (const auto& process : processes_) {
    if (process->name() == client) process->freeze_until(clock_.monotonic() + length);
  }
}

void World::do_harm() {
  const auto& rates = scenario_.faults;
  Process& victim = *processes_[harm_.index(processes_.size())];
  const core::Duration now = clock_.monotonic();
  if (harm_.chance(rates.crash) && victim.running()) {
    if (harm_.chance(0.2)) {
      trace_.fault("restart", victim.name(), "");
      victim.stop();
    } else {
      trace_.fault("crash", victim.name(), "");
      victim.crash();
    }
    victim.restart_at(now + harm_.between(core::Duration(0s), core::Duration(15s)));
  }
  if (harm_.chance(rates.freeze) && victim.running() && !victim.frozen()) {
    const auto length = harm_.chance(0.5) ? harm_.between(core::Duration(500ms), core::Duration(8s))
                                          : harm_.between(core::Duration(8s), core::Duration(40s));
    trace_.fault(length > 10s ? "zombie" : "freeze", victim.name(), core::to_text(length));
    victim.freeze_until(now + length);
  }
  static const std::vector<std::string> kGroups{"tocsin-rules", "tocsin-router", "tocsin-deliver"};
  if (harm_.chance(rates.rebalance)) {
    const auto& group = harm_.pick(kGroups);
    trace_.fault("rebalance", group, "");
    broker_.rebalance(group, false, harm_.next());
  }
  if (harm_.chance(rates.throw_out)) {
    const auto& group = harm_.pick(kGroups);
    trace_.fault("partitions_lost", group, "");
    broker_.rebalance(group, true);
  }
  if (harm_.chance(rates.away)) {
    const auto until = now + harm_.between(core::Duration(500ms), core::Duration(30s));
    const bool all = harm_.chance(0.3);
    trace_.fault("broker_away", all ? "everybody" : victim.name(), core::to_text(until - now));
    for (const auto& process : processes_) {
      if (all || process.get() == &victim) away_until_[process->name()] = until;
    }
  }
  if (harm_.chance(rates.clock_jump)) {
    const auto by = harm_.chance(0.7) ? harm_.between(core::Duration(-30s), core::Duration(30s))
                                      : harm_.between(core::Duration(-2h), core::Duration(2h));
    trace_.fault(by.count() < 0 ? "clock_back" : "clock_forward", "",
                 core::to_text(by.count() < 0 ? -by : by));
    clock_.jump(by);
  }
  if (harm_.chance(rates.compaction)) {
    static const std::vector<std::string> kCompacted{"rules-state", "router-state", "registry",
                                                     "commands"};
    const auto& topic = harm_.pick(kCompacted);
    trace_.fault("compaction", topic, "");
    broker_.compact(topic, harm_.real(), harm_.chance(0.2));
  }
  if (rates.retention > 0 && late_.chance(rates.retention)) retain();
}

/// Retention takes the oldest telemetry of a partition: what was read long ago, what only a replay
/// would read again, or what nobody has read yet. (Before the first commit there is no reader that
/// it could overtake.)
void World::retain() {
  const auto positions = broker_.committed("tocsin-rules");
  if (positions.empty()) return;
  const core::Position& at = positions[late_.index(positions.size())];
  if (at.next < 0) return;
  std::vector<StoredRecord> all = broker_.records("telemetry");
  std::erase_if(all, [&](const auto& one) { return one.partition != at.where.partition; });
  if (all.empty()) return;
  const bool unread = late_.chance(0.3);
  const std::int64_t first = all.front().offset;
  const std::int64_t last = unread ? all.back().offset + 1 : at.next;
  if (last <= first) return;
  const std::int64_t from = late_.between(first + 1, last);
  trace_.fault(unread ? "retention_overtakes" : "retention", "telemetry",
               std::to_string(at.where.partition) + " begins at " + std::to_string(from));
  for (auto& one : all) {
    if (one.offset < from) expired_.push_back(std::move(one));
  }
  broker_.trim("telemetry", at.where.partition, from);
}

std::vector<StoredRecord> World::telemetry() const {
  std::vector<StoredRecord> all = expired_;
  const auto there = broker_.records("telemetry");
  all.insert(all.end(), there.begin(), there.end());
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair(a.partition, a.offset) < std::pair(b.partition, b.offset);
  });
  return all;
}

// ── Time ─────────────────────────────────────────────────────────────────────────────────────

void World::move_time(core::Duration most) {
  // Mostly small steps, now and then a leap: things meet in the same moment, and nothing happens
  // for a while.
  const auto by = order_.chance(0.9) ? order_.between(core::Duration(0ms), most)
                                     : order_.between(most, most * 5);
  clock_.advance(by);
}

void World::turn() {
  note_commands();
  for (auto& rank : ranks_) {
    rank->step();
    rank->read_commands(stopped_);
  }
  // Behind the others in the list, if there is one at all.
  const Process& last = *processes_.back();
  if (scenario_.agent && last.running() && !last.frozen()) node_agent_.step();
  const auto steps = order_.between(1, static_cast<std::int64_t>(processes_.size()) + 1);
  for (std::int64_t i = 0; i < steps; ++i) {
    Process& process = *processes_[order_.index(processes_.size())];
    process.step(order_);
    if (process.dead()) {
      process.crash();
      process.restart_at(clock_.monotonic() +
                         harm_.between(core::Duration(0s), core::Duration(10s)));
    }
  }
}

bool World::finished(const std::string& notification_id) {
  for (const auto& stored : broker_.records("router-deliveries")) {
    const auto delivery = ingest::decode_delivery(view_of(stored));
    if (delivery && delivery->notification_id == notification_id &&
        delivery->state != core::DeliveryState::pending) {
      return true;
    }
  }
  return false;
}

void World::run() {
  trace_.say("world", describe(scenario_));
  while (trace_.elapsed() < scenario_.length) {
    move_time(100ms);
    do_harm();
    turn();
  }
  trace_.say("world", "calm: no more faults");
  calm_ = true;
  receivers_.calm();
  for (auto& process : processes_) {
    process->freeze_until({});
    process->restart_at({});
  }
  drain();
}

bool World::drained() {
  const auto ready = [](const auto& process) { return process->ready(); };
  return std::all_of(processes_.begin(), processes_.end(), ready) &&
         broker_.lag("tocsin-rules", {"telemetry"}) == 0 &&
         broker_.lag("tocsin-router", {"issues"}) == 0 &&
         broker_.lag("tocsin-deliver", {"router-outbox"}) == 0;
}

void World::drain() {
  const core::Duration begin = trace_.elapsed();
  bool ended = false;
  std::optional<core::Duration> quiet;
  for (int round = 0; trace_.elapsed() - begin < kDrainAtMost; ++round) {
    move_time(ended ? 400ms : 150ms);
    // Training goes on to its end; what hangs is killed by its owner after a while.
    if (!ended && trace_.elapsed() - begin > 5min) {
      for (auto& rank : ranks_) rank->calm();
    }
    turn();
    ended = std::none_of(ranks_.begin(), ranks_.end(), [](const auto& r) { return r->busy(); });
    if (!ended || round % 8 != 0) continue;
    if (!drained()) {
      if (!quiet) continue;
    } else if (!quiet) {
      quiet = trace_.elapsed();
    }
    const bool waits_for_losses = scenario_.agent && !scenario_.timeless;
    const core::Duration enough = waits_for_losses ? kAllOver : kSettle;
    if (quiet && trace_.elapsed() - *quiet > enough && drained()) {
      trace_.say("world", "everything is drained");
      return;
    }
  }
  std::string what = "not drained " + core::to_text(kDrainAtMost) + " after the last fault:";
  for (const auto& process : processes_) {
    if (!process->ready()) what += " " + process->name() + " is not ready";
  }
  what += " lag: evaluate " + std::to_string(broker_.lag("tocsin-rules", {"telemetry"})) +
          ", route " + std::to_string(broker_.lag("tocsin-router", {"issues"})) + ", deliver " +
          std::to_string(broker_.lag("tocsin-deliver", {"router-outbox"}));
  problems_.push_back(what);
}

}  // namespace tocsin::simulation
