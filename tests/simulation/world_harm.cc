// What goes wrong in the world: broker, processes, clocks, and what the topics lose.
#include <algorithm>

#include "tests/simulation/world.h"

namespace tocsin::simulation {

using namespace std::chrono_literals;

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
  } else if (call == Call::write_ahead && harm_.chance(rates.commit / 10)) {
    switch (harm_.between(0, 2)) {
      case 0:
        trace_.fault("ahead_refused", client, "");
        fault.kind = Fault::Kind::refused;
        break;
      case 1:
        trace_.fault("ahead_lost", client, "");
        fault.kind = Fault::Kind::lost;
        break;
      default:
        trace_.fault("dies_after_ahead", client, "");
        fault.dies = true;
        break;
    }
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
  if (rates.clock_hour > 0 && late_.chance(rates.clock_hour)) {
    const core::Duration by = late_.chance(0.7) ? core::Duration(1h) : core::Duration(1s);
    const bool back = late_.chance(0.5);
    trace_.fault(back ? "clock_back" : "clock_forward", "", core::to_text(by));
    clock_.jump(back ? -by : by);
  }
  if (harm_.chance(rates.compaction)) {
    static const std::vector<std::string> kCompacted{"rules-state", "router-state", "registry",
                                                     "commands"};
    const auto& topic = harm_.pick(kCompacted);
    trace_.fault("compaction", topic, "");
    broker_.compact(topic, harm_.real(), harm_.chance(0.2));
  }
  if (rates.reload > 0 && reload_.chance(rates.reload)) reload();
  if (rates.retention > 0 && late_.chance(rates.retention)) retain();
}

/// Another configuration for the leaders, which read it one after the other.
void World::reload() {
  const std::size_t which = reload_.index(scenario_.other_routes.size() + 1);
  roles_.route = which == 0 ? &scenario_.route : &scenario_.other_routes[which - 1];
  trace_.fault("reload", "route " + std::to_string(which), "");
  for (const auto& process : processes_) {
    if (!process->name().starts_with("leader") || !process->running() || process->frozen())
      continue;
    process->stop();
    process->restart_at(clock_.monotonic() +
                        reload_.between(core::Duration(0s), core::Duration(3s)));
  }
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

}  // namespace tocsin::simulation
