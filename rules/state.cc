// Snapshots, logged entries and their way back. A partition's state at a set of input positions is
// the snapshot's runs, plus the frames from the snapshot's positions on, plus the logged entries.
#include <algorithm>
#include <charconv>

#include "rules/engine_impl.h"

namespace tocsin::rules {
namespace {

constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kChunkBytes = 800 * 1024;
constexpr std::string_view kIndexKey = "index";

/// The last record of a snapshot: what the other records stand for.
struct Index {
  std::map<std::string, std::int64_t> next;
  std::vector<std::pair<RunId, std::uint32_t>> chunks;
  std::uint64_t log_first = 0;
  std::string rules;  // which rules the states belong to (Engine::Impl::layout)

  template <typename A>
  friend void io(A& a, Index& i) {
    io_all(a, i.next, i.chunks, i.log_first, i.rules);
  }
};

std::string run_key(const RunId& id, std::uint32_t chunk) {
  return "run/" + core::to_text(id.uid) + "/" + std::to_string(id.shard) + "/" +
         std::to_string(chunk);
}

// Zero-padded: records are restored in any order, entries are applied in theirs.
std::string log_key(std::uint64_t number) {
  std::string digits = std::to_string(number);
  return "log/" + std::string(20 - digits.size(), '0') + digits;
}

template <typename T>
std::string pack(T& value) {
  std::string out(reinterpret_cast<const char*>(&kVersion), sizeof kVersion);
  Writer writer(out);
  io(writer, value);
  return out;
}

core::Status unpack_version(std::string_view& bytes) {
  std::uint32_t version = 0;
  if (bytes.size() < sizeof version) {
    return core::Error{core::Code::data_loss, "a state record is shorter than its version"};
  }
  std::memcpy(&version, bytes.data(), sizeof version);
  if (version != kVersion) {
    return core::Error{core::Code::data_loss,
                       "state version " + std::to_string(version) + " is not known here"};
  }
  bytes.remove_prefix(sizeof version);
  return core::ok();
}

template <typename T>
core::Status unpack(std::string_view bytes, T& value) {
  if (core::Status version = unpack_version(bytes); !version) return version;
  Loader loader(bytes);
  io(loader, value);
  if (!loader.ok() || loader.left() != 0) {
    return core::Error{core::Code::data_loss, "a state record is damaged"};
  }
  return core::ok();
}

}  // namespace

void Engine::Impl::log(Entry entry) {
  if (part->silent || options.record_time) return;
  entry.next = {part->next.begin(), part->next.end()};
  part->output.log.push_back({part->number, log_key(part->log_next++), pack(entry)});
}

void Engine::Impl::replay_entries() {
  while (!part->replay.empty()) {
    const Entry& next = part->replay.front();
    const bool reached =
        std::all_of(next.next.begin(), next.next.end(), [this](const auto& position) {
          const auto found = part->next.find(position.first);
          return found != part->next.end() && found->second >= position.second;
        });
    if (!reached) return;
    const Entry entry = next;
    part->replay.erase(part->replay.begin());
    const std::int64_t arrival = std::exchange(now, entry.now);
    apply(entry);
    now = arrival;
  }
}

void Engine::Impl::forget(PartitionState& partition, const RunId& id) {
  partition.runs.erase(id);  // its records in rules-state go with the next snapshot
}

bool Engine::snapshot(std::int32_t partition, std::size_t budget,
                      core::FunctionRef<void(StateRecord)> emit) {
  (void)budget;
  const auto found = impl_->partitions.find(partition);
  if (found == impl_->partitions.end() || found->second.silent) return false;
  PartitionState& state = found->second;
  for (auto& [id, run] : state.runs) {
    if (!run->dirty) continue;
    run->dirty = false;
    const std::string bytes = pack(*run);
    std::uint32_t chunk = 0;
    for (std::size_t from = 0; from < bytes.size(); from += kChunkBytes, ++chunk) {
      emit({partition, run_key(id, chunk), bytes.substr(from, kChunkBytes)});
    }
    std::uint32_t& written = state.chunks[id];
    for (std::uint32_t old = chunk; old < written; ++old) {
      emit({partition, run_key(id, old), std::nullopt});
    }
    written = chunk;
  }
  for (auto known = state.chunks.begin(); known != state.chunks.end();) {
    if (state.runs.contains(known->first)) {
      ++known;
      continue;
    }
    for (std::uint32_t chunk = 0; chunk < known->second; ++chunk) {
      emit({partition, run_key(known->first, chunk), std::nullopt});
    }
    known = state.chunks.erase(known);
  }
  for (; state.log_first < state.log_next; ++state.log_first) {
    emit({partition, log_key(state.log_first), std::nullopt});
  }
  Index index{{state.next.begin(), state.next.end()},
              {state.chunks.begin(), state.chunks.end()},
              state.log_next,
              impl_->layout()};
  emit({partition, std::string(kIndexKey), pack(index)});
  return false;
}

core::Status Engine::restore(std::int32_t partition, std::string_view key,
                             std::optional<std::string_view> value) {
  auto& restored = impl_->partition(partition).restored;
  if (value) {
    restored[std::string(key)] = *value;
  } else {
    restored.erase(std::string(key));
  }
  return core::ok();
}

core::Result<Restored> Engine::finish_restore(std::int32_t partition,
                                              std::span<const core::Position> committed) {
  (void)committed;
  PartitionState& state = impl_->partition(partition);
  const std::map<std::string, std::string> records = std::exchange(state.restored, {});
  state = PartitionState{};
  state.number = partition;
  Index index;
  const auto head = records.find(std::string(kIndexKey));
  const bool have_index = head != records.end();
  if (have_index) {
    if (core::Status status = unpack(head->second, index); !status) {
      return status.error().in("index of partition " + std::to_string(partition));
    }
  }
  const bool same_rules = index.rules == impl_->layout();
  {
    for (const auto& [id, chunks] : index.chunks) {
      std::string bytes;
      for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
        const auto record = records.find(run_key(id, chunk));
        if (record != records.end()) bytes += record->second;
      }
      auto run = std::make_unique<Run>();
      if (core::Status status = unpack(bytes, *run); !status) {
        return status.error().in("run " + core::to_text(id.uid));
      }
      run->dirty = !same_rules;
      if (!same_rules) impl_->remap(state, *run, index.rules);
      state.runs.emplace(id, std::move(run));
      state.chunks[id] = chunks;
    }
  }
  state.log_first = state.log_next = index.log_first;
  for (const auto& [key, value] : records) {
    if (!key.starts_with("log/") || key < log_key(index.log_first)) continue;
    Entry entry;
    if (core::Status status = unpack(value, entry); !status) return status.error().in(key);
    std::from_chars(key.data() + 4, key.data() + key.size(), state.log_next);
    ++state.log_next;
    state.replay.push_back(std::move(entry));
  }
  state.silent = true;
  std::vector<core::Position> positions;
  for (const auto& [stream, next] : index.next) {
    state.next[stream] = next;
    positions.push_back({{stream, partition}, next});
  }
  Restored out;
  if (have_index) out.positions = std::move(positions);
  return out;
}

}  // namespace tocsin::rules
