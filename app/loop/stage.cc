#include "app/loop/stage.h"

namespace tocsin::app {

core::Status Stage::restore(std::int32_t, const core::RecordView&) { return core::ok(); }

std::optional<core::WallTime> Stage::state_since(const Instant&) const { return std::nullopt; }
bool Stage::needs_older_state() const { return false; }
core::Result<std::vector<core::Position>> Stage::restored(std::int32_t,
                                                          std::span<const core::Position>,
                                                          const Instant&) {
  return std::vector<core::Position>{};
}

void Stage::started(std::int32_t, const Instant&) {}
void Stage::state_fault(std::int32_t, const core::Error&, const Instant&) {}
std::optional<core::Duration> Stage::tick(const StageTick&) { return std::nullopt; }
void Stage::committing() {}
void Stage::committed(const Instant&) {}
void Stage::revoked(std::span<const core::StreamPartition>) {}
void Stage::lost(std::span<const core::StreamPartition>) {}
void Stage::finish(const Instant&) {}
bool Stage::busy() const { return false; }

}  // namespace tocsin::app
