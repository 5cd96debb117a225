#include "tests/simulation/broker_state.h"

#include <algorithm>

#include "core/identity.h"

namespace tocsin::simulation {

MemoryBroker::State::State(BrokerOptions given) : options(std::move(given)), random(options.seed) {
  for (auto& topic : ingest::topic_plan(options.topics)) {
    partitions.emplace(topic.name, topic.partitions);
    topics.emplace(topic.name, topic);
  }
}

Fault MemoryBroker::State::fault(Client& client, Call call) {
  advance();
  if (client.dead)
    return {Fault::Kind::refused, core::unavailable("this process is dead"), {}, false};
  if (auto& failing = failures[call]; failing.times != 0) {
    if (failing.times > 0) --failing.times;
    return {Fault::Kind::refused, failing.error, {}, false};
  }
  Fault fault = hook ? hook(client.name, call) : Fault{};
  if (fault.dies) client.dead = true;
  return fault;
}

core::Result<std::int32_t> MemoryBroker::State::partition_of(const core::OutRecord& record) const {
  const auto topic = partitions.find(record.topic);
  if (topic == partitions.end())
    return core::not_found("topic " + record.topic + " does not exist");
  if (record.partition) return *record.partition;
  const std::string& key = record.partition_key.empty() ? record.key : record.partition_key;
  return core::partition_for(key, topic->second);
}

core::Status MemoryBroker::State::check(const core::OutRecord& record) const {
  const auto partition = partition_of(record);
  if (!partition) return partition.error();
  if (*partition < 0 || *partition >= partitions.at(record.topic)) {
    return core::invalid_argument("topic " + record.topic + " has no partition " +
                                  std::to_string(*partition));
  }
  return core::ok();
}

void MemoryBroker::State::store(core::OutRecord record, std::uint64_t transaction) {
  const std::int32_t partition = *partition_of(record);
  if (record.timestamp == 0) {
    record.timestamp = options.clock != nullptr ? core::nanoseconds(options.clock->now()) : now;
  }
  const core::StreamPartition where{record.topic, partition};
  logs[where].append(std::move(record), partition, transaction);
  if (transaction != 0) transactions[transaction].logs.push_back(where);
  appended.notify_all();
}

core::Status MemoryBroker::State::admit(const Request& request) {
  if (!options.fences) return core::ok();
  const Transaction& transaction = request.transaction;
  if (request.epoch != producers[transaction.transactional_id].epoch) {
    return core::Error{
        core::Code::failed_precondition,
        "transactional id " + transaction.transactional_id + " was taken over by a newer process"};
  }
  if (transaction.positions.empty()) return core::ok();
  const Group& group = groups[transaction.group];
  // A commit that was long on the way is one of the generation in which it was sent.
  if (!group.may_commit(request.member) ||
      group.generation_of(request.member) != request.generation) {
    return core::Error{core::Code::failed_precondition,
                       "no longer a member of the group's present generation"};
  }
  return core::ok();
}

std::uint64_t MemoryBroker::State::begin(const Request& request) {
  const std::uint64_t id = ++last_transaction;
  Transaction transaction = request.transaction;
  transaction.since = steady();
  producers[transaction.transactional_id].open = id;
  auto& undecided = groups[transaction.group].undecided;
  for (const auto& position : transaction.positions) ++undecided[position.where];
  transactions.emplace(id, std::move(transaction));
  for (const auto& record : request.records) store(record, id);
  return id;
}

void MemoryBroker::State::decide(std::uint64_t id, bool committed) {
  const auto it = transactions.find(id);
  if (it == transactions.end()) return;
  const Transaction transaction = std::move(it->second);
  transactions.erase(it);
  if (auto& producer = producers[transaction.transactional_id]; producer.open == id) {
    producer.open = 0;
  }
  for (const auto& where : transaction.logs) logs[where].decide(id, committed, options.markers);
  Group& group = groups[transaction.group];
  for (const auto& position : transaction.positions) {
    if (--group.undecided[position.where] == 0) group.undecided.erase(position.where);
    if (committed && position.next >= 0) group.committed[position.where] = position.next;
  }
  appended.notify_all();
}

void MemoryBroker::State::advance() {
  const core::Duration at = steady();
  for (const auto& request : std::exchange(late, {})) {
    if (request->state != Request::State::on_the_way) continue;
    if (at < request->arrives) {
      late.push_back(request);
    } else if (admit(*request)) {
      decide(begin(*request), true);
      request->state = Request::State::committed;
    } else {
      request->state = Request::State::refused;
    }
  }
  for (auto& [name, group] : groups) group.expire(at, options.session);
  std::vector<std::pair<std::uint64_t, bool>> due;
  for (const auto& [id, transaction] : transactions) {
    if (transaction.arrives && at >= *transaction.arrives) {
      due.emplace_back(id, true);
    } else if (at - transaction.since >= options.transaction_timeout) {
      due.emplace_back(id, false);
    }
  }
  for (const auto& [id, committed] : due) {
    // Whoever left it open for so long is fenced, as on Kafka.
    if (!committed) ++producers[transactions[id].transactional_id].epoch;
    decide(id, committed);
  }
}

}  // namespace tocsin::simulation
