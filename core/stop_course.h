// What came of a stop, folded from its command and the answers of the ranks.
#pragma once

#include <cstdint>
#include <string>

#include "core/command.h"
#include "core/run_told.h"

namespace tocsin::core {

/// A stop of one attempt. Command and answers may come in any order: they stand in two topics.
struct StopCourse {
  StopTold told;
  /// One hexadecimal digit per rank, lowest rank first: bit 0 heard, 1 accepted, 2 stopped, 3 refused.
  std::string ranks;
  std::uint64_t refused_revision = 0;  // newest of the command that was refused; 0: none was
};

/// Takes the stop's newest command. A command of another id starts over.
void note(StopCourse& stop, const Command& command);
/// Takes an answer to this stop, of a rank or (action stop/platform) of the platform that runs the job.
/// False: it changes nothing.
bool note(StopCourse& stop, const Ack& ack);
/// The attempt has ended: a stop that a rank accepted is over. `world_size`: its ranks; 0: not known.
void note_end(StopCourse& stop, std::uint32_t world_size);

}  // namespace tocsin::core
