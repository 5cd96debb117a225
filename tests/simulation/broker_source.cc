// Reading from the broker in memory.
#include <algorithm>
#include <chrono>
#include <deque>
#include <set>

#include "tests/simulation/broker_state.h"

namespace tocsin::simulation {
namespace {

class Source final : public core::RecordSource {
 public:
  Source(std::shared_ptr<MemoryBroker::State> state, std::shared_ptr<Client> client,
         ingest::SourceOptions options)
      : state_(std::move(state)), client_(std::move(client)), options_(std::move(options)) {}
  ~Source() override { leave(); }

  core::Result<std::size_t> poll(std::chrono::milliseconds timeout, std::size_t max_records,
                                 core::RecordHandler handler) override {
    if (closed_) return closed();
    {
      const std::lock_guard lock(state_->mutex);
      if (auto fault = state_->fault(*client_, Call::poll); fault.kind != Fault::Kind::none) {
        return fault.error;
      }
    }
    if (const auto status = assign(); !status) return status.error();
    std::vector<StoredRecord> taken;  // copied: the handler may publish, which takes the lock
    {
      std::unique_lock lock(state_->mutex);
      auto gap = take(taken, max_records);
      if (!gap && taken.empty() && max_records > 0 && timeout.count() > 0 && state_->waits()) {
        state_->appended.wait_for(lock, timeout, [&] {
          gap = take(taken, max_records);
          return gap || !taken.empty() || woken_;
        });
      }
      woken_ = false;
      if (gap) return core::Error{core::Code::data_loss, std::move(*gap)};
    }
    return hand_out(taken, handler);
  }

  core::Status seek(const core::Position& position) override {
    const auto it = assigned_.find(position.where);
    if (it == assigned_.end()) return core::not_found(position.where.stream + " is not assigned");
    const std::lock_guard lock(state_->mutex);
    it->second.next = position.next < 0 ? state_->logs[position.where].first() : position.next;
    it->second.at_end = false;
    return core::ok();
  }
  core::Status pause(std::span<const core::StreamPartition> partitions) override {
    for (const auto& where : partitions) {
      if (const auto it = assigned_.find(where); it != assigned_.end()) it->second.paused = true;
    }
    return core::ok();
  }
  core::Status resume(std::span<const core::StreamPartition> partitions) override {
    for (const auto& where : partitions) {
      if (const auto it = assigned_.find(where); it != assigned_.end()) it->second.paused = false;
    }
    return core::ok();
  }
  [[nodiscard]] std::vector<core::Position> positions() const override {
    std::vector<core::Position> positions;
    for (const auto& [where, one] : assigned_)
      positions.push_back({where, one.known ? one.next : -1});
    return positions;
  }
  [[nodiscard]] bool at_end() const override {
    return ever_assigned_ && std::all_of(assigned_.begin(), assigned_.end(),
                                         [](const auto& entry) { return entry.second.at_end; });
  }
  [[nodiscard]] bool at_end(const core::StreamPartition& where) const override {
    const auto it = assigned_.find(where);
    return it != assigned_.end() && it->second.at_end;
  }
  void wake() override {
    const std::lock_guard lock(state_->mutex);
    woken_ = true;
    state_->appended.notify_all();
  }

  core::Status read_all(std::string_view topic, std::int32_t partition,
                        std::optional<core::WallTime> since, core::RecordHandler handler) override {
    if (closed_) return closed();
    std::vector<StoredRecord> all;
    Fault fault;
    {
      const std::lock_guard lock(state_->mutex);
      fault = state_->fault(*client_, Call::read_all);
      if (fault.kind == Fault::Kind::refused) return fault.error;
      if (!state_->topics.contains(topic)) {
        return core::not_found("topic " + std::string(topic) + " does not exist");
      }
      state_->logs[{std::string(topic), partition}].read(0, [&](const StoredRecord& stored) {
        const bool older = since && stored.record.timestamp < core::nanoseconds(*since);
        if (!all.empty() || !older) all.push_back(stored);
        return true;
      });
      if (fault.kind == Fault::Kind::halfway) {
        all.resize(std::uniform_int_distribution<std::size_t>(0, all.size())(state_->random));
      }
    }
    for (const auto& stored : all) handler(view_of(stored));
    if (fault.kind == Fault::Kind::halfway) return fault.error;
    return core::ok();
  }

  void close(std::chrono::milliseconds) override {
    leave();
    closed_ = true;
  }

  [[nodiscard]] Membership membership() const { return {options_.group, member_}; }

 private:
  struct Partition {
    std::int64_t next = 0;
    bool known = false;  // a record was handed out, or a committed position is known
    bool paused = false;
    bool at_end = false;
    std::optional<std::int64_t> end_seen;  // of the log, at the last poll that looked at it
  };

  static core::Error closed() { return {core::Code::failed_precondition, "the source is closed"}; }

  void leave() {
    const std::lock_guard lock(state_->mutex);
    if (member_ != 0 && !client_->dead) state_->groups[options_.group].leave(member_);
    member_ = 0;
  }

  core::Status assign() {
    if (options_.group.empty()) {
      if (!ever_assigned_) assign_everything();
      return core::ok();
    }
    for (;;) {
      Group::Step step;
      bool thrown_out = false;
      {
        const std::lock_guard lock(state_->mutex);
        Group& group = state_->groups[options_.group];
        if (member_ == 0 || !group.knows(member_)) {
          thrown_out = member_ != 0;
          member_ = ++state_->last_member;
          group.join(member_, options_.topics, state_->steady());
        }
        if (!thrown_out) {
          step =
              group.advance(member_, state_->steady(), state_->options.eager, state_->partitions);
        }
      }
      if (thrown_out) {
        lose();
      } else if (step.kind == Group::Step::Kind::give_back) {
        say("is asked to give back", step.partitions);
        if (options_.listener != nullptr) options_.listener->revoked(step.partitions);
        for (const auto& where : step.partitions) {
          assigned_.erase(where);
          unannounced_.erase(where);
        }
        const std::lock_guard lock(state_->mutex);
        state_->groups[options_.group].given_back(member_, step.partitions);
      } else if (step.kind == Group::Step::Kind::take) {
        unannounced_.insert(step.partitions.begin(), step.partitions.end());
        round_over_ = true;
      } else {
        break;
      }
    }
    return announce();
  }

  void say(const std::string& what, const std::vector<core::StreamPartition>& partitions) {
    if (!state_->options.say) return;
    std::string text = what;
    for (const auto& where : partitions) {
      text += " " + where.stream + "/" + std::to_string(where.partition);
    }
    state_->options.say(client_->name, text);
  }

  void lose() {
    std::vector<core::StreamPartition> gone;
    for (const auto& [where, one] : assigned_) gone.push_back(where);
    say("was thrown out of the group and lost", gone);
    unannounced_.clear();
    if (!gone.empty() && options_.listener != nullptr) options_.listener->lost(gone);
    assigned_.clear();
  }

  void assign_everything() {
    std::vector<core::Position> told;
    {
      const std::lock_guard lock(state_->mutex);
      for (const auto& topic : options_.topics) {
        const auto it = state_->partitions.find(topic);
        for (std::int32_t p = 0; it != state_->partitions.end() && p < it->second; ++p) {
          if (!options_.partition || *options_.partition == p) unannounced_.insert({topic, p});
        }
      }
      told = start_locked();
    }
    if (options_.listener != nullptr) options_.listener->assigned(told);
  }

  core::Status announce() {
    if (unannounced_.empty() && !round_over_) return core::ok();
    std::vector<core::Position> told;
    {
      const std::lock_guard lock(state_->mutex);
      const auto& undecided = state_->groups[options_.group].undecided;
      for (const auto& where : unannounced_) {
        // KIP-447: positions inside an open transaction are waited for.
        if (undecided.contains(where)) {
          return core::unavailable("the group's committed positions are not decided yet");
        }
      }
      told = start_locked();
    }
    if (state_->options.say) {
      std::string text = "is assigned";
      for (const auto& position : told) {
        text += " " + position.where.stream + "/" + std::to_string(position.where.partition) + "@" +
                std::to_string(position.next);
      }
      state_->options.say(client_->name, text);
    }
    round_over_ = false;
    if (options_.listener != nullptr) options_.listener->assigned(told);
    return core::ok();
  }

  std::vector<core::Position> start_locked() {
    std::vector<core::Position> told;
    ever_assigned_ = true;
    for (const auto& where : std::exchange(unannounced_, {})) {
      const Log& log = state_->logs[where];
      std::int64_t committed = -1;
      if (!options_.group.empty() && options_.start == ingest::Start::committed_or_beginning) {
        const auto& known = state_->groups[options_.group].committed;
        if (const auto it = known.find(where); it != known.end()) committed = it->second;
      }
      Partition one;
      one.known = committed >= 0;
      one.next = committed >= 0                         ? committed
                 : options_.start == ingest::Start::end ? log.end()
                                                        : log.first();
      one.paused = options_.listener != nullptr;
      assigned_[where] = one;
      told.push_back({where, committed});
    }
    return told;
  }

  /// Copies what is due; the description of a gap instead, if there is one.
  std::optional<std::string> take(std::vector<StoredRecord>& taken, std::size_t max_records) {
    std::vector<std::pair<const core::StreamPartition, Partition>*> order;
    for (auto& entry : assigned_) order.push_back(&entry);
    std::size_t limit = max_records;
    if (state_->options.seed != 0 && !order.empty()) {
      std::shuffle(order.begin(), order.end(), state_->random);
      if (state_->random() % 4 == 0) limit = std::min<std::size_t>(limit, 1 + state_->random() % 4);
    }
    for (auto* entry : order) {
      auto& [where, one] = *entry;
      if (one.paused) continue;
      const Log& log = state_->logs[where];
      if (one.next < log.first()) {
        one.end_seen.reset();
        if (!taken.empty()) continue;  // first what is there; the next poll meets it again
        std::string gap = "records " + std::to_string(one.next) + " to " +
                          std::to_string(log.first() - 1) + " of " + where.stream + "[" +
                          std::to_string(where.partition) + "] are gone";
        one.next = log.first();
        return gap;
      }
      log.read(one.next, [&](const StoredRecord& stored) {
        if (taken.size() >= limit) return false;
        taken.push_back(stored);
        return true;
      });
      one.end_seen = log.end();
      one.at_end = !log.readable(one.next);
    }
    if (state_->options.seed != 0) interleave(taken);
    return std::nullopt;
  }

  /// Streams come in any order between each other, as from a real broker: each keeps its own.
  void interleave(std::vector<StoredRecord>& taken) {
    std::map<core::StreamPartition, std::deque<StoredRecord>> waiting;
    std::vector<core::StreamPartition> turns;
    for (StoredRecord& record : taken) {
      turns.push_back({record.record.topic, record.partition});
      waiting[turns.back()].push_back(std::move(record));
    }
    std::shuffle(turns.begin(), turns.end(), state_->random);
    taken.clear();
    for (const auto& where : turns) {
      taken.push_back(std::move(waiting[where].front()));
      waiting[where].pop_front();
    }
  }

  std::size_t hand_out(const std::vector<StoredRecord>& taken, core::RecordHandler handler) {
    std::size_t count = 0;
    std::map<core::StreamPartition, std::int64_t>
        stands;  // where each does unless the handler moves it
    for (const auto& [where, one] : assigned_) stands[where] = one.next;
    for (const auto& record : taken) {
      const core::StreamPartition where{record.record.topic, record.partition};
      const auto it = assigned_.find(where);
      // The handler may have paused or moved it: what was taken is forgotten, and read again.
      if (it == assigned_.end() || it->second.paused || it->second.next != stands[where]) continue;
      it->second.next = stands[where] = record.offset + 1;
      it->second.known = true;
      handler(view_of(record));
      ++count;
    }
    // Only now: while records are handed out the end has not been seen.
    const std::lock_guard lock(state_->mutex);
    for (auto& [where, one] : assigned_) {
      if (one.paused) continue;
      const auto unread = state_->logs[where].first_readable(one.next);
      one.at_end = one.end_seen && (!unread || *unread >= *one.end_seen);
    }
    return count;
  }

  std::shared_ptr<MemoryBroker::State> state_;
  std::shared_ptr<Client> client_;
  ingest::SourceOptions options_;
  std::map<core::StreamPartition, Partition> assigned_;
  Partitions unannounced_;  // ours, but the owner has not been told
  std::uint64_t member_ = 0;
  bool round_over_ = false;  // the owner is told, even when nothing came
  bool ever_assigned_ = false;
  bool closed_ = false;
  bool woken_ = false;  // under the broker's lock
};

}  // namespace

std::unique_ptr<core::RecordSource> make_source(std::shared_ptr<MemoryBroker::State> state,
                                                std::shared_ptr<Client> client,
                                                ingest::SourceOptions options) {
  return std::make_unique<Source>(std::move(state), std::move(client), std::move(options));
}

Membership membership_of(const core::RecordSource& source) {
  const auto* ours = dynamic_cast<const Source*>(&source);
  return ours == nullptr ? Membership{} : ours->membership();
}

}  // namespace tocsin::simulation
