// Known mistakes, put back on purpose: the simulated world has to find each of them.
#pragma once

#include <memory>
#include <string_view>

#include "app/loop/stage.h"
#include "core/clock.h"
#include "ingest/transport.h"

namespace tocsin::simulation {

enum class Mutation {
  none,
  drop_fence,                // a zombie's commits go through
  positions_before_records,  // positions first, records in a commit of their own
  forget_finished,           // the deliverer does not read back what it has finished
  skip_snapshot_piece,       // one record of a snapshot is not written
  resolve_twice,             // what was resolved is resolved again
  forget_ahead,              // of what went ahead of a commit, some is never there
  trust_wall_clock,          // loops measure time by the clock that jumps
  stop_unasked,              // a stop that is to wait for a word is written down as approved
  forget_words,              // who starts does not read the words that were said before
};
inline constexpr Mutation kMutations[] = {
    Mutation::drop_fence,       Mutation::positions_before_records,
    Mutation::forget_finished,  Mutation::skip_snapshot_piece,
    Mutation::resolve_twice,    Mutation::forget_ahead,
    Mutation::trust_wall_clock, Mutation::stop_unasked,
    Mutation::forget_words};
std::string_view to_string(Mutation mutation) noexcept;

/// The transport with the mistake around `inner`; null when this mistake is not one of transports.
std::unique_ptr<ingest::Transport> mutate(Mutation mutation, ingest::Transport& inner);
/// The clock with the mistake around `inner`; null when this mistake is not one of clocks.
std::unique_ptr<core::Clock> mutate(Mutation mutation, const core::Clock& inner);
/// The stage with the mistake around `inner`, or `inner`.
std::unique_ptr<app::Stage> mutate(Mutation mutation, std::unique_ptr<app::Stage> inner);

}  // namespace tocsin::simulation
