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
      reload_(scenario_.seed * 4 + 6),
      receivers_(clock_, trace_, Random(scenario_.seed * 4 + 4), scenario_.faults,
                 [this](const std::string& id) { return finished(id); }),
      node_agent_({&broker_, &clock_, &trace_, &scenario_}, ranks_, late_.fork()),
      people_(broker_, clock_, trace_, reload_.fork(), scenario_.acks),
      silencers_(broker_, clock_, trace_, Random(scenario_.seed ^ 0x51E9CE6ULL),
                 scenario_.silences),
      deciders_(broker_, clock_, trace_, Random(scenario_.seed ^ 0xA9920BA5ULL),
                scenario_.approvals.words) {
  roles_.scenario = &scenario_;
  roles_.route = &scenario_.route;
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
  wrong_clock_ = mutate(mutation_, clock_);
  const Ground ground{&broker_, &clock_, wrong_clock_.get(), &trace_, &telemetry_};
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
  deciders_.look();
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
    people_.step();
    silencers_.step();
    deciders_.step();
    turn();
  }
  trace_.say("world", "calm: no more faults");
  calm_ = true;
  calm_since_ = clock_.now();
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
